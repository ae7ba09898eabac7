// SPDX-License-Identifier: Apache-2.0
// Elementwise instructions: one row of functions per opcode, for floats, integers, complex numbers and pred.
//
// Floats are computed in double and rounded once (f32 and narrower types to f32 first), and complex numbers where a row
// specifies it. Integers are computed in 64 bits and wrap at their width.
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "interp/reference/complex_math.h"
#include "interp/reference/ops.h"
#include "ir/core/str_cat.h"

namespace hlokit::reference {
namespace {

// A function of elements of an integer type of `bits` bits, for signed and unsigned values.
struct IntegerFn {
  int64_t (*of_signed)(int64_t a, int64_t b, int bits) = nullptr;
  uint64_t (*of_unsigned)(uint64_t a, uint64_t b, int bits) = nullptr;
  constexpr IntegerFn() = default;
  template <typename F>
  constexpr IntegerFn(F f) : of_signed(f), of_unsigned(f) {}  // NOLINT: a column
};
struct ComplexFn {
  C64 (*narrow)(C64 a, C64 b) = nullptr;
  C128 (*wide)(C128 a, C128 b) = nullptr;
  constexpr ComplexFn() = default;
  template <typename F>
  constexpr ComplexFn(F f) : narrow(f), wide(f) {}  // NOLINT: a column
};

struct ElementRow {
  Opcode opcode;
  double (*real)(double a, double b) = nullptr;
  IntegerFn integer = {};
  ComplexFn complex = {};
  bool (*pred)(bool a, bool b) = nullptr;
};

#define REAL(expression) [](double a, [[maybe_unused]] double b) -> double { return expression; }
#define INTEGER(expression) \
  []<typename T>(T a, [[maybe_unused]] T b, [[maybe_unused]] int bits) -> T { return static_cast<T>(expression); }
// Computes in the type itself, or in complex<double> rounded once.
#define COMPLEX(expression) []<typename T>(T a, [[maybe_unused]] T b) -> T { return expression; }
#define COMPLEX_IN_DOUBLE(expression)              \
  []<typename T>(T x, [[maybe_unused]] T y) -> T { \
    const C128 a(x);                               \
    [[maybe_unused]] const C128 b(y);              \
    return T(expression);                          \
  }
#define PRED(expression) [](bool a, [[maybe_unused]] bool b) -> bool { return expression; }

uint64_t Unsigned(int64_t v) { return static_cast<uint64_t>(v); }
uint64_t Unsigned(uint64_t v) { return v; }
// Returns the `bits` bits of the value.
template <typename T>
uint64_t BitsOfValue(T v, int bits) {
  return Unsigned(v) & (~uint64_t{0} >> (64 - bits));
}
// Returns a / b. Division by zero gives all ones; the minimum divided by -1 gives the minimum.
template <typename T>
T Quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if (b == static_cast<T>(-1) && std::is_signed_v<T>) return static_cast<T>(-Unsigned(a));
  return a / b;
}
template <typename T>
T Rest(T a, T b) {
  if (b == 0) return a;
  if (b == static_cast<T>(-1) && std::is_signed_v<T>) return 0;
  return a % b;
}
// Returns the upper half of the product.
template <typename T>
T UpperHalf(T a, T b, int bits) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> bits);
}
// Returns a^b. Negative exponents give the integer part of the fraction.
template <typename T>
T IntegerPower(T a, T b) {
  if (std::is_signed_v<T> && b < 0) return a == 1 ? 1 : a == static_cast<T>(-1) ? (b % 2 == 0 ? 1 : a) : 0;
  uint64_t result = 1;
  uint64_t factor = Unsigned(a);
  for (uint64_t e = Unsigned(b); e != 0; e >>= 1, factor *= factor) {
    if ((e & 1) != 0) result *= factor;
  }
  return static_cast<T>(result);
}
// Returns a << b. Shifts by negative amounts or at least the width give the limit of shifting bit by bit.
template <typename T>
T ShiftedLeft(T a, T b, int bits) {
  return BitsOfValue(b, bits) < static_cast<uint64_t>(bits) ? static_cast<T>(Unsigned(a) << b) : 0;
}
template <typename T>
T ShiftedLogical(T a, T b, int bits) {
  return BitsOfValue(b, bits) < static_cast<uint64_t>(bits) ? static_cast<T>(BitsOfValue(a, bits) >> b) : 0;
}
template <typename T>
T ShiftedArithmetic(T a, T b, int bits) {
  const int64_t extended = static_cast<int64_t>(Unsigned(a) << (64 - bits)) >> (64 - bits);
  return static_cast<T>(extended >> (BitsOfValue(b, bits) < static_cast<uint64_t>(bits) ? static_cast<int>(b) : 63));
}

