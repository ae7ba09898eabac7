// SPDX-License-Identifier: Apache-2.0
#include "check/comparison/value_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ir/graph/context.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

class ValueComparisonTest : public testing::Test {
 protected:
  template <typename T>
  Literal Make(ElementType type, const std::vector<T>& values) {
    Literal literal = Literal::Zeros(context_.shapes.Array(type, {static_cast<int64_t>(values.size())}));
    for (size_t i = 0; i < values.size(); ++i) literal.values<T>()[i] = values[i];
    return literal;
  }
  template <typename T>
  int64_t Different(ElementType type, T a, T b, const char* tolerance) {
    const std::vector<Literal> actual = {Make<T>(type, {a})};
    const std::vector<Literal> expected = {Make<T>(type, {b})};
    return CompareValues(actual, expected, *ParseErrorSpec(tolerance))->different;
  }

  Context context_;
};

TEST_F(ValueComparisonTest, ExactMeansTheSameBitsOrTwoNans) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Different(ElementType::kF32, 1.5f, 1.5f, "exact"), 0);
  EXPECT_EQ(Different(ElementType::kF32, 1.5f, std::nextafter(1.5f, 2.f), "exact"), 1);
  EXPECT_EQ(Different(ElementType::kF32, 0.0f, -0.0f, "exact"), 1);
  EXPECT_EQ(Different(ElementType::kF32, nan, -nan, "exact"), 0);
  EXPECT_EQ(Different(ElementType::kF32, nan, 1.0f, "exact"), 1);
}

TEST_F(ValueComparisonTest, UlpCountsTheValuesOfTheType) {
  EXPECT_EQ(Different(ElementType::kF32, 0.0f, -0.0f, "ulp:0"), 0);
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Different(ElementType::kF32, tiny, -tiny, "ulp:2"), 0);
  EXPECT_EQ(Different(ElementType::kF32, tiny, -tiny, "ulp:1"), 1);
  EXPECT_EQ(Different(ElementType::kBF16, BF16(1.0f), BF16(1.0078125f), "ulp:1"), 0);
  EXPECT_EQ(Different(ElementType::kBF16, BF16(1.0f), BF16(1.015625f), "ulp:1"), 1);
  EXPECT_EQ(Different(ElementType::kF8E4M3FN, F8E4M3FN(1.0f), F8E4M3FN(-1.0f), "ulp:112"), 0);
  EXPECT_EQ(Different(ElementType::kF8E4M3FN, F8E4M3FN(1.0f), F8E4M3FN(-1.0f), "ulp:111"), 1);
  EXPECT_EQ(Different(ElementType::kF64, 1e308, -1e308, "ulp:1.8e19"), 1);
  EXPECT_EQ(Different(ElementType::kF64, 1e308, -1e308, "ulp:1.9e19"), 0);
}

TEST_F(ValueComparisonTest, RelativeAndAbsoluteBounds) {
  EXPECT_EQ(Different(ElementType::kF64, 101.0, 100.0, "rel:0.01"), 0);
  EXPECT_EQ(Different(ElementType::kF64, 101.1, 100.0, "rel:0.01"), 1);
  EXPECT_EQ(Different(ElementType::kF64, 1e-9, 0.0, "rel:0.5"), 1);
  EXPECT_EQ(Different(ElementType::kF64, 1e-9, 0.0, "rel:0.5,abs:1e-8"), 0);
  EXPECT_EQ(Different(ElementType::kS8, int8_t{-128}, int8_t{127}, "abs:255"), 0);
  EXPECT_EQ(Different(ElementType::kS8, int8_t{-128}, int8_t{127}, "abs:254"), 1);
  EXPECT_EQ(Different(ElementType::kU64, ~uint64_t{0}, uint64_t{0}, "abs:1e18"), 1);
  EXPECT_EQ(Different(ElementType::kPred, true, false, "abs:1"), 1);
}

TEST_F(ValueComparisonTest, InfinitiesAreNearThemselvesOnly) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Different(ElementType::kF64, infinity, infinity, "rel:0"), 0);
  EXPECT_EQ(Different(ElementType::kF64, infinity, -infinity, "rel:1e300"), 1);
  EXPECT_EQ(Different(ElementType::kF64, infinity, 1e308, "abs:1e308,ulp:1e300"), 1);
}

TEST_F(ValueComparisonTest, ComplexNumbersPartByPart) {
  using C = std::complex<float>;
  EXPECT_EQ(Different(ElementType::kC64, C(1, 100), C(1, 101), "abs:1"), 0);
  EXPECT_EQ(Different(ElementType::kC64, C(1, 100), C(2.5, 100), "abs:1"), 1);
}

TEST_F(ValueComparisonTest, TheWorstElementIsNamed) {
  const std::vector<Literal> actual = {Make<int32_t>(ElementType::kS32, {0}),
                                       Make<int32_t>(ElementType::kS32, {1, 2, 9, 4})};
  const std::vector<Literal> expected = {Make<int32_t>(ElementType::kS32, {0}),
                                         Make<int32_t>(ElementType::kS32, {1, 3, 3, -2})};
  const absl::StatusOr<ValueDifference> difference = CompareValues(actual, expected, ErrorSpec());
  ASSERT_TRUE(difference.ok());
  EXPECT_EQ(difference->different, 3);
  EXPECT_EQ(difference->elements, 5);
  EXPECT_EQ(difference->leaf, 1u);
  EXPECT_EQ(difference->element, 2);
  EXPECT_EQ(difference->description,
            "result 1, element {2} of s32[4]: 9, expected 3 (off by 6, 2 of the expected value)");
}

TEST_F(ValueComparisonTest, ShapesMustAgree) {
  const std::vector<Literal> three = {Make<float>(ElementType::kF32, {1, 2, 3})};
  const std::vector<Literal> two = {Make<float>(ElementType::kF32, {1, 2})};
  EXPECT_EQ(CompareValues(three, two, ErrorSpec()).status().message(), "result 0 has shape f32[3], expected f32[2]");
  EXPECT_EQ(CompareValues(three, {}, ErrorSpec()).status().message(), "there are 1 results, expected 0");
}

TEST(ParseErrorSpecTest, RejectsWhatIsNoBound) {
  for (const char* text :
       {"", "ulp", "ulp:", "ulp:x", "ulp:-1", "rel:nan", "exact,ulp:1", "ulp:1,", "ulps:3", "-1e-5", "nan"}) {
    EXPECT_FALSE(ParseErrorSpec(text).ok()) << text;
  }
  EXPECT_TRUE(ParseErrorSpec("exact")->is_exact());
  EXPECT_EQ(ParseErrorSpec("rel:1e-5,abs:2")->absolute, 2.0);
  EXPECT_EQ(ParseErrorSpec("1e-5")->relative, 1e-5);
}

}  // namespace
}  // namespace hlokit::interp
