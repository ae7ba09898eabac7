// SPDX-License-Identifier: Apache-2.0
// Operators of scripts: Python's arithmetic on numbers, ops on tensors.
#include <cmath>
#include <limits>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/script/script_runner.h"

namespace hlokit::lazy::script {
namespace {

std::string_view SymbolOfOperator(Operator op) {
  constexpr std::string_view kTexts[] = {"+",  "-", "*",  "/", "//", "%", "**", "@", "&",   "|",    "^",   "==",
                                         "!=", "<", "<=", ">", ">=", "-", "+",  "~", "not", "grad", "item"};
  return kTexts[static_cast<size_t>(op)];
}

// The op of an operator with a tensor on the left, or on both sides.
std::string_view OpOf(Operator op) {
  constexpr std::string_view kOps[] = {
      "aten::add",         "aten::sub", "aten::mul",    "aten::div",         "aten::floor_divide",
      "aten::remainder",   "aten::pow", "aten::matmul", "aten::bitwise_and", "aten::bitwise_or",
      "aten::bitwise_xor", "aten::eq",  "aten::ne",     "aten::lt",          "aten::le",
      "aten::gt",          "aten::ge",  "aten::neg",    "aten::positive",    "aten::bitwise_not"};
  return kOps[static_cast<size_t>(op)];
}

// The operator with exchanged operands, if that is the same or another one.
bool Exchanged(Operator op, Operator* exchanged) {
  switch (op) {
    case Operator::kAdd:
    case Operator::kMultiply:
    case Operator::kEqual:
    case Operator::kNotEqual:
    case Operator::kAnd:
    case Operator::kOr:
    case Operator::kXor:
      *exchanged = op;
      return true;
    case Operator::kLess:
      *exchanged = Operator::kGreater;
      return true;
    case Operator::kLessEqual:
      *exchanged = Operator::kGreaterEqual;
      return true;
    case Operator::kGreater:
      *exchanged = Operator::kLess;
      return true;
    case Operator::kGreaterEqual:
      *exchanged = Operator::kLessEqual;
      return true;
    default:
      return false;
  }
}

absl::Status Overflow() { return absl::InvalidArgumentError("integer overflow"); }

// Python's // and %, which round down. Requires: b is not 0, and the quotient is in range.
int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
double Remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

absl::StatusOr<Value> IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return absl::InvalidArgumentError("0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return Overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return Overflow();
  }
  return Value(result);
}

absl::StatusOr<Value> IntegerOperator(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      return __builtin_add_overflow(a, b, &result) ? Overflow() : absl::StatusOr<Value>(Value(result));
    case Operator::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? Overflow() : absl::StatusOr<Value>(Value(result));
    case Operator::kMultiply:
      return __builtin_mul_overflow(a, b, &result) ? Overflow() : absl::StatusOr<Value>(Value(result));
    case Operator::kFloorDivide:
    case Operator::kRemainder: {
      if (b == 0) return absl::InvalidArgumentError("integer division by zero");
      if (b == -1) {
        if (op == Operator::kRemainder) return Value(int64_t{0});
        return __builtin_sub_overflow(int64_t{0}, a, &result) ? Overflow() : absl::StatusOr<Value>(Value(result));
      }
      const int64_t quotient = FloorDivide(a, b);
      return op == Operator::kFloorDivide ? Value(quotient) : Value(a - quotient * b);
    }
    case Operator::kPower:
      return IntegerPower(a, b);
    case Operator::kAnd:
      return Value(a & b);
    case Operator::kOr:
      return Value(a | b);
    default:
      return Value(a ^ b);
  }
}

absl::StatusOr<Value> FloatOperator(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return Value(a + b);
    case Operator::kSubtract:
      return Value(a - b);
    case Operator::kMultiply:
      return Value(a * b);
    case Operator::kDivide:
    case Operator::kFloorDivide:
    case Operator::kRemainder:
      if (b == 0) return absl::InvalidArgumentError("division by zero");
      if (op == Operator::kDivide) return Value(a / b);
      return op == Operator::kRemainder ? Value(Remainder(a, b)) : Value(std::floor(a / b));
    case Operator::kPower:
      return Value(std::pow(a, b));
    default:
      return absl::InvalidArgumentError(StrCat("`", SymbolOfOperator(op), "` takes integers"));
  }
}