// Opcodes whose operands and result have one type. Maximum and minimum return a NaN operand, the first one if both are;
// zeros of either sign are equal, and the first one wins.
const ElementRow kElementRows[] = {
    {Opcode::kAbs, REAL(std::fabs(a)), INTEGER(a < 0 ? -Unsigned(a) : a)},
    {Opcode::kAcos, REAL(std::acos(a)), {}, COMPLEX_IN_DOUBLE(std::acos(a))},
    {Opcode::kAcosh, REAL(std::acosh(a)), {}, COMPLEX_IN_DOUBLE(std::acosh(a))},
    {Opcode::kAdd, REAL(a + b), INTEGER(Unsigned(a) + Unsigned(b)), COMPLEX(a + b), PRED(a || b)},
    {Opcode::kAnd, nullptr, INTEGER(a& b), {}, PRED(a&& b)},
    {Opcode::kAsin, REAL(std::asin(a)), {}, COMPLEX_IN_DOUBLE(std::asin(a))},
    {Opcode::kAsinh, REAL(std::asinh(a)), {}, COMPLEX_IN_DOUBLE(std::asinh(a))},
    {Opcode::kAtan2, REAL(std::atan2(a, b)), {}, COMPLEX_IN_DOUBLE(ComplexAtan2(a, b))},
    {Opcode::kAtanh, REAL(std::atanh(a)), {}, COMPLEX_IN_DOUBLE(std::atanh(a))},
    {Opcode::kCbrt, REAL(std::cbrt(a)), {}, COMPLEX_IN_DOUBLE(ComplexCbrt(a))},
    {Opcode::kCeil, REAL(std::ceil(a))},
    {Opcode::kClz, nullptr, INTEGER(std::countl_zero(BitsOfValue(a, bits)) - (64 - bits))},
    {Opcode::kCos, REAL(std::cos(a)), {}, COMPLEX_IN_DOUBLE(std::cos(a))},
    {Opcode::kCosh, REAL(std::cosh(a)), {}, COMPLEX_IN_DOUBLE(std::cosh(a))},
    {Opcode::kDivide, REAL(a / b), INTEGER(Quotient(a, b)), COMPLEX(a / b)},
    {Opcode::kErf, REAL(std::erf(a))},
    {Opcode::kExp, REAL(std::exp(a)), {}, COMPLEX_IN_DOUBLE(ComplexExp(a))},
    {Opcode::kExpm1, REAL(std::expm1(a)), {}, COMPLEX_IN_DOUBLE(ComplexExpm1(a))},
    {Opcode::kFloor, REAL(std::floor(a))},
    {Opcode::kLog, REAL(std::log(a)), {}, COMPLEX_IN_DOUBLE(std::log(a))},
    {Opcode::kLog1p, REAL(std::log1p(a)), {}, COMPLEX_IN_DOUBLE(ComplexLog1p(a))},
    {Opcode::kLogistic, REAL(1 / (1 + std::exp(-a))), {}, COMPLEX_IN_DOUBLE(C128(1) / (C128(1) + std::exp(-a)))},
    {Opcode::kMaximum, REAL(a >= b || a != a ? a : b), INTEGER(a >= b ? a : b), {}, PRED(a || b)},
    {Opcode::kMinimum, REAL(a <= b || a != a ? a : b), INTEGER(a <= b ? a : b), {}, PRED(a&& b)},
    {Opcode::kMulhi, nullptr, INTEGER(UpperHalf(a, b, bits))},
    {Opcode::kMultiply, REAL(a* b), INTEGER(Unsigned(a) * Unsigned(b)), COMPLEX(a* b), PRED(a&& b)},
    {Opcode::kNegate, REAL(-a), INTEGER(-Unsigned(a)), COMPLEX(-a)},
    {Opcode::kNot, REAL(a == 0 ? 1 : 0), INTEGER(~a), COMPLEX(a == T(0) ? T(1) : T(0)), PRED(!a)},
    {Opcode::kOr, nullptr, INTEGER(a | b), {}, PRED(a || b)},
    {Opcode::kPopulationCount, nullptr, INTEGER(std::popcount(BitsOfValue(a, bits)))},
    {Opcode::kPower, REAL(std::pow(a, b)), INTEGER(IntegerPower(a, b)), COMPLEX_IN_DOUBLE(ComplexPower(a, b))},
    {Opcode::kRemainder, REAL(std::fmod(a, b)), INTEGER(Rest(a, b))},
    {Opcode::kRoundNearestAfz, REAL(std::round(a))},
    {Opcode::kRoundNearestEven, REAL(std::nearbyint(a))},
    {Opcode::kRsqrt, REAL(1 / std::sqrt(a)), {}, COMPLEX_IN_DOUBLE(ComplexRsqrt(a))},
    {Opcode::kShiftLeft, nullptr, INTEGER(ShiftedLeft(a, b, bits))},
    {Opcode::kShiftRightArithmetic, nullptr, INTEGER(ShiftedArithmetic(a, b, bits))},
    {Opcode::kShiftRightLogical, nullptr, INTEGER(ShiftedLogical(a, b, bits))},
    {Opcode::kSign,
     REAL(a > 0   ? 1
          : a < 0 ? -1
                  : a),
     INTEGER((a > 0) - (a < 0)), COMPLEX_IN_DOUBLE(ComplexSign(a))},
    {Opcode::kSin, REAL(std::sin(a)), {}, COMPLEX_IN_DOUBLE(std::sin(a))},
    {Opcode::kSinh, REAL(std::sinh(a)), {}, COMPLEX_IN_DOUBLE(std::sinh(a))},
    {Opcode::kSqrt, REAL(std::sqrt(a)), {}, COMPLEX_IN_DOUBLE(std::sqrt(a))},
    {Opcode::kSubtract, REAL(a - b), INTEGER(Unsigned(a) - Unsigned(b)), COMPLEX(a - b), PRED(a != b)},
    {Opcode::kTan, REAL(std::tan(a)), {}, COMPLEX_IN_DOUBLE(std::tan(a))},
    {Opcode::kTanh, REAL(std::tanh(a)), {}, COMPLEX_IN_DOUBLE(std::tanh(a))},
    {Opcode::kXor, nullptr, INTEGER(a ^ b), {}, PRED(a != b)},
};

