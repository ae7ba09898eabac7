// SPDX-License-Identifier: Apache-2.0
#include "ir/text/literal_text.h"

#include <bit>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/types/float_types.h"

namespace hlokit {
namespace {

class LiteralTextTest : public testing::Test {
 protected:
  template <typename T>
  Literal Make(ElementType type, std::vector<int64_t> dims, const std::vector<T>& values) {
    Literal literal = Literal::Zeros(context.shapes.Array(type, dims));
    EXPECT_EQ(literal.size_bytes(), values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(literal.data(), values.data(), literal.size_bytes());
    return literal;
  }
  template <typename T>
  std::string Text(ElementType type, std::vector<int64_t> dims, const std::vector<T>& values) {
    return ToString(Make(type, std::move(dims), values));
  }
  template <typename T>
  std::string Scalar(ElementType type, T value) {
    return Text<T>(type, {}, {value});
  }
  std::string F32(float v) { return Scalar(ElementType::kF32, v); }
  std::string F64(double v) { return Scalar(ElementType::kF64, v); }

  Context context;
};

TEST_F(LiteralTextTest, F32HasSixDigitsIfTheyAreEnoughElseNine) {
  EXPECT_EQ(F32(0), "0");
  EXPECT_EQ(F32(-0.0f), "-0");
  EXPECT_EQ(F32(1), "1");
  EXPECT_EQ(F32(-448), "-448");
  EXPECT_EQ(F32(0.5f), "0.5");
  EXPECT_EQ(F32(0.1f), "0.1");
  EXPECT_EQ(F32(0.209439531f), "0.209439531");
  EXPECT_EQ(F32(0.0001f), "0.0001");
  EXPECT_EQ(F32(3e-5f), "3e-05");
  EXPECT_EQ(F32(1.5e-5f), "1.5e-05");
  EXPECT_EQ(F32(999999), "999999");
  EXPECT_EQ(F32(1e6f), "1e+06");
  EXPECT_EQ(F32(1234567), "1234567");
  EXPECT_EQ(F32(1e10f), "1e+10");
  EXPECT_EQ(F32(16777216), "16777216");
  EXPECT_EQ(F32(-2.38197633e+38f), "-2.38197633e+38");
  EXPECT_EQ(F32(std::numeric_limits<float>::max()), "3.40282347e+38");
  EXPECT_EQ(F32(std::numeric_limits<float>::min()), "1.17549435e-38");
}

TEST_F(LiteralTextTest, SubnormalsHaveSixDigitsToo) {
  EXPECT_EQ(F32(std::numeric_limits<float>::denorm_min()), "1.4013e-45");
  EXPECT_EQ(F32(1.40129846e-39f), "1.40129846e-39");
  EXPECT_EQ(F64(std::numeric_limits<double>::denorm_min()), "4.94065645841247e-324");
}

TEST_F(LiteralTextTest, F64HasFifteenDigitsOrSeventeen) {
  EXPECT_EQ(F64(0.1), "0.1");
  EXPECT_EQ(F64(1.0 / 3), "0.33333333333333331");
  EXPECT_EQ(F64(0.29629629629629628), "0.29629629629629628");
  EXPECT_EQ(F64(1e15), "1e+15");
  EXPECT_EQ(F64(123456789012345), "123456789012345");
  EXPECT_EQ(F64(1234567890123456), "1234567890123456");
  EXPECT_EQ(F64(1e100), "1e+100");
  EXPECT_EQ(F64(-std::numeric_limits<double>::max()), "-1.7976931348623157e+308");
}

// Agrees with XLA's use of printf and strtod, for values over the whole range.
TEST_F(LiteralTextTest, AgreesWithPrintf) {
  uint64_t state = 1;
  const auto random = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ (state >> 29);
  };
  char want[64];
  for (int i = 0; i < 100000; ++i) {
    const auto f = std::bit_cast<float>(static_cast<uint32_t>(random() >> 20));
    if (std::isfinite(f)) {
      std::snprintf(want, sizeof(want), "%.6g", f);
      if (std::strtof(want, nullptr) != f) std::snprintf(want, sizeof(want), "%.9g", f);
      ASSERT_EQ(F32(f), want);
    }
    // Numbers that are short in decimal.
    const double d = static_cast<double>(static_cast<int64_t>(random()) >> (random() % 60)) *
                     std::pow(10, static_cast<int>(random() % 40) - 20);
    std::snprintf(want, sizeof(want), "%.15g", d);
    if (std::strtod(want, nullptr) != d) std::snprintf(want, sizeof(want), "%.17g", d);
    ASSERT_EQ(F64(d), want);
  }
}

template <typename T>
void ExpectAllLikePrintf(ElementType type, int codes, int digits) {
  char want[64];
  for (int code = 0; code < codes; ++code) {
    const T v = T::FromBits(static_cast<decltype(T().bits())>(code));
    if (v.IsNan()) continue;
    std::snprintf(want, sizeof(want), "%.*g", digits, static_cast<double>(v));
    std::string got;
    TextWriter out(&got);
    AppendScalar(out, type, reinterpret_cast<const std::byte*>(&v));
    out.Flush();
    ASSERT_EQ(got, want);
  }
}

TEST_F(LiteralTextTest, NarrowFloatsHaveAFixedNumberOfDigits) {
  ExpectAllLikePrintf<BF16>(ElementType::kBF16, 1 << 16, 4);
  ExpectAllLikePrintf<F16>(ElementType::kF16, 1 << 16, 5);
  ExpectAllLikePrintf<F8E3M4>(ElementType::kF8E3M4, 1 << 8, 3);
  ExpectAllLikePrintf<F8E4M3>(ElementType::kF8E4M3, 1 << 8, 3);
  ExpectAllLikePrintf<F8E4M3FN>(ElementType::kF8E4M3FN, 1 << 8, 3);
  ExpectAllLikePrintf<F8E4M3FNUZ>(ElementType::kF8E4M3FNUZ, 1 << 8, 3);
  ExpectAllLikePrintf<F8E4M3B11FNUZ>(ElementType::kF8E4M3B11FNUZ, 1 << 8, 3);
  ExpectAllLikePrintf<F8E5M2>(ElementType::kF8E5M2, 1 << 8, 2);
  ExpectAllLikePrintf<F8E5M2FNUZ>(ElementType::kF8E5M2FNUZ, 1 << 8, 2);
  ExpectAllLikePrintf<F8E8M0FNU>(ElementType::kF8E8M0FNU, 1 << 8, 2);
  ExpectAllLikePrintf<F4E2M1FN>(ElementType::kF4E2M1FN, 1 << 4, 2);
}

TEST_F(LiteralTextTest, InfinitiesAndNans) {
  EXPECT_EQ(F32(std::numeric_limits<float>::infinity()), "inf");
  EXPECT_EQ(F64(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(F32(std::bit_cast<float>(0x7fc00000)), "nan");
  EXPECT_EQ(F32(std::bit_cast<float>(0xffc00000)), "-nan");
  EXPECT_EQ(F32(std::bit_cast<float>(0x7fc0007f)), "nan(0x40007f)");
  EXPECT_EQ(F32(std::bit_cast<float>(0xffffffff)), "-nan(0x7fffff)");
  EXPECT_EQ(F64(std::bit_cast<double>(uint64_t{0x7ff0000000000001})), "nan(0x1)");
  EXPECT_EQ(Scalar(ElementType::kBF16, BF16::FromBits(0xffff)), "-nan(0x7f)");
  EXPECT_EQ(Scalar(ElementType::kF16, F16::FromBits(0x7e00)), "nan");
  EXPECT_EQ(Scalar(ElementType::kF8E5M2, F8E5M2::FromBits(0x7d)), "nan(0x1)");
  // Formats without payloads; a NaN without a separate sign bit reads as negative.
  EXPECT_EQ(Scalar(ElementType::kF8E4M3FN, F8E4M3FN::FromBits(0xff)), "-nan");
  EXPECT_EQ(Scalar(ElementType::kF8E5M2FNUZ, F8E5M2FNUZ::FromBits(0x80)), "-nan");
  EXPECT_EQ(Scalar(ElementType::kF8E8M0FNU, F8E8M0FNU::FromBits(0xff)), "nan");
}

TEST_F(LiteralTextTest, OtherScalars) {
  EXPECT_EQ(Scalar(ElementType::kPred, char{1}), "true");
  EXPECT_EQ(Scalar(ElementType::kPred, char{0}), "false");
  EXPECT_EQ(Scalar(ElementType::kS8, int8_t{-128}), "-128");
  EXPECT_EQ(Scalar(ElementType::kU8, uint8_t{200}), "200");
  EXPECT_EQ(Scalar(ElementType::kS4, Int4(-8)), "-8");
  EXPECT_EQ(Scalar(ElementType::kU4, UInt4(15)), "15");
  EXPECT_EQ(Scalar(ElementType::kS64, std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(Scalar(ElementType::kU64, std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(Scalar(ElementType::kC64, std::complex<float>(1, -2.5)), "(1, -2.5)");
  const double nan = std::bit_cast<double>(uint64_t{0xffffffffffffffff});
  EXPECT_EQ(Scalar(ElementType::kC128, std::complex<double>(-2.2250738585072014e-308, nan)),
            "(-2.2250738585072014e-308, -nan(0xfffffffffffff))");
}

TEST_F(LiteralTextTest, Arrays) {
  using I = std::vector<int32_t>;
  const ElementType s32 = ElementType::kS32;
  EXPECT_EQ(Text(s32, {1}, I{1}), "{1}");
  EXPECT_EQ(Text(s32, {3}, I{1, 2, 3}), "{1, 2, 3}");
  EXPECT_EQ(Text(s32, {2, 2}, I{1, 2, 3, 4}), "{ { 1, 2 }, { 3, 4 } }");
  EXPECT_EQ(Text(s32, {2, 1}, I{1, 2}), "{ {1}, {2} }");
  EXPECT_EQ(Text(s32, {1, 2, 1}, I{1, 2}), "{ { {1}, {2} } }");
  EXPECT_EQ(Text(s32, {1, 2, 1, 2}, I{1, 2, 3, 4}), "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } }, { /*i1=1*/ { 3, 4 } } } }");
  EXPECT_EQ(Text(s32, {2, 1, 1, 1, 1}, I{1, 2}),
            "{ { /*i0=0*/ { /*i1=0*/ { /*i2=0*/ {1} } } }, { /*i0=1*/ { /*i1=0*/ { /*i2=0*/ {2} } } } }");
  EXPECT_EQ(Text(ElementType::kPred, {2}, std::vector<char>{1, 0}), "{1, 0}");
  EXPECT_EQ(Text(ElementType::kC64, {2}, std::vector<std::complex<float>>{{1, 2}, {3, 4}}), "{(1, 2), (3, 4)}");
}

TEST_F(LiteralTextTest, ArraysWithoutElements) {
  using F = std::vector<float>;
  const ElementType f32 = ElementType::kF32;
  EXPECT_EQ(Text(f32, {0}, F{}), "{}");
  EXPECT_EQ(Text(f32, {2, 0}, F{}), "{ {}, {} }");
  EXPECT_EQ(Text(f32, {0, 2}, F{}), "{  }");
  EXPECT_EQ(Text(f32, {2, 0, 3}, F{}), "{ {  }, {  } }");
  EXPECT_EQ(Text(f32, {2, 0, 1, 1}, F{}), "{ { /*i0=0*/ }, { /*i0=1*/ } }");
  EXPECT_EQ(Text(f32, {1 << 30, 1 << 30, 0}, F{}), "{...}") << "so many braces are of no use";
}

TEST_F(LiteralTextTest, Tuples) {
  const Literal s32 = Make<int32_t>(ElementType::kS32, {2}, {1, 2});
  const Literal pred = Make<char>(ElementType::kPred, {}, {1});
  const Shape token = context.shapes.Token();
  const Shape inner = context.shapes.Tuple({pred.shape(), token});
  const Shape outer = context.shapes.Tuple({s32.shape(), inner});
  const Literal tuple = Literal::Tuple(outer, {s32, Literal::Tuple(inner, {pred, Literal::Zeros(token)})});
  EXPECT_EQ(ToString(tuple), "( {1, 2}, ( true, token ) )");
  EXPECT_EQ(ToString(Literal::Tuple(context.shapes.Tuple({}), {})), "(  )");
  EXPECT_EQ(ToString(tuple, {.with_shape = true}), "( s32[2]{0} {1, 2}, ( pred[] true, token ) )");
  EXPECT_EQ(ToString(tuple, {.with_shape = true, .with_layout = false}), "( s32[2] {1, 2}, ( pred[] true, token ) )");
  EXPECT_EQ(ToString(context, context.literals.Add(tuple)), ToString(tuple));
  EXPECT_EQ(ToString(tuple, {.max_elements = 10}), "{...}");
}

TEST_F(LiteralTextTest, LargeAndElidedLiterals) {
  const Literal ten = Make<char>(ElementType::kPred, {10}, std::vector<char>(10));
  const Literal eleven = Make<char>(ElementType::kPred, {11}, std::vector<char>(11));
  EXPECT_EQ(ToString(ten, {.max_elements = 10}), "{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}");
  EXPECT_EQ(ToString(eleven, {.max_elements = 10}), "{...}");
  EXPECT_EQ(ToString(context, context.literals.AddElided(ten.shape())), "{...}");
  EXPECT_EQ(ToString(context, context.literals.AddElided(ten.shape()), {.with_shape = true}), "pred[10]{0} {...}");
}

TEST_F(LiteralTextTest, DeepTuplesNeedNoStack) {
  Shape shape = context.shapes.Tuple({});
  LiteralId id = context.literals.AddTuple(shape, {});
  for (int i = 0; i < 100000; ++i) {
    shape = context.shapes.Tuple({shape});
    id = context.literals.AddTuple(shape, {id});
  }
  EXPECT_EQ(ToString(context, id).size(), 4u * 100001);
}

}  // namespace
}  // namespace hlokit