// Returns 1, 0 or -1, or 2 if `b` is NaN. Exact, as in Python: not every integer has an equal double.
int CompareWithFloat(int64_t a, double b) {
  if (std::isnan(b)) return 2;
  if (b >= 0x1p63) return -1;
  if (b < -0x1p63) return 1;
  const auto whole = static_cast<int64_t>(b);
  if (a != whole) return a < whole ? -1 : 1;
  const double fraction = b - static_cast<double>(whole);
  return fraction > 0 ? -1 : fraction < 0 ? 1 : 0;
}

// Returns 1, 0 or -1, or 2 if a number is NaN.
int Compare(Scalar a, Scalar b) {
  if (!a.is_float() && !b.is_float()) return a.ToInt() < b.ToInt() ? -1 : a.ToInt() > b.ToInt() ? 1 : 0;
  if (!a.is_float()) return CompareWithFloat(a.ToInt(), b.ToDouble());
  if (!b.is_float()) {
    const int order = CompareWithFloat(b.ToInt(), a.ToDouble());
    return order == 2 ? 2 : -order;
  }
  const double x = a.ToDouble(), y = b.ToDouble();
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

bool IsComparison(Operator op) { return op >= Operator::kEqual && op <= Operator::kGreaterEqual; }

bool Holds(Operator op, int order) {
  switch (op) {
    case Operator::kEqual:
      return order == 0;
    case Operator::kNotEqual:
      return order != 0;
    case Operator::kLess:
      return order == -1;
    case Operator::kLessEqual:
      return order == -1 || order == 0;
    case Operator::kGreater:
      return order == 1;
    default:
      return order == 1 || order == 0;
  }
}

}  // namespace

bool ScriptRunner::NumberOperator(Operator op, Scalar a, Scalar b, SourceRange range) {
  if (IsComparison(op)) {
    Push(Value(Holds(op, Compare(a, b))));
    return true;
  }
  const bool integers = !a.is_float() && !b.is_float() && op != Operator::kDivide;
  absl::StatusOr<Value> result = op == Operator::kMatmul ? absl::InvalidArgumentError("`@` takes tensors")
                                 : integers              ? IntegerOperator(op, a.ToInt(), b.ToInt())
                                                         : FloatOperator(op, a.ToDouble(), b.ToDouble());
  if (!result.ok()) return Fail(range, result.status());
  Push(*std::move(result));
  return true;
}

bool ScriptRunner::TensorOperator(Operator op, const Value& a, const Value& b, bool in_place, SourceRange range) {
  if (a.get<Tensor>() != nullptr) return CallNamed(OpOf(op), in_place, {a, b}, range);
  // A number on the left, as in torch.
  Operator exchanged = op;
  if (Exchanged(op, &exchanged)) return CallNamed(OpOf(exchanged), false, {b, a}, range);
  if (op == Operator::kSubtract) return CallNamed("aten::rsub", false, {b, a}, range);
  if (op == Operator::kPower) return CallNamed("aten::pow", false, {a, b}, range);
  if (op == Operator::kDivide) {
    if (!CallNamed("aten::reciprocal", false, {b}, range)) return false;
    const Value inverse = Pop();
    return CallNamed("aten::mul", false, {Value(inverse.single()), a}, range);
  }
  // `//` and `%` need a tensor on the left: a number of the type of the other.
  const Tensor& other = *b.get<Tensor>();
  if (op == Operator::kMatmul) return Error(range, "`@` takes tensors");
  if (!CallNamed("aten::full_like", false, {Value(other), a}, range)) return false;
  const Value number = Pop();
  return CallNamed(OpOf(op), false, {Value(number.single()), b}, range);
}

bool ScriptRunner::Binary(const Instruction& i) {
  const Value right = Pop(), left = Pop();
  const Value &a = left.single(), &b = right.single();
  const auto op = static_cast<Operator>(i.a);
  const Scalar *x = a.get<Scalar>(), *y = b.get<Scalar>();
  if (x != nullptr && y != nullptr) return NumberOperator(op, *x, *y, i.range);
  const bool tensors = (a.get<Tensor>() != nullptr || x != nullptr) && (b.get<Tensor>() != nullptr || y != nullptr);
  if (tensors) return TensorOperator(op, a, b, i.b != 0, i.range);
  const bool equality = op == Operator::kEqual || op == Operator::kNotEqual;
  const std::string *s = TextOf(a), *t = TextOf(b);
  if (equality && s != nullptr && t != nullptr) {
    Push(Value((*s == *t) == (op == Operator::kEqual)));
    return true;
  }
  if (equality && (a.none() || b.none())) {
    Push(Value((a.none() && b.none()) == (op == Operator::kEqual)));
    return true;
  }
  if (op == Operator::kAdd && a.list() != nullptr && b.list() != nullptr) {
    std::vector<Value> joined = a.list()->values;
    if (joined.size() + b.list()->values.size() <= List::kMaxSize) {
      joined.insert(joined.end(), b.list()->values.begin(), b.list()->values.end());
    } else {
      joined.resize(List::kMaxSize + 1);  // an error
    }
    return PushList(std::move(joined), i.range, false);
  }
  return Error(i.range, StrCat("`", SymbolOfOperator(op), "` of ", a.KindName(), " and ", b.KindName()));
}