// Returns the position of element i of operand `k`; scalar operands of clamp and select are broadcast.
int64_t Place(const Op& op, size_t k, int64_t i) { return op.in(k).rank() == 0 ? 0 : i; }

// `compare`: by direction. Floats by value, with NaN unordered, or by totalOrder.
void Compare(Op& op) {
  const Array &a = op.in(0), &b = op.in(1);
  const auto direction = op.instruction.enum_attr(Attr::kDirection, ComparisonDirection::kEq);
  const bool total =
      op.instruction.enum_attr(Attr::kCompareType, ComparisonType::kFloat) == ComparisonType::kTotalOrder;
  const auto holds = [&](auto x, auto y) {
    switch (direction) {
      case ComparisonDirection::kEq:
        return x == y;
      case ComparisonDirection::kNe:
        return x != y;
      case ComparisonDirection::kGe:
        return x >= y;
      case ComparisonDirection::kGt:
        return x > y;
      case ComparisonDirection::kLe:
        return x <= y;
      case ComparisonDirection::kLt:
        return x < y;
    }
    return false;
  };
  if (IsComplex(a.type()) && direction != ComparisonDirection::kEq && direction != ComparisonDirection::kNe) {
    return op.Fail("complex numbers have no order");
  }
  op.ForEach(op.out().count(), [&](int64_t i) {
    bool result;
    if (IsComplex(a.type())) {
      result = (a.Complex(i) == b.Complex(i)) == (direction == ComparisonDirection::kEq);
    } else if (IsFloat(a.type()) && total) {
      result = holds(TotalOrderKey(a.Real(i)), TotalOrderKey(b.Real(i)));
    } else if (IsFloat(a.type())) {
      result = holds(a.Real(i), b.Real(i));
    } else if (a.type() == ElementType::kU64) {
      result = holds(Unsigned(a.Integer(i)), Unsigned(b.Integer(i)));
    } else {
      result = holds(a.Integer(i), b.Integer(i));
    }
    op.out().SetInteger(i, result);
  });
}

