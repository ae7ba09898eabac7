// SPDX-License-Identifier: Apache-2.0
// Every code of every type, against a table-driven reference in double arithmetic.
#include "ir/types/float_types.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gtest/gtest.h"

namespace hlokit {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A format, described independently of the code under test.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_sign;
  int max_finite;  // code
  int infinity;    // code of infinity and overflow
  int nan;         // code of NaN
  int minus_nan;   // code of NaN with a sign
  int minus_zero;  // code of -0
};

double ValueOf(const Format& f, int code) {
  const int mantissa = code & ((1 << f.mantissa_bits) - 1);
  const int exponent = code >> f.mantissa_bits;
  if (exponent == 0 && f.has_sign) return std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  return std::ldexp((1 << f.mantissa_bits) + mantissa, exponent - f.bias - f.mantissa_bits);
}

template <typename T>
Format FormatOf();
template <>
Format FormatOf<F4E2M1FN>() {
  return {2, 1, 1, true, 0x7, 0x7, 0x8, 0x0, 0x8};
}
template <>
Format FormatOf<F8E3M4>() {
  return {3, 4, 3, true, 0x6f, 0x70, 0x78, 0xf8, 0x80};
}
template <>
Format FormatOf<F8E4M3>() {
  return {4, 3, 7, true, 0x77, 0x78, 0x7c, 0xfc, 0x80};
}
template <>
Format FormatOf<F8E4M3FN>() {
  return {4, 3, 7, true, 0x7e, 0x7f, 0x7f, 0xff, 0x80};
}
template <>
Format FormatOf<F8E4M3B11FNUZ>() {
  return {4, 3, 11, true, 0x7f, 0x80, 0x80, 0x80, 0x00};
}
template <>
Format FormatOf<F8E4M3FNUZ>() {
  return {4, 3, 8, true, 0x7f, 0x80, 0x80, 0x80, 0x00};
}
template <>
Format FormatOf<F8E5M2>() {
  return {5, 2, 15, true, 0x7b, 0x7c, 0x7e, 0xfe, 0x80};
}
template <>
Format FormatOf<F8E5M2FNUZ>() {
  return {5, 2, 16, true, 0x7f, 0x80, 0x80, 0x80, 0x00};
}
template <>
Format FormatOf<F8E8M0FNU>() {
  return {8, 0, 127, false, 0xfe, 0xff, 0xff, 0xff, 0xff};
}
template <>
Format FormatOf<BF16>() {
  return {8, 7, 127, true, 0x7f7f, 0x7f80, 0x7fc0, 0xffc0, 0x8000};
}
template <>
Format FormatOf<F16>() {
  return {5, 10, 15, true, 0x7bff, 0x7c00, 0x7e00, 0xfe00, 0x8000};
}

template <typename T>
class FloatTypesTest : public testing::Test {
 protected:
  static constexpr int kBits = sizeof(T) == 2 ? 16 : std::is_same_v<T, F4E2M1FN> ? 4 : 8;
  const Format format = FormatOf<T>();
  const int sign = format.has_sign ? 1 << (kBits - 1) : 0;

  // Expects that `v` converts to `code`, and -v to its negative.
  void ExpectCode(double v, int code) {
    EXPECT_EQ(int{T(v).bits()}, code) << "from " << v;
    if (static_cast<double>(static_cast<float>(v)) == v) {
      EXPECT_EQ(int{T(static_cast<float>(v)).bits()}, code) << "from float " << v;
    }
    if (!format.has_sign) {
      EXPECT_EQ(int{T(-v).bits()}, format.nan);
      return;
    }
    const int negative = code == 0 ? format.minus_zero : code == format.nan ? format.minus_nan : code ^ sign;
    EXPECT_EQ(int{T(-v).bits()}, negative) << "from " << -v;
  }
};

using AllTypes = testing::Types<F4E2M1FN, F8E3M4, F8E4M3, F8E4M3FN, F8E4M3B11FNUZ, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
                                F8E8M0FNU, BF16, F16>;
TYPED_TEST_SUITE(FloatTypesTest, AllTypes);

TYPED_TEST(FloatTypesTest, FiniteCodesHaveTheirValueAndComeBack) {
  for (int code = 0; code <= this->format.max_finite; ++code) {
    const double value = ValueOf(this->format, code);
    EXPECT_EQ(static_cast<double>(TypeParam::FromBits(static_cast<decltype(TypeParam().bits())>(code))), value);
    EXPECT_EQ(static_cast<float>(TypeParam::FromBits(static_cast<decltype(TypeParam().bits())>(code))), value);
    this->ExpectCode(value, code);
  }
}

