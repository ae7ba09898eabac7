// SPDX-License-Identifier: Apache-2.0
// Expressions of scripts, by operator precedence with a stack of pending operators and brackets.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "parser/formats/parser.h"
#include "tracer/script/script_parser.h"
#include "tracer/text/literal_line.h"

namespace hlokit::lazy::script {
namespace {

// Precedences, as Python's. 0 is that of brackets; the number of `hash` takes all that follows.
constexpr int kHash = 1, kOr = 2, kAnd = 3, kNot = 4, kCompare = 5, kUnary = 11, kPower = 12, kFetch = 13;

struct BinaryOperator {
  std::string_view text;
  Operator op;
  int precedence;
};
constexpr BinaryOperator kBinaryOperators[] = {
    {"==", Operator::kEqual, kCompare},
    {"!=", Operator::kNotEqual, kCompare},
    {"<", Operator::kLess, kCompare},
    {"<=", Operator::kLessEqual, kCompare},
    {">", Operator::kGreater, kCompare},
    {">=", Operator::kGreaterEqual, kCompare},
    {"|", Operator::kOr, 6},
    {"^", Operator::kXor, 7},
    {"&", Operator::kAnd, 8},
    {"+", Operator::kAdd, 9},
    {"-", Operator::kSubtract, 9},
    {"*", Operator::kMultiply, 10},
    {"/", Operator::kDivide, 10},
    {"//", Operator::kFloorDivide, 10},
    {"%", Operator::kRemainder, 10},
    {"@", Operator::kMatmul, 10},
    {"**", Operator::kPower, kPower},
};

SourceRange Join(SourceRange first, SourceRange last) { return {first.offset, last.offset + last.size - first.offset}; }

}  // namespace

bool ScriptParser::Push(Pending pending) {
  if (pending_.size() >= kMaxDepth) {
    return Error(pending.range, StrCat("expressions are nested more than ", kMaxDepth, " deep"));
  }
  pending_.push_back(std::move(pending));
  expects_operand_ = true;
  return true;
}

void ScriptParser::PushOperand(SourceRange range) {
  operands_.push_back(range);
  expects_operand_ = false;
}

void ScriptParser::Reduce() {
  const Pending top = std::move(pending_.back());
  pending_.pop_back();
  const SourceRange last = operands_.back();
  operands_.pop_back();
  switch (top.kind) {
    case Pending::Kind::kUnary: {
      const SourceRange range = Join(top.range, last);
      Instruction& previous = function().code.back();
      const Scalar* number = previous.code == Code::kConstant && previous.range.offset == last.offset
                                 ? program_.constants[previous.a].get<Scalar>()
                                 : nullptr;
      if (top.op == Operator::kNegate && number != nullptr && number->kind() != Scalar::Kind::kBool) {
        // A negative number is one constant; as an argument -0 keeps its sign.
        const bool smallest = text_.substr(last.offset, last.size) == "9223372036854775808";
        previous.a = Constant(smallest                              ? Scalar(std::numeric_limits<int64_t>::min())
                              : number->Is(0) && !brackets_.empty() ? Scalar(-0.0)
                                                                    : -*number);
        previous.range = range;
      } else {
        Emit(Code::kUnary, range, static_cast<uint32_t>(top.op));
      }
      PushOperand(range);
      return;
    }
    case Pending::Kind::kHash: {
      const SourceRange range = Join(top.range, last);
      Emit(Code::kHash, range, top.instruction);
      PushOperand(range);
      return;
    }
    case Pending::Kind::kBinary:
    case Pending::Kind::kLogic: {
      const SourceRange range = Join(operands_.back(), last);
      operands_.pop_back();
      if (top.kind == Pending::Kind::kLogic) {
        Patch(top.instruction);
      } else {
        Emit(Code::kBinary, range, static_cast<uint32_t>(top.op));
      }
      PushOperand(range);
      return;
    }
    case Pending::Kind::kParentheses:
    case Pending::Kind::kList:
    case Pending::Kind::kCall:
    case Pending::Kind::kIndex:
      return;  // closed by CloseBracket
  }
}

void ScriptParser::ReduceTo(int precedence, bool right_associative) {
  while (!pending_.empty() && pending_.back().precedence > 0 &&
         (right_associative ? pending_.back().precedence > precedence : pending_.back().precedence >= precedence)) {
    Reduce();
  }
}

bool ScriptParser::MissingClose() {
  const Pending& open = pending_[brackets_.back()];
  return Error(
      open.range,
      StrCat("missing `", open.kind == Pending::Kind::kList || open.kind == Pending::Kind::kIndex ? "]" : ")", "`"));
}

bool ScriptParser::OpenCall(std::string name, SourceRange name_range, const Token& parenthesis, size_t operands) {
  CallSite site;
  site.name = std::move(name);
  site.name_range = name_range;
  site.range = name_range;
  program_.calls.push_back(std::move(site));
  Pending pending{Pending::Kind::kCall, 0, Operator::kAdd, parenthesis.range(), operands};
  pending.instruction = static_cast<uint32_t>(program_.calls.size() - 1);
  if (!Push(std::move(pending))) return false;
  brackets_.push_back(pending_.size() - 1);
  return true;
}

// Takes `name=` in front of an argument.
bool ScriptParser::TakeArgumentName() {
  Pending& call = pending_.back();
  const Token name = Peek();
  if (name.kind != TokenKind::kName) return true;
  const size_t before = at_;
  at_ = name.end;
  const Token equals = Peek(false);
  if (!equals.Is("=")) {
    at_ = before;
    return true;
  }
  at_ = equals.end;
  const std::vector<CallArgument>& arguments = program_.calls[call.instruction].arguments;
  for (const CallArgument& argument : arguments) {
    if (argument.name != name.text) continue;
    const Token value = Peek();
    return ErrorAt(value, StrCat("duplicate argument `", name.text, "`"));
  }
  call.named = true;
  call.argument.name = std::string(name.text);
  call.argument.name_range = name.range();
  return true;
}

bool ScriptParser::HashOperand() {
  const Token word = Take();
  const Token shape = Peek();
  size_t end = shape.begin;
  while (end < text_.size() && text_[end] != ' ' && text_[end] != '\t' && text_[end] != '\r' && text_[end] != '\n') {
    ++end;
  }
  const std::string_view shape_text = text_.substr(shape.begin, end - shape.begin);
  const absl::StatusOr<Shape> parsed = ParseShapeText(shape_text, &context_);
  if (!parsed.ok() || !parsed->IsArray() || parsed->element_count() < 0) {
    return Error(RangeOf(RestOfLine()), "expected a shape and a number, hash f32[2,3] 0");
  }
  at_ = end;
  program_.literals.push_back(RangeOf(shape_text));
  Pending pending{Pending::Kind::kHash, kHash, Operator::kAdd, word.range()};
  pending.instruction = static_cast<uint32_t>(program_.literals.size() - 1);
  return Push(std::move(pending));
}

bool ScriptParser::LiteralOperand() {
  const Token word = Take();
  const size_t begin = Peek().begin;
  // The shape, then a literal in brackets, or one that ends with the argument.
  size_t end = std::min(text_.find_first_of(" \t\r\n", begin), text_.size());
  while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t')) ++end;
  const size_t line_end = EndOfLine(text_, end);
  if (end < line_end && (text_[end] == '{' || text_[end] == '(')) {
    size_t depth = 0;
    size_t close = end;
    for (; close < text_.size(); ++close) {
      if (text_[close] == '{' || text_[close] == '(') ++depth;
      if ((text_[close] == '}' || text_[close] == ')') && --depth == 0) break;
    }
    end = close < text_.size() ? close + 1 : line_end;
  } else {
    end = std::min(text_.find_first_of(brackets_.empty() ? "#\n" : ",)]#\n", end), text_.size());
    while (end > begin && (text_[end - 1] == ' ' || text_[end - 1] == '\t' || text_[end - 1] == '\r')) --end;
  }
  const std::string_view line = text_.substr(begin, end - begin);
  if (!ReadLiteralLine(source_, line, &context_, kMaxLiteralLineBytes, &sink_)) return false;
  at_ = end;
  program_.literals.push_back(RangeOf(line));
  const SourceRange range = Join(word.range(), RangeOf(line));
  Emit(Code::kLiteral, range, static_cast<uint32_t>(program_.literals.size() - 1));
  PushOperand(range);
  return true;
}

bool ScriptParser::NameOperand(const Token& name) {
  static const std::pair<std::string_view, Value> kConstants[] = {
      {"true", Value(true)},
      {"True", Value(true)},
      {"false", Value(false)},
      {"False", Value(false)},
      {"none", Value(Value::None())},
      {"None", Value(Value::None())},
      {"inf", Value(std::numeric_limits<double>::infinity())},
      {"infinity", Value(std::numeric_limits<double>::infinity())},
      {"nan", Value(std::numeric_limits<double>::quiet_NaN())},
  };
  if (name.text == "not") {
    at_ = name.end;
    return Push({Pending::Kind::kUnary, kNot, Operator::kNot, name.range()});
  }
  if (name.text == "grad" || name.text == "item") {
    at_ = name.end;
    return Push({Pending::Kind::kUnary, kFetch, name.text == "grad" ? Operator::kGrad : Operator::kItem, name.range()});
  }
  if (name.text == "hash") return HashOperand();
  if (name.text == "tensor") return LiteralOperand();
  at_ = name.end;
  const Token next = Peek(false);
  if (next.Is("(")) {
    at_ = next.end;
    return OpenCall(std::string(name.text), name.range(), next, operands_.size());
  }
  for (const auto& [word, value] : kConstants) {
    if (word != name.text) continue;
    Emit(Code::kConstant, name.range(), Constant(value));
    PushOperand(name.range());
    return true;
  }
  if (!brackets_.empty()) {
    Emit(Code::kConstant, name.range(), Constant(Value::Word{std::string(name.text)}));
    PushOperand(name.range());
    return true;
  }
  if (name.text.find("::") != std::string_view::npos) {
    return ErrorAt(name, "expected a call, aten::name(arguments)");
  }
  const std::string variable = StrCat("%", name.text);
  const bool known = scope_->numbers.contains(variable);
  return ErrorAt(
      name, StrCat("expected a value, found `", name.text, "`"),
      known ? StrCat("did you mean `", variable, "`?") : "a variable is written %name, a call name(arguments)");
}

bool ScriptParser::Operand() {
  if (!pending_.empty() && pending_.back().kind == Pending::Kind::kCall && !pending_.back().named) {
    if (!TakeArgumentName()) return false;
  }
  const Token token = Peek();
  switch (token.kind) {
    case TokenKind::kVariable:
      at_ = token.end;
      return Load(token);
    case TokenKind::kNumber:
      at_ = token.end;
      Emit(Code::kConstant, token.range(), Constant(token.number));
      PushOperand(token.range());
      return true;
    case TokenKind::kString:
      at_ = token.end;
      Emit(Code::kConstant, token.range(), Constant(std::string(token.text)));
      PushOperand(token.range());
      return true;
    case TokenKind::kName:
      return NameOperand(token);
    case TokenKind::kSymbol:
      break;
    case TokenKind::kUnterminated:
      at_ = token.end;
      sink_.Error(DiagnosticKind::kUnterminatedString, token.range(), "unterminated string");
      return false;
    case TokenKind::kUnknown:
      at_ = token.end;
      sink_.Error(DiagnosticKind::kBadCharacter, token.range(), "unexpected character");
      return false;
    case TokenKind::kEnd:
      if (!brackets_.empty()) return MissingClose();
      return ErrorAt(token, "expected a value");
  }
  if (token.Is("-") || token.Is("+") || token.Is("~")) {
    at_ = token.end;
    const Operator op = token.Is("-") ? Operator::kNegate : token.Is("+") ? Operator::kPlus : Operator::kInvert;
    return Push({Pending::Kind::kUnary, kUnary, op, token.range()});
  }
  if (token.Is("(") || token.Is("[")) {
    at_ = token.end;
    if (!Push({token.Is("(") ? Pending::Kind::kParentheses : Pending::Kind::kList, 0, Operator::kAdd, token.range(),
               operands_.size()})) {
      return false;
    }
    brackets_.push_back(pending_.size() - 1);
    return true;
  }
  const bool in_bracket = !pending_.empty() && pending_.back().precedence == 0;
  if (in_bracket && (token.Is(")") || token.Is("]")) && !pending_.back().named &&
      pending_.back().kind != Pending::Kind::kIndex) {
    at_ = token.end;
    return CloseBracket(token);
  }
  if (in_bracket && pending_.back().kind == Pending::Kind::kCall && (token.Is(",") || token.Is(")"))) {
    const SourceRange name = program_.calls[pending_.back().instruction].name_range;
    // The message is about the call, up to here.
    return Error(Join(name, token.range()), "an argument is empty");
  }
  if (token.Is("%")) return ErrorAt(token, "expected a name after `%`");
  return ErrorAt(token, StrCat("expected a value, found `", token.text, "`"));
}

void ScriptParser::EndMember() {
  Pending& bracket = pending_.back();
  if (bracket.kind != Pending::Kind::kCall) return;
  bracket.argument.range = operands_.back();
  program_.calls[bracket.instruction].arguments.push_back(std::exchange(bracket.argument, CallArgument()));
  bracket.named = false;
}

// Closes the innermost bracket, whose last member is complete.
bool ScriptParser::CloseBracket(const Token& token) {
  Pending bracket = std::move(pending_.back());
  const bool square = bracket.kind == Pending::Kind::kList || bracket.kind == Pending::Kind::kIndex;
  if (square != token.Is("]")) {
    return ErrorAt(token, StrCat("expected `", square ? "]" : ")", "`, found `", token.text, "`"));
  }
  pending_.pop_back();
  brackets_.pop_back();
  const size_t members = operands_.size() - bracket.operands;
  size_t kept = bracket.operands;
  SourceRange range = Join(bracket.range, token.range());
  switch (bracket.kind) {
    case Pending::Kind::kParentheses:
      if (members == 1 && !bracket.comma) break;
      Emit(Code::kList, range, static_cast<uint32_t>(members));
      break;
    case Pending::Kind::kList:
      Emit(Code::kList, range, static_cast<uint32_t>(members));
      break;
    case Pending::Kind::kCall: {
      CallSite& site = program_.calls[bracket.instruction];
      range = site.range = Join(site.name_range, token.range());
      kept -= site.name.empty() ? 1 : 0;  // the value that is called
      Emit(Code::kCall, range, bracket.instruction);
      break;
    }
    case Pending::Kind::kIndex:
      --kept;
      range = Join(operands_[kept], token.range());
      Emit(Code::kIndex, range);
      break;
    case Pending::Kind::kUnary:
    case Pending::Kind::kBinary:
    case Pending::Kind::kLogic:
    case Pending::Kind::kHash:
      break;
  }
  operands_.resize(kept);
  PushOperand(range);
  return true;
}

bool ScriptParser::AfterOperand(bool* done) {
  const Token token = Peek(false);
  if (token.kind == TokenKind::kSymbol) {
    const auto* const binary = std::find_if(std::begin(kBinaryOperators), std::end(kBinaryOperators),
                                            [&](const BinaryOperator& b) { return b.text == token.text; });
    if (binary != std::end(kBinaryOperators)) {
      at_ = token.end;
      ReduceTo(binary->precedence + (binary->precedence == kCompare ? 1 : 0), binary->op == Operator::kPower);
      if (binary->precedence == kCompare && !pending_.empty() && pending_.back().precedence == kCompare) {
        return ErrorAt(token, "comparisons cannot be chained", "combine them with `and`");
      }
      return Push({Pending::Kind::kBinary, binary->precedence, binary->op, token.range()});
    }
    if (token.Is("(") || token.Is("[")) {
      at_ = token.end;
      // Calls and indices bind most tightly: only an operand is before them.
      const SourceRange operand = operands_.back();
      if (token.Is("(")) return OpenCall("", operand, token, operands_.size());
      if (!Push({Pending::Kind::kIndex, 0, Operator::kAdd, token.range(), operands_.size()})) return false;
      brackets_.push_back(pending_.size() - 1);
      return true;
    }
    if (!brackets_.empty() && (token.Is(",") || token.Is(")") || token.Is("]"))) {
      ReduceTo(1, false);
      EndMember();
      at_ = token.end;
      if (!token.Is(",")) return CloseBracket(token);
      if (pending_.back().kind == Pending::Kind::kIndex) return ErrorAt(token, "an index is one number");
      pending_.back().comma = true;
      expects_operand_ = true;
      return true;
    }
  }
  if (token.IsWord("and") || token.IsWord("or")) {
    at_ = token.end;
    const bool both = token.text == "and";
    ReduceTo(both ? kAnd : kOr, false);
    Pending pending{Pending::Kind::kLogic, both ? kAnd : kOr, Operator::kAdd, token.range()};
    pending.instruction = Emit(both ? Code::kAnd : Code::kOr, operands_.back());
    return Push(std::move(pending));
  }
  if (!brackets_.empty()) {
    if (token.kind == TokenKind::kEnd || token.begin > EndOfLine(text_, pending_[brackets_.back()].range.offset)) {
      return MissingClose();
    }
    at_ = token.end;
    return ErrorAt(token, StrCat("expected `,` or a closing bracket, found `", token.text, "`"));
  }
  *done = true;
  return true;
}

bool ScriptParser::Expression(SourceRange* range) {
  pending_.clear();
  operands_.clear();
  brackets_.clear();
  expects_operand_ = true;
  bool ok = true;
  for (bool done = false; ok && !done;) ok = expects_operand_ ? Operand() : AfterOperand(&done);
  brackets_.clear();
  if (!ok) return false;
  ReduceTo(1, false);
  if (range != nullptr) *range = operands_.back();
  return true;
}

}  // namespace hlokit::lazy::script