// `clamp`: returns the first NaN in the order low, value, high.
void Clamp(Op& op) {
  const auto clamp = [](auto low, auto value, auto high) {
    const auto at_least = low >= value || low != low ? low : value;
    return at_least <= high || at_least != at_least ? at_least : high;
  };
  const Array &low = op.in(0), &value = op.in(1), &high = op.in(2);
  op.ForEach(op.out().count(), [&](int64_t i) {
    const int64_t l = Place(op, 0, i), h = Place(op, 2, i);
    if (IsFloat(value.type())) {
      op.out().SetReal(i, clamp(low.Real(l), value.Real(i), high.Real(h)));
    } else if (value.type() == ElementType::kU64) {
      const uint64_t v = clamp(Unsigned(low.Integer(l)), Unsigned(value.Integer(i)), Unsigned(high.Integer(h)));
      op.out().SetInteger(i, static_cast<int64_t>(v));
    } else {
      op.out().SetInteger(i, clamp(low.Integer(l), value.Integer(i), high.Integer(h)));
    }
  });
}

// `select`
void Select(Op& op) {
  op.ForEach(op.out().count(), [&](int64_t i) {
    const size_t chosen = op.in(0).Integer(Place(op, 0, i)) != 0 ? 1 : 2;
    op.out().CopyElement(i, op.in(chosen), Place(op, chosen, i));
  });
}

// `complex`, `real`, `imag`, and `abs` of complex elements. The magnitude of c64 is computed in float.
void MakeComplex(Op& op) {
  op.ForEach(op.out().count(), [&](int64_t i) { op.out().SetComplex(i, {op.in(0).Real(i), op.in(1).Real(i)}); });
}
void RealPart(Op& op) {
  op.ForEach(op.out().count(), [&](int64_t i) { op.out().SetReal(i, op.in(0).Real(i)); });
}
void ImaginaryPart(Op& op) {
  op.ForEach(op.out().count(), [&](int64_t i) { op.out().SetReal(i, op.in(0).Complex(i).imag()); });
}
void Magnitude(Op& op) {
  op.ForEach(op.out().count(), [&](int64_t i) {
    const C128 v = op.in(0).Complex(i);
    op.out().SetReal(i, std::hypot(v.real(), v.imag()));
  });
}

// `is-finite`
void IsFinite(Op& op) {
  op.ForEach(op.out().count(), [&](int64_t i) {
    const C128 v = op.in(0).Complex(i);
    op.out().SetInteger(i, std::isfinite(v.real()) && std::isfinite(v.imag()));
  });
}

// `convert`
void Convert(Op& op) { ConvertElements(op.run, op.in(0), &op.out()); }

// `reduce-precision`: rounds the mantissa to nearest even; overflow gives infinity, denormals become zero. At least as
// many bits as the type has change nothing; narrow types are handled as f32.
void ReducePrecision(Op& op) {
  struct Widths {
    ElementType type;
    int64_t exponent, mantissa;
  };
  static constexpr Widths kWidths[] = {
      {ElementType::kBF16, 8, 7},       {ElementType::kF16, 5, 10},       {ElementType::kF8E5M2, 5, 2},
      {ElementType::kF8E4M3, 4, 3},     {ElementType::kF8E3M4, 3, 4},     {ElementType::kF8E4M3FN, 4, 3},
      {ElementType::kF8E4M3FNUZ, 4, 3}, {ElementType::kF8E5M2FNUZ, 5, 2}, {ElementType::kF8E4M3B11FNUZ, 4, 3}};
  int64_t exponent_bits = op.instruction.int_attr(Attr::kExponentBits);
  int64_t mantissa_bits = op.instruction.int_attr(Attr::kMantissaBits);
  if (!op.Require(exponent_bits >= 1 && mantissa_bits >= 0, "there are no such bits")) return;
  const ElementType type = op.in(0).type();
  for (const Widths& w : kWidths) {
    if (w.type == type && exponent_bits >= w.exponent) exponent_bits = 63;
    if (w.type == type && mantissa_bits >= w.mantissa) mantissa_bits = 63;
  }
  const int mantissa = type == ElementType::kF64 ? 52 : 23;  // bits of the type
  const int exponent = type == ElementType::kF64 ? 11 : 8;
  const uint64_t sign = uint64_t{1} << (mantissa + exponent);
  const uint64_t infinity = ((uint64_t{1} << exponent) - 1) << mantissa;
  op.ForEach(op.out().count(), [&](int64_t i) {
    const double x = op.in(0).Real(i);
    uint64_t v = mantissa == 52 ? std::bit_cast<uint64_t>(x) : std::bit_cast<uint32_t>(static_cast<float>(x));
    if (x != x) {
      // Without mantissa bits there is no NaN to round to.
      if (mantissa_bits == 0) v = (v & sign) | infinity;
    } else {
      if (mantissa_bits < mantissa) {
        const int64_t drop = mantissa - mantissa_bits;
        v += (uint64_t{1} << (drop - 1)) - 1 + ((v >> drop) & 1);
        v &= ~((uint64_t{1} << drop) - 1);
      }
      if (exponent_bits < exponent) {
        const uint64_t bias = (uint64_t{1} << (exponent - 1)) - 1;
        const uint64_t reduced = (uint64_t{1} << (exponent_bits - 1)) - 1;
        const uint64_t at = (v & infinity) >> mantissa;
        if (at > bias + reduced) v = (v & sign) | infinity;
        if (at <= bias - reduced) v &= sign;
      }
    }
    op.out().SetReal(i, mantissa == 52 ? std::bit_cast<double>(v) : std::bit_cast<float>(static_cast<uint32_t>(v)));
  });
}

