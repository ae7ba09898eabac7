// SPDX-License-Identifier: Apache-2.0
#include "passes/query/condition.h"

#include <array>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "passes/query/query_lexer.h"

namespace hlokit::query {
namespace {

// Binds weaker than comparisons.
constexpr int kOrPrecedence = 1, kAndPrecedence = 2, kNotPrecedence = 3;

std::string_view NameOf(FieldType type) {
  return type == FieldType::kNumber ? "a number" : type == FieldType::kBool ? "true or false" : "a text";
}

}  // namespace

// Operator precedence with a stack: && and || with jumps, ! as a prefix; a comparison is read as a whole.
class ConditionParser {
 public:
  ConditionParser(std::string_view text, const Pattern& pattern, const RegexCompiler& regex, DiagnosticSink* sink)
      : text_(text), lexer_(text, sink), pattern_(pattern), regex_(regex), sink_(*sink) {}

  std::optional<Condition> Parse() {
    for (;;) {
      if (condition_.steps_.size() + open_.size() > Condition::kMaxSteps) {
        lexer_.Error("the condition is too long");
        return std::nullopt;
      }
      if (lexer_.TakeIf("!")) {
        open_.push_back({kNotPrecedence, 0, {}});
        continue;
      }
      if (lexer_.token().Is("(")) {
        open_.push_back({0, 0, lexer_.Take().range});
        continue;
      }
      if (!Comparison()) return std::nullopt;
      Reduce(kNotPrecedence);
      while (lexer_.token().Is(")")) {
        Reduce(kOrPrecedence);
        if (open_.empty()) break;
        lexer_.Take();
        open_.pop_back();
        Reduce(kNotPrecedence);
      }
      if (lexer_.token().Is("&&") || lexer_.token().Is("||")) {
        const bool is_and = lexer_.Take().text == "&&";
        Reduce(is_and ? kAndPrecedence : kOrPrecedence);
        condition_.steps_.push_back({is_and ? Condition::Code::kAnd : Condition::Code::kOr});
        open_.push_back({is_and ? kAndPrecedence : kOrPrecedence, condition_.steps_.size() - 1, {}});
        continue;
      }
      break;
    }
    Reduce(kOrPrecedence);
    if (lexer_.token().kind != TokenKind::kEnd) {
      lexer_.Error(StrCat("expected `&&` or `||`, found ", lexer_.DescribeToken()));
      return std::nullopt;
    }
    if (!open_.empty()) {
      sink_.Error(DiagnosticKind::kUnexpectedToken, open_.back().range, "missing `)`");
      return std::nullopt;
    }
    return std::move(condition_);
  }

 private:
  struct Open {
    int precedence;  // 0: a parenthesis
    size_t jump;     // of && and ||
    SourceRange range;
  };
  struct Operand {
    FieldType type;
    bool is_constant = false;
    SourceRange range;
    std::string text;  // of a constant
  };

  // Completes the operators on the stack that bind at least as strongly.
  void Reduce(int precedence) {
    while (!open_.empty() && open_.back().precedence >= precedence) {
      if (open_.back().precedence == kNotPrecedence) {
        condition_.steps_.push_back({Condition::Code::kNot});
      } else {
        condition_.steps_[open_.back().jump].a = static_cast<uint32_t>(condition_.steps_.size());
      }
      open_.pop_back();
    }
  }

  void Constant(FieldValue value) {
    condition_.constants_.push_back(std::move(value));
    condition_.steps_.push_back({Condition::Code::kConstant, static_cast<uint32_t>(condition_.constants_.size() - 1)});
  }

  bool Value(Operand* operand) {
    operand->range = lexer_.token().range;
    int variable = -1;
    if (lexer_.token().kind == TokenKind::kVariable) {
      const std::string name(lexer_.token().text);
      variable = pattern_.Find(name);
      if (variable < 0) {
        std::vector<std::string_view> known(pattern_.variables().begin(), pattern_.variables().end());
        return lexer_.Error(StrCat("the pattern has no variable `%", name, "`"), DidYouMean(name, known));
      }
      lexer_.Take();
      if (!lexer_.TakeIf(".")) {
        return lexer_.Error(StrCat("expected `.` and a field of `%", name, "`, found ", lexer_.DescribeToken()));
      }
    }
    if (variable < 0 && lexer_.token().kind == TokenKind::kNumber) {
      operand->type = FieldType::kNumber;
      operand->is_constant = true;
      Constant(lexer_.Take().number);
      return true;
    }
    if (variable < 0 && lexer_.token().kind == TokenKind::kString) {
      operand->type = FieldType::kText;
      operand->is_constant = true;
      operand->text = lexer_.Take().value;
      Constant(operand->text);
      return true;
    }
    if (lexer_.token().kind != TokenKind::kName) {
      return lexer_.Error(StrCat("expected a field, a number or a text in quotes, found ", lexer_.DescribeToken()));
    }
    const std::string_view name = lexer_.token().text;
    if (variable < 0 && (name == "true" || name == "false")) {
      operand->type = FieldType::kBool;
      operand->is_constant = true;
      Constant(name == "true");
      lexer_.Take();
      return true;
    }
    const std::optional<Field> field = Field::Find(name);
    if (!field) {
      std::string hint = DidYouMean(name, Field::Names());
      if (hint.empty()) hint = "texts are in quotes; hlo-inspect find --fields lists the fields";
      return lexer_.Error(StrCat("unknown field `", name, "`"), std::move(hint));
    }
    operand->type = field->type();
    condition_.fields_.push_back(*field);
    condition_.steps_.push_back(
        {Condition::Code::kField, static_cast<uint32_t>(condition_.fields_.size() - 1), variable});
    const SourceRange last = lexer_.Take().range;
    operand->range.size = last.offset + last.size - operand->range.offset;
    return true;
  }