bool ScriptRunner::Item(const Value& value, SourceRange range) {
  const Tensor* const t = value.get<Tensor>();
  if (t == nullptr) return Error(range, StrCat("expected a tensor, found ", value.KindName()));
  absl::StatusOr<Scalar> number = Scalar();
  {
    const OthersRun others(context_);
    number = t->Item();
  }
  if (!number.ok()) return Fail(range, number.status());
  Push(Value(*number));
  return true;
}

bool ScriptRunner::Unary(const Instruction& i) {
  const Value operand = Pop();
  const Value& value = operand.single();
  const auto op = static_cast<Operator>(i.a);
  if (op == Operator::kNot) {
    bool truth = false;
    if (!IsTrue(value, i.range, &truth)) return false;
    Push(Value(!truth));
    return true;
  }
  if (op == Operator::kItem) return Item(value, i.range);
  if (op == Operator::kGrad) {
    const Tensor* const t = value.get<Tensor>();
    if (t == nullptr) return Error(i.range, StrCat("expected a tensor, found ", value.KindName()));
    if (!t->grad().defined()) {
      // The operand follows the word.
      const std::string_view text = TextAt(i.range);
      const size_t skipped = std::min(text.find_first_not_of(" \t(", 4), text.size());
      const SourceRange range = {i.range.offset + static_cast<uint32_t>(skipped),
                                 i.range.size - static_cast<uint32_t>(skipped)};
      std::string_view name = TextAt(range);
      if (name.ends_with(')')) name.remove_suffix(1);
      return Error(range, StrCat("`", name, "` has no gradient"));
    }
    Push(Value(t->grad()));
    return true;
  }
  if (value.get<Tensor>() != nullptr) {
    if (op == Operator::kPlus) {
      Push(value);
      return true;
    }
    return CallNamed(OpOf(op), false, {value}, i.range);
  }
  const Scalar* const number = value.get<Scalar>();
  if (number == nullptr) return Error(i.range, StrCat("`", SymbolOfOperator(op), "` of ", value.KindName()));
  if (op == Operator::kPlus) {
    Push(number->kind() == Scalar::Kind::kBool ? Value(number->ToInt()) : value);
  } else if (op == Operator::kInvert) {
    if (number->is_float()) return Error(i.range, "`~` takes integers");
    Push(Value(~number->ToInt()));
  } else if (number->is_float()) {
    Push(Value(-number->ToDouble()));
  } else if (number->ToInt() == std::numeric_limits<int64_t>::min()) {
    return Fail(i.range, Overflow());
  } else {
    Push(Value(-number->ToInt()));
  }
  return true;
}

bool ScriptRunner::Index(const Instruction& i) {
  const Value at = Pop(), whole = Pop();
  const Value& value = whole.single();
  const Scalar* const number = at.single().get<Scalar>();
  if (number == nullptr || number->is_float()) return Error(i.range, "an index is an integer");
  if (value.get<Tensor>() != nullptr) {
    return CallNamed("aten::select", false, {value, Value(int64_t{0}), Value(number->ToInt())}, i.range);
  }
  if (value.list() == nullptr) return Error(i.range, StrCat("expected a list or a tensor, found ", value.KindName()));
  const std::vector<Value>& members = value.list()->values;
  const auto size = static_cast<int64_t>(members.size());
  const int64_t index = number->ToInt();
  if (index < -size || index >= size)
    return Error(i.range, StrCat("index ", index, " is out of range for a list of ", size));
  Push(members[static_cast<size_t>(index < 0 ? index + size : index)]);
  return true;
}

}  // namespace hlokit::lazy::script