// Returns the function of opcodes that kElementRows cannot describe.
void (*SpecialFunction(Opcode opcode, ElementType type))(Op&) {
  static constexpr std::pair<Opcode, void (*)(Op&)> kSpecial[] = {
      {Opcode::kCompare, Compare},     {Opcode::kClamp, Clamp},     {Opcode::kSelect, Select},
      {Opcode::kComplex, MakeComplex}, {Opcode::kReal, RealPart},   {Opcode::kImag, ImaginaryPart},
      {Opcode::kIsFinite, IsFinite},   {Opcode::kConvert, Convert}, {Opcode::kReducePrecision, ReducePrecision}};
  for (const auto& [special, function] : kSpecial) {
    if (special == opcode) return function;
  }
  return opcode == Opcode::kAbs && IsComplex(type) ? Magnitude : nullptr;
}

}  // namespace

int64_t TotalOrderKey(double v) {
  const int64_t bits = std::bit_cast<int64_t>(v);
  return bits ^ static_cast<int64_t>(static_cast<uint64_t>(bits >> 63) >> 1);
}

// `convert`: to pred, nonzero is true; complex numbers lose their imaginary part; floats are truncated toward zero and
// saturate, NaN becomes 0. Conversions to float round once.
void ConvertElements(Run& run, const Array& from, Array* to) {
  const ElementType source = from.type(), target = to->type();
  if (source == target) return to->CopyBytes(from);
  for (int64_t i = 0; i < to->count() && run.Tick(); ++i) {
    if (target == ElementType::kPred) {
      const bool zero = IsInteger(source) ? from.Integer(i) == 0 : from.Complex(i) == C128(0);
      to->SetInteger(i, zero ? 0 : 1);
    } else if (IsComplex(target)) {
      // Converts through the component type: an integer is rounded once.
      const bool is_integer = IsInteger(source) && target == ElementType::kC64;
      const long double is_exact = source == ElementType::kU64 ? static_cast<long double>(Unsigned(from.Integer(i)))
                                                               : static_cast<long double>(from.Integer(i));
      to->SetComplex(i, is_integer ? C128(static_cast<float>(is_exact)) : from.Complex(i));
    } else if (IsFloat(target)) {
      const long double is_exact = source == ElementType::kU64 ? static_cast<long double>(Unsigned(from.Integer(i)))
                                   : IsInteger(source)         ? static_cast<long double>(from.Integer(i))
                                                               : static_cast<long double>(from.Real(i));
      const bool narrow = BitsOf(target) < 32;
      to->SetReal(i, narrow                 ? RoundToOdd(is_exact)
                     : BitsOf(target) == 32 ? static_cast<float>(is_exact)
                                            : static_cast<double>(is_exact));
    } else if (IsFloat(source) || IsComplex(source)) {
      const double v = from.Real(i);
      const int bits = BitsOf(target) - (IsSigned(target) ? 1 : 0);
      const uint64_t max = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      const int64_t min = IsSigned(target) ? static_cast<int64_t>(~max) : 0;
      if (v >= std::ldexp(1.0, bits)) {
        to->SetInteger(i, static_cast<int64_t>(max));
      } else if (v > static_cast<double>(min)) {
        to->SetInteger(i, IsSigned(target) ? static_cast<int64_t>(v) : static_cast<int64_t>(static_cast<uint64_t>(v)));
      } else {
        to->SetInteger(i, v == v ? min : 0);
      }
    } else {
      to->SetInteger(i, from.Integer(i));
    }
  }
}

Leaf Converted(Run& run, const Leaf& leaf, ElementType type) {
  if (leaf->type() == type) return leaf;
  std::shared_ptr<Array> to = run.Allocate(run.program.module->context().shapes.Array(type, leaf->dims()));
  if (to != nullptr) ConvertElements(run, *leaf, to.get());
  return to;
}

