// SPDX-License-Identifier: Apache-2.0
// Statements of scripts, other than blocks.
#include <algorithm>
#include <array>
#include <iterator>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "tracer/graph/string_split.h"
#include "tracer/script/script_parser.h"

namespace hlokit::lazy::script {
namespace {

constexpr int64_t kMaxDevices = 256;

constexpr std::string_view kStatements[] = {
    "requires_grad", "backward",    "zero_grad", "step",    "train",   "eval",    "del",    "mark_step",
    "wait",          "manual_seed", "print",     "item",    "dump",    "devices", "repeat", "for",
    "while",         "if",          "elif",      "else",    "def",     "return",  "break",  "continue",
    "scope",         "no_grad",     "autocast",  "compile", "capture", "end"};

struct Assigning {
  std::string_view text;
  Operator op;
};
constexpr Assigning kAssigning[] = {{"+=", Operator::kAdd},          {"-=", Operator::kSubtract},
                                    {"*=", Operator::kMultiply},     {"/=", Operator::kDivide},
                                    {"//=", Operator::kFloorDivide}, {"%=", Operator::kRemainder},
                                    {"**=", Operator::kPower}};

constexpr std::string_view kDumps[] = {"lazy", "lazy-dot", "hlo", "hash", "metrics", "graphs"};

}  // namespace

bool IsStatementName(std::string_view name) {
  return std::find(std::begin(kStatements), std::end(kStatements), name) != std::end(kStatements);
}

absl::Span<const std::string_view> DumpKinds() { return kDumps; }

std::string_view ScriptParser::RestOfLine() const {
  const size_t end = EndOfLine(text_, at_);
  const std::string_view rest = text_.substr(at_, end - at_);
  return Trim(rest.substr(0, rest.find('#')));
}

bool ScriptParser::EndOfStatement(std::string_view after) {
  const Token token = Peek(false);
  if (token.kind == TokenKind::kEnd) return true;
  const std::string_view rest = RestOfLine();
  return Error(RangeOf(rest), StrCat("unexpected text after `", after, "`"));
}

// Parses one or more expressions between commas.
bool ScriptParser::ValueList(uint32_t* count) {
  for (*count = 0;;) {
    if (!Expression()) return false;
    ++*count;
    const Token comma = Peek(false);
    if (!comma.Is(",")) return true;
    at_ = comma.end;
  }
}

bool ScriptParser::Assignment(bool* is_assignment) {
  // %a, %b = ...
  const size_t before = at_;
  std::vector<Token> names = {Take()};
  Token sign = Peek(false);
  while (sign.Is(",")) {
    at_ = sign.end;
    names.push_back(Take());
    if (names.back().kind != TokenKind::kVariable) {
      return ErrorAt(names.back(), "expected a variable, %name");
    }
    sign = Peek(false);
  }
  const auto* const assigning =
      std::find_if(std::begin(kAssigning), std::end(kAssigning), [&](const Assigning& a) { return sign.Is(a.text); });
  *is_assignment = sign.Is("=") || assigning != std::end(kAssigning);
  if (!*is_assignment) {
    at_ = before;
    return names.size() == 1 || Error(statement_, "expected `%name = value`");
  }
  at_ = sign.end;
  SourceRange targets = {names[0].range().offset, names.back().range().offset + names.back().range().size};
  targets.size -= targets.offset;
  if (assigning != std::end(kAssigning)) {
    if (names.size() > 1) return ErrorAt(sign, StrCat("`", sign.text, "` changes one variable"));
    operands_.clear();
    if (!Load(names[0])) return false;
  }
  const bool ok = Expression();
  if (ok && assigning != std::end(kAssigning)) Emit(Code::kBinary, statement_, static_cast<uint32_t>(assigning->op), 1);
  std::vector<uint32_t> numbers;
  for (const Token& name : names) numbers.push_back(Target(name.text));
  program_.targets.push_back(std::move(numbers));
  Emit(Code::kStore, targets, static_cast<uint32_t>(program_.targets.size() - 1));
  return ok && EndOfStatement("the value");
}

bool ScriptParser::ExpressionStatement() {
  if (!Expression()) return false;
  const Instruction& last = function().code.back();
  if (last.code != Code::kCall && last.code != Code::kUnary) {
    const Token next = Peek(false);
    if (next.kind != TokenKind::kEnd) return ErrorAt(next, StrCat("unexpected `", next.text, "`"));
    return Error(statement_, "expected `%name = value`");
  }
  Emit(Code::kPop, statement_);
  return EndOfStatement("the call");
}

bool ScriptParser::Dump(SourceRange range) {
  const std::string_view rest = RestOfLine();
  const size_t size = std::min(rest.find_first_of(" \t"), rest.size());
  const std::string_view kind = rest.substr(0, size);
  const auto* const known = std::find(std::begin(kDumps), std::end(kDumps), kind);
  if (known == std::end(kDumps)) {
    return Error(range, StrCat("`", kind, "` cannot be dumped"), "lazy, lazy-dot, hlo, hash, metrics or graphs");
  }
  at_ = static_cast<size_t>(rest.data() - text_.data()) + size;
  uint32_t count = 0;
  const auto index = static_cast<uint32_t>(known - std::begin(kDumps));
  if (Peek().kind != TokenKind::kEnd) {
    if (index >= 4) return EndOfStatement(kind);
    if (!ValueList(&count)) return false;
  }
  Emit(Code::kDump, range, index, count);
  return EndOfStatement("the values");
}

bool ScriptParser::Devices(const Token& word) {
  const Token number = Take();
  if (statements_before_) return ErrorAt(word, "`devices` must be the first statement of a script");
  if (number.kind != TokenKind::kNumber || number.number.is_float() || number.number.ToInt() < 1 ||
      number.number.ToInt() > kMaxDevices) {
    return Error(statement_, StrCat("expected devices N, from 1 to ", kMaxDevices));
  }
  program_.devices = number.number.ToInt();
  return EndOfStatement("the number");
}

bool ScriptParser::Delete() {
  for (;;) {
    const Token name = Take();
    if (name.kind != TokenKind::kVariable) return ErrorAt(name, "expected a variable, %name");
    operands_.clear();
    if (!Load(name)) return false;
    // Loaded for the error of a variable without a value.
    Emit(Code::kPop, name.range());
    Emit(Code::kDelete, name.range(), VariableNumber(name.text));
    const Token comma = Peek(false);
    if (!comma.Is(",")) return EndOfStatement("the variable");
    at_ = comma.end;
  }
}

bool ScriptParser::Keyword(const Token& word) {
  at_ = word.end;
  const std::string_view rest = RestOfLine();
  SourceRange values = RangeOf(rest);
  uint32_t count = 0;
  if (word.text == "requires_grad" || word.text == "zero_grad" || word.text == "step" || word.text == "train" ||
      word.text == "eval") {
    if (!ValueList(&count)) return false;
    if (word.text == "requires_grad") {
      Emit(Code::kRequiresGrad, values, count);
    } else if (word.text == "zero_grad") {
      Emit(Code::kZeroGrad, values, count);
    } else if (word.text == "step") {
      Emit(Code::kStep, values, count);
    } else {
      Emit(Code::kTrain, values, count, word.text == "train" ? 1 : 0);
    }
    return EndOfStatement("the values");
  }
  if (word.text == "backward") {
    if (!Expression()) return false;
    const Token option = Peek(false);
    const bool retain = option.IsWord("retain_graph");
    if (!retain && option.kind != TokenKind::kEnd)
      return Error(RangeOf(RestOfLine()), "expected `retain_graph` or nothing");
    if (retain) at_ = option.end;
    Emit(Code::kBackward, statement_, retain ? 1 : 0);
    return EndOfStatement("retain_graph");
  }
  if (word.text == "del") return Delete();
  if (word.text == "mark_step" || word.text == "wait") {
    Emit(word.text == "wait" ? Code::kWait : Code::kMarkStep, statement_);
    return EndOfStatement(word.text);
  }
  if (word.text == "manual_seed") {
    if (in_capture_) {
      return Error(statement_, "a captured block uses the seed of the step; set it before the block");
    }
    if (!Expression()) return false;
    Emit(Code::kManualSeed, statement_);
    return EndOfStatement("the seed");
  }
  if (word.text == "print" || word.text == "item") {
    for (;;) {
      SourceRange range;
      if (!Expression(&range)) return false;
      program_.literals.push_back(range);
      Emit(word.text == "print" ? Code::kPrint : Code::kPrintItem, statement_,
           static_cast<uint32_t>(program_.literals.size() - 1));
      const Token comma = Peek(false);
      if (!comma.Is(",")) return EndOfStatement("the value");
      at_ = comma.end;
    }
  }
  if (word.text == "dump") return Dump(statement_);
  if (word.text == "devices") return Devices(word);
  bool known = false;
  const bool ok = BlockKeyword(word, &known);
  if (known) return ok;
  return ErrorAt(word, StrCat("unknown statement `", word.text, "`"),
                 DidYouMean(word.text, {std::begin(kStatements), std::end(kStatements)}));
}

bool ScriptParser::Statement(const Token& first) {
  if (first.kind == TokenKind::kVariable) {
    bool assignment = false;
    if (!Assignment(&assignment)) return false;
    return assignment || ExpressionStatement();
  }
  if (first.kind == TokenKind::kName) {
    const bool keyword = IsStatementName(first.text);
    const bool call = LexAt(text_, first.end, false, false).Is("(");
    if (!keyword && (call || first.text.find("::") != std::string_view::npos)) return ExpressionStatement();
    return Keyword(first);
  }
  if (first.kind == TokenKind::kUnknown) {
    sink_.Error(DiagnosticKind::kBadCharacter, first.range(), "unexpected character");
    return false;
  }
  return ErrorAt(first, StrCat("expected a statement, found `", first.text, "`"));
}

}  // namespace hlokit::lazy::script
