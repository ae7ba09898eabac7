// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/refine/size_expression.h"

#include <algorithm>
#include <charconv>

namespace hlokit::stablehlo {
namespace {

using Value = std::optional<int64_t>;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

Value Multiply(Value a, Value b) {
  int64_t product = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &product)) return std::nullopt;
  return product;
}

Value AddOf(Value a, Value b) {
  int64_t sum = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &sum)) return std::nullopt;
  return sum;
}

// As in Python, towards minus infinity.
Value FloorDivide(Value a, Value b) {
  if (!a || !b || *b == 0 || *b == -1) return a && b && *b == -1 ? Multiply(a, -1) : std::nullopt;
  const int64_t quotient = *a / *b;
  return quotient - (*a % *b != 0 && (*a < 0) != (*b < 0) ? 1 : 0);
}

class Parser {
 public:
  Parser(std::string_view text, const SizeVariables& variables) : text_(text), variables_(variables) {}

  Value Run() {
    const Value value = Sum(0);
    Skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  static constexpr int kMaxDepth = 64;

  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Take(char c) {
    Skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Value Sum(int depth) {
    Value value = Product(depth);
    while (value) {
      if (Take('+')) {
        value = AddOf(value, Product(depth));
      } else if (Take('-')) {
        value = AddOf(value, Multiply(Product(depth), -1));
      } else {
        break;
      }
    }
    return value;
  }

  Value Product(int depth) {
    Value value = Power(depth);
    while (value && Take('*')) value = Multiply(value, Power(depth));
    return value;
  }

  Value Power(int depth) {
    const Value base = Atom(depth);
    if (!base || !Take('^')) return base;
    const Value exponent = Atom(depth);
    constexpr int64_t kMaxExponent = 62;
    if (!exponent || *exponent < 0 || *exponent > kMaxExponent) return std::nullopt;
    Value value = 1;
    for (int64_t i = 0; i < *exponent; ++i) value = Multiply(value, base);
    return value;
  }

  Value Atom(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    if (Take('-')) return Multiply(Atom(depth + 1), -1);
    if (Take('(')) {
      const Value value = Sum(depth + 1);
      return Take(')') ? value : std::nullopt;
    }
    Skip();
    const size_t begin = at_;
    if (at_ < text_.size() && IsDigit(text_[at_])) {
      int64_t number = 0;
      const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
      at_ = static_cast<size_t>(read.ptr - text_.data());
      return read.ec == std::errc() ? Value(number) : std::nullopt;
    }
    while (at_ < text_.size() && (IsLetter(text_[at_]) || (at_ > begin && IsDigit(text_[at_])))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty()) return std::nullopt;
    if (Take('(')) return Function(name, depth);
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::nullopt : Value(found->second);
  }

  Value Function(std::string_view name, int depth) {
    std::vector<int64_t> values;
    do {
      const Value value = Sum(depth + 1);
      if (!value) return std::nullopt;
      values.push_back(*value);
    } while (Take(','));
    if (!Take(')')) return std::nullopt;
    if (name == "max") return *std::max_element(values.begin(), values.end());
    if (name == "min") return *std::min_element(values.begin(), values.end());
    if (name == "non_negative" && values.size() == 1) return std::max<int64_t>(0, values[0]);
    if (values.size() != 2) return std::nullopt;
    if (name == "floordiv") return FloorDivide(values[0], values[1]);
    if (name == "mod") return AddOf(values[0], Multiply(Multiply(FloorDivide(values[0], values[1]), values[1]), -1));
    return std::nullopt;
  }

  std::string_view text_;
  const SizeVariables& variables_;
  size_t at_ = 0;
};

}  // namespace

std::vector<std::string> VariablesOf(std::string_view expression) {
  std::vector<std::string> names;
  for (size_t at = 0; at < expression.size();) {
    if (!IsLetter(expression[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < expression.size() && (IsLetter(expression[at]) || IsDigit(expression[at]))) ++at;
    std::string name(expression.substr(begin, at - begin));
    const bool function = at < expression.size() && expression[at] == '(';
    if (!function && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::optional<int64_t> EvaluateSize(std::string_view expression, const SizeVariables& variables) {
  return Parser(expression, variables).Run();
}

namespace {

// Returns true if the variable stands in the expression once, and in sums and products alone.
bool IsLinear(std::string_view expression, std::string_view variable) {
  int uses = 0;
  for (size_t at = 0; at < expression.size();) {
    if (expression[at] == '^') return false;
    if (!IsLetter(expression[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < expression.size() && (IsLetter(expression[at]) || IsDigit(expression[at]))) ++at;
    if (at < expression.size() && expression[at] == '(') return false;
    if (expression.substr(begin, at - begin) == variable) ++uses;
  }
  return uses == 1;
}

// The numbers in an expression.
std::vector<int64_t> NumbersOf(std::string_view expression) {
  std::vector<int64_t> numbers;
  for (size_t at = 0; at < expression.size();) {
    int64_t number = 0;
    const auto read = std::from_chars(expression.data() + at, expression.data() + expression.size(), number);
    if (read.ec == std::errc()) numbers.push_back(number);
    at = std::max(at + 1, static_cast<size_t>(read.ptr - expression.data()));
  }
  return numbers;
}

}  // namespace

SizeSolution SolveSize(std::string_view expression, std::string_view variable, int64_t size,
                       const SizeVariables& variables, int64_t* budget) {
  using Kind = SizeSolution::Kind;
  SizeVariables tried = variables;
  int64_t& value = tried[std::string(variable)];
  const auto at = [&](int64_t number) {
    *budget -= static_cast<int64_t>(expression.size());
    value = number;
    return EvaluateSize(expression, tried);
  };
  if (IsLinear(expression, variable)) {
    const Value zero = at(0), slope = AddOf(at(1), Multiply(zero, -1)), rest = AddOf(size, Multiply(zero, -1));
    if (!slope || !rest) return {Kind::kNone};
    if (*slope == 0) return {*rest == 0 ? Kind::kSeveral : Kind::kNone};
    const Value solution = FloorDivide(rest, slope);
    if (!solution || *solution < 0 || at(*solution) != size) return {Kind::kNone};
    return {Kind::kOne, *solution};
  }
  SizeSolution found{Kind::kNone};
  for (int64_t number = 0; number <= kMaxTriedSize; ++number) {
    if (*budget <= 0) return {Kind::kSeveral};
    if (at(number) != size) continue;
    if (found.kind == Kind::kOne) return {Kind::kSeveral};
    found = {Kind::kOne, number};
  }
  if (found.kind != Kind::kOne) return found;
  // A remainder may repeat beyond the values that were tried.
  std::vector<int64_t> periods = NumbersOf(expression);
  for (const auto& [name, period] : variables) periods.push_back(period);
  for (const int64_t period : periods) {
    const Value next = AddOf(found.value, period);
    if (*budget <= 0 || (period > 0 && next && at(*next) == size)) return {Kind::kSeveral};
  }
  return found;
}

}  // namespace hlokit::stablehlo