namespace fill_ops {

// Opcodes whose elements depend only on operand elements with the same index.
void Elementwise(Op& op) {
  const ElementType type = op.in(0).type();
  const Opcode opcode = op.instruction.opcode();
  if (const auto special = SpecialFunction(opcode, type)) return special(op);
  const ElementRow* row = nullptr;
  for (const ElementRow& candidate : kElementRows) {
    if (candidate.opcode == opcode) row = &candidate;
  }
  const Array& a = op.in(0);
  const Array& b = op.operands.size() > 1 ? op.in(1) : a;
  Array& out = op.out();
  if (row != nullptr && IsFloat(type) && row->real != nullptr) {
    op.ForEach(out.count(), [&](int64_t i) { out.SetReal(i, row->real(a.Real(i), b.Real(i))); });
  } else if (row != nullptr && IsSigned(type) && row->integer.of_signed != nullptr) {
    op.ForEach(out.count(),
               [&](int64_t i) { out.SetInteger(i, row->integer.of_signed(a.Integer(i), b.Integer(i), BitsOf(type))); });
  } else if (row != nullptr && IsUnsigned(type) && row->integer.of_unsigned != nullptr) {
    op.ForEach(out.count(), [&](int64_t i) {
      const uint64_t v = row->integer.of_unsigned(Unsigned(a.Integer(i)), Unsigned(b.Integer(i)), BitsOf(type));
      out.SetInteger(i, static_cast<int64_t>(v));
    });
  } else if (row != nullptr && type == ElementType::kC64 && row->complex.narrow != nullptr) {
    op.ForEach(out.count(),
               [&](int64_t i) { out.SetComplex(i, C128(row->complex.narrow(C64(a.Complex(i)), C64(b.Complex(i))))); });
  } else if (row != nullptr && type == ElementType::kC128 && row->complex.wide != nullptr) {
    op.ForEach(out.count(), [&](int64_t i) { out.SetComplex(i, row->complex.wide(a.Complex(i), b.Complex(i))); });
  } else if (row != nullptr && type == ElementType::kPred && row->pred != nullptr) {
    op.ForEach(out.count(), [&](int64_t i) { out.SetInteger(i, row->pred(a.Integer(i) != 0, b.Integer(i) != 0)); });
  } else {
    op.Fail(StrCat("cannot evaluate ", ToString(opcode), " of ", ToString(type)));
  }
}

// `stochastic-convert`: rounds away from zero if the random bits are below the discarded fraction. For bf16, adds
// random bits to the discarded bits and keeps the carry.
void StochasticConvert(Op& op) {
  const Array &from = op.in(0), &random = op.in(1);
  Array& to = op.out();
  const bool to_bf16 = to.type() == ElementType::kBF16 && from.type() == ElementType::kF32;
  if (!op.Require(IsFloat(from.type()) && IsUnsigned(random.type()) && BitsOf(random.type()) == BitsOf(from.type()) &&
                      (IsIndexType(to.type()) || to_bf16),
                  "stochastic-convert of these types is not supported")) {
    return;
  }
  const int bits = BitsOf(to.type()) - (IsSigned(to.type()) ? 1 : 0);
  const int64_t max = static_cast<int64_t>(bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
  const int64_t min = IsSigned(to.type()) ? -max - 1 : 0;
  op.ForEach(to.count(), [&](int64_t i) {
    const double v = from.Real(i);
    const uint64_t r = Unsigned(random.Integer(i));
    if (to_bf16) {
      const uint32_t word = std::bit_cast<uint32_t>(static_cast<float>(v));
      const uint32_t rounded = std::isfinite(v) ? (word + static_cast<uint32_t>(r & 0xffff)) & 0xffff0000u : word;
      return to.SetReal(i, std::bit_cast<float>(rounded));
    }
    if (v != v) return to.SetInteger(i, 0);
    if (v >= std::ldexp(1.0, bits) - 1) return to.SetInteger(i, max);
    if (v <= static_cast<double>(min)) return to.SetInteger(i, min);
    double magnitude = std::floor(std::fabs(v));
    const double fraction = std::ldexp(std::fabs(v) - magnitude, BitsOf(random.type()));
    if (static_cast<double>(r) < std::floor(fraction)) magnitude += 1;
    to.SetInteger(i, static_cast<int64_t>(v < 0 ? -magnitude : magnitude));
  });
}

}  // namespace fill_ops
}  // namespace hlokit::reference