TYPED_TEST(FloatTypesTest, RoundsToNearestTiesToEvenButScalesUp) {
  // 2^-127 and 2^-126 of f8e8m0fnu are checked separately.
  for (int code = this->format.has_sign ? 0 : 1; code < this->format.max_finite; ++code) {
    const double low = ValueOf(this->format, code);
    const double high = ValueOf(this->format, code + 1);
    const double middle = low + (high - low) / 2;
    this->ExpectCode(middle, (code & 1) == 0 && this->format.has_sign ? code : code + 1);
    // Neighbors among floats, which are doubles too.
    this->ExpectCode(std::nextafter(static_cast<float>(middle), 0.0f), code);
    this->ExpectCode(std::nextafter(static_cast<float>(middle), static_cast<float>(high)), code + 1);
  }
}

TYPED_TEST(FloatTypesTest, TooLargeFromHalfAStepOn) {
  const int max = this->format.max_finite;
  const double top = ValueOf(this->format, max);
  const double step = ValueOf(this->format, max + 1) - top;
  // The code after the largest finite one would be odd if that is even, and the tie would go down, but that of a scale.
  const double middle = top + step / 2;
  this->ExpectCode(std::nextafter(static_cast<float>(middle), 0.0f), max);
  this->ExpectCode(middle, (max & 1) == 0 && this->format.has_sign ? max : this->format.infinity);
  if (step < 1e38) this->ExpectCode(std::nextafter(static_cast<float>(middle), kInf), this->format.infinity);
  this->ExpectCode(1e300, this->format.infinity);
  this->ExpectCode(kInf, this->format.infinity);
}

TYPED_TEST(FloatTypesTest, SpecialValues) {
  EXPECT_EQ(int{TypeParam(kNan).bits()}, this->format.nan);
  EXPECT_EQ(int{TypeParam(-kNan).bits()}, this->format.minus_nan);
  EXPECT_EQ(int{TypeParam(std::numeric_limits<float>::quiet_NaN()).bits()}, this->format.nan);
  EXPECT_EQ(int{TypeParam(-0.0).bits()}, this->format.minus_zero);
  EXPECT_EQ(int{TypeParam(0.0).bits()}, this->format.has_sign ? 0 : this->format.nan);
  if (this->format.has_sign) {
    this->ExpectCode(1e-300, 0);
    this->ExpectCode(std::numeric_limits<double>::denorm_min(), 0);
  }
}

TYPED_TEST(FloatTypesTest, CodesAboveTheLargestAreInfinityOrNan) {
  for (int code = 0; code < (1 << this->kBits); ++code) {
    const auto v = TypeParam::FromBits(static_cast<decltype(TypeParam().bits())>(code));
    const int magnitude = code & ~this->sign;
    const bool infinity = std::numeric_limits<TypeParam>::has_infinity && magnitude == this->format.infinity;
    const bool nan = (magnitude > this->format.max_finite && !infinity) ||
                     (std::numeric_limits<TypeParam>::has_quiet_NaN && code == this->format.nan);
    EXPECT_EQ(v.IsNan(), nan) << code;
    EXPECT_EQ(std::isnan(static_cast<float>(v)), nan) << code;
    EXPECT_EQ(std::isinf(static_cast<float>(v)), infinity) << code;
    EXPECT_EQ(std::signbit(static_cast<float>(v)), (code & this->sign) != 0) << code;
  }
}

TYPED_TEST(FloatTypesTest, NumericLimitsAgreeWithTheFormat) {
  using Limits = std::numeric_limits<TypeParam>;
  const Format& f = this->format;
  EXPECT_EQ(int{Limits::max().bits()}, f.max_finite);
  EXPECT_EQ(static_cast<double>(Limits::lowest()), f.has_sign ? -ValueOf(f, f.max_finite) : ValueOf(f, 0));
  EXPECT_EQ(static_cast<double>(Limits::min()), std::ldexp(1, f.has_sign ? 1 - f.bias : -f.bias));
  EXPECT_EQ(static_cast<double>(Limits::epsilon()), std::ldexp(1, -f.mantissa_bits));
  EXPECT_EQ(int{Limits::infinity().bits()}, f.infinity);
  EXPECT_EQ(int{Limits::quiet_NaN().bits()}, f.nan);
  EXPECT_EQ(Limits::max_digits10, std::ceil(1 + (f.mantissa_bits + 1) * std::log10(2)));
}

TYPED_TEST(FloatTypesTest, ConstantExpressionsAgreeWithTheTables) {
  static_assert(static_cast<float>(TypeParam(1.0f)) == 1.0f);
  static_assert(static_cast<float>(TypeParam(1.0f) + TypeParam(1.0f)) == 2.0f);
  EXPECT_EQ(static_cast<float>(TypeParam(1.0f)), 1.0f);
}