  bool Comparison() {
    constexpr std::array<std::string_view, 6> kComparisons = {"==", "!=", "<", "<=", ">", ">="};
    Operand left;
    if (!Value(&left)) return false;
    const Token sign = lexer_.token();
    for (size_t k = 0; k < kComparisons.size(); ++k) {
      if (!sign.Is(kComparisons[k])) continue;
      lexer_.Take();
      Operand right;
      if (!Value(&right)) return false;
      if (left.type != right.type) {
        sink_.Error(DiagnosticKind::kUnexpectedToken, right.range,
                    StrCat("`", Text(left.range), "` is ", NameOf(left.type), ", `", Text(right.range), "` is ",
                           NameOf(right.type)));
        return false;
      }
      if (left.type == FieldType::kBool && k > 1) {
        sink_.Error(DiagnosticKind::kUnexpectedToken, sign.range, StrCat("`", sign.text, "` of true or false"));
        return false;
      }
      condition_.steps_.push_back({Condition::Code::kCompare, static_cast<uint32_t>(k)});
      return true;
    }
    if (sign.Is("~") || sign.Is("!~")) return Search(left, sign);
    if (sign.Is("=")) return lexer_.Error("expected `==`");
    if (left.is_constant && left.type != FieldType::kBool) {
      return lexer_.Error(StrCat("expected a comparison after ", "`", Text(left.range), "`"));
    }
    return true;
  }

  bool Search(const Operand& left, const Token& sign) {
    if (left.type != FieldType::kText) {
      sink_.Error(DiagnosticKind::kUnexpectedToken, left.range,
                  StrCat("`", sign.text, "` takes a text, `", Text(left.range), "` is ", NameOf(left.type)));
      return false;
    }
    lexer_.Take();
    const Token expression = lexer_.token();
    if (expression.kind != TokenKind::kString) {
      return lexer_.Error(StrCat("expected a regular expression in quotes, found ", lexer_.DescribeToken()));
    }
    lexer_.Take();
    absl::StatusOr<TextPredicate> found =
        regex_ ? regex_(expression.value) : absl::UnimplementedError("regular expressions are not supported here");
    if (!found.ok()) {
      sink_.Error(DiagnosticKind::kUnexpectedToken, expression.range, std::string(found.status().message()));
      return false;
    }
    condition_.predicates_.push_back(*std::move(found));
    condition_.steps_.push_back({Condition::Code::kFound, static_cast<uint32_t>(condition_.predicates_.size() - 1)});
    if (sign.Is("!~")) condition_.steps_.push_back({Condition::Code::kNot});
    return true;
  }

  std::string_view Text(SourceRange range) const { return text_.substr(range.offset, range.size); }

  const std::string_view text_;
  QueryLexer lexer_;
  const Pattern& pattern_;
  const RegexCompiler& regex_;
  DiagnosticSink& sink_;
  Condition condition_;
  std::vector<Open> open_;
};

std::optional<Condition> Condition::Parse(std::string_view text, const Pattern& pattern, const RegexCompiler& regex,
                                          DiagnosticSink* sink) {
  return ConditionParser(text, pattern, regex, sink).Parse();
}

bool Condition::IsTrue(const FieldValue& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b;
  return !std::holds_alternative<Absent>(value);
}

bool Condition::Compare(Comparison comparison, const FieldValue& x, const FieldValue& y) {
  if (std::holds_alternative<Absent>(x) || std::holds_alternative<Absent>(y)) {
    return comparison == Comparison::kNotEqual;
  }
  switch (comparison) {
    case Comparison::kEqual:
      return x == y;
    case Comparison::kNotEqual:
      return x != y;
    case Comparison::kLess:
      return x < y;
    case Comparison::kLessEqual:
      return x <= y;
    case Comparison::kGreater:
      return x > y;
    case Comparison::kGreaterEqual:
      return x >= y;
  }
  return false;
}

bool Condition::Holds(const Match& match, FieldContext* context) const {
  std::vector<FieldValue> stack;
  const auto pop = [&] {
    FieldValue value = std::move(stack.back());
    stack.pop_back();
    return value;
  };
  for (size_t at = 0; at < steps_.size();) {
    const Step& step = steps_[at++];
    switch (step.code) {
      case Code::kConstant:
        stack.push_back(constants_[step.a]);
        break;
      case Code::kField: {
        const Instruction i = step.b < 0 ? match.root : match.variables[static_cast<size_t>(step.b)];
        stack.push_back(fields_[step.a].Of(i, context));
        break;
      }
      case Code::kCompare: {
        const FieldValue y = pop(), x = pop();
        stack.emplace_back(Compare(static_cast<Comparison>(step.a), x, y));
        break;
      }
      case Code::kFound: {
        const FieldValue x = pop();
        const std::string* const text = std::get_if<std::string>(&x);
        stack.emplace_back(text != nullptr && predicates_[step.a](*text));
        break;
      }
      case Code::kNot: {
        const bool truth = IsTrue(pop());
        stack.emplace_back(!truth);
        break;
      }
      case Code::kAnd:
      case Code::kOr: {
        const bool truth = IsTrue(stack.back());
        if (truth == (step.code == Code::kOr)) {
          at = step.a;
        } else {
          stack.pop_back();
        }
        break;
      }
    }
  }
  return IsTrue(stack.back());
}

}  // namespace hlokit::query