TEST(FloatTypesTest, ScaleRoundsTiesToTheGreaterPower) {
  // As ml_dtypes and XLA:CPU.
  EXPECT_EQ(static_cast<float>(F8E8M0FNU(3.0f)), 4.0f);
  EXPECT_EQ(static_cast<float>(F8E8M0FNU(6.0)), 8.0f);
  EXPECT_EQ(static_cast<float>(F8E8M0FNU(0.75f)), 1.0f);
  EXPECT_EQ(static_cast<float>(F8E8M0FNU(1.4999)), 1.0f);
  EXPECT_EQ(F8E8M0FNU(0x1.8p126).bits(), 254);
  EXPECT_TRUE(F8E8M0FNU(0x1.8p127).IsNan());
}

TEST(FloatTypesTest, ScaleRoundsItsLowestValuesAsSubnormals) {
  // ml_dtypes treats 2^-127 as zero there: values above half of 2^-126 round to 2^-126.
  EXPECT_EQ(F8E8M0FNU(0x1p-127).bits(), 0);
  EXPECT_EQ(F8E8M0FNU(0x1.000001p-127).bits(), 1);
  EXPECT_EQ(F8E8M0FNU(0x1p-126).bits(), 1);
  EXPECT_EQ(F8E8M0FNU(0x1p-140).bits(), 0);
  EXPECT_EQ(F8E8M0FNU(0x1p-140f).bits(), 0);
  EXPECT_EQ(F8E8M0FNU(1e-300).bits(), 0);
  EXPECT_TRUE(F8E8M0FNU(-1.0).IsNan());
  EXPECT_TRUE((-F8E8M0FNU(1.0)).IsNan());
}

TEST(FloatTypesTest, DoublesReachBf16AndF16ThroughFloat) {
  // Above the midpoint of 1 and 1 + 2^-8, but by less than a float can represent.
  const double v = 1 + std::ldexp(1, -8) + std::ldexp(1, -40);
  EXPECT_EQ(static_cast<double>(BF16(v)), 1);
  EXPECT_EQ(BF16(v).bits(), BF16(static_cast<float>(v)).bits());
  // The narrow types are rounded once.
  EXPECT_EQ(static_cast<double>(F8E4M3(1 + std::ldexp(1, -4) + std::ldexp(1, -40))), 1.125);
}

TEST(FloatTypesTest, NanPayloadsOfHalvesReachFloat) {
  EXPECT_EQ(std::bit_cast<uint32_t>(static_cast<float>(F16::FromBits(0x7c01))), 0x7f802000u);
  EXPECT_EQ(std::bit_cast<uint32_t>(static_cast<float>(BF16::FromBits(0xff81))), 0xff810000u);
}

TEST(FloatTypesTest, ArithmeticAndComparison) {
  EXPECT_EQ(static_cast<float>(BF16(256) + BF16(1)), 256);
  EXPECT_EQ(static_cast<float>(F8E4M3FN(3) * F8E4M3FN(5)), 15);
  EXPECT_TRUE(F16(1) < F16(2));
  EXPECT_TRUE(F16(-0.0f) == F16(0));
  EXPECT_FALSE(F16(std::nanf("")) == F16(std::nanf("")));
  EXPECT_EQ((-F8E4M3FNUZ(0)).bits(), 0);
}

template <ElementType kType, typename T>
void ExpectNative() {
  static_assert(std::is_same_v<NativeType<kType>, T>);
  EXPECT_TRUE(VisitType(kType, []<typename V>(std::type_identity<V>) { return std::is_same_v<V, T>; }));
}

TEST(VisitTypeTest, GivesTheStorageOfEveryArrayType) {
  ExpectNative<ElementType::kPred, bool>();
  ExpectNative<ElementType::kS4, Int4>();
  ExpectNative<ElementType::kU64, uint64_t>();
  ExpectNative<ElementType::kF8E8M0FNU, F8E8M0FNU>();
  ExpectNative<ElementType::kBF16, BF16>();
  ExpectNative<ElementType::kF64, double>();
  ExpectNative<ElementType::kC64, std::complex<float>>();
  for (size_t i = 0; i < kElementTypeCount; ++i) {
    const auto type = static_cast<ElementType>(i);
    if (!IsArrayType(type)) continue;
    VisitType(type, [&]<typename T>(std::type_identity<T>) {
      EXPECT_EQ(static_cast<int64_t>(sizeof(T)), BytesOf(type));
      EXPECT_EQ(AnyFloat<T>, IsFloat(type));
      EXPECT_EQ(AnyComplex<T>, IsComplex(type));
      EXPECT_EQ(AnyInteger<T>, IsInteger(type));
    });
  }
}

}  // namespace
}  // namespace hlokit
