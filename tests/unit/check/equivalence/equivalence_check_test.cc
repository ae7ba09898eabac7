// SPDX-License-Identifier: Apache-2.0
#include "check/equivalence/equivalence_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ir/graph/context.h"
#include "ir/graph/literal_fill.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

class ToleranceTest : public ::testing::Test {
 protected:
  // Returns true if `after` is within the tolerance of `before`.
  template <typename T>
  bool Near(const Tolerance& tolerance, ElementType type, T before, T after) {
    const Shape shape = context_.shapes.Array(type, {1});
    std::vector<Literal> a = {Literal::Zeros(shape)}, b = a;
    a[0].values<T>()[0] = before;
    b[0].values<T>()[0] = after;
    return CompareResults(a, b, tolerance).empty();
  }
  bool Near(const Tolerance& tolerance, float before, float after) {
    return Near(tolerance, ElementType::kF32, before, after);
  }

  Context context_;
};

TEST_F(ToleranceTest, WithoutDeclarationAFewUlps) {
  const Tolerance t = Tolerance::OfPass(0);
  const float kNext = std::nextafterf(1, 2);
  EXPECT_TRUE(Near(t, 1, kNext));
  EXPECT_FALSE(Near(t, 1, 1.00001f));
  EXPECT_TRUE(Near(t, 0, -0.0f));
  EXPECT_FALSE(Near(t, 0, 1e-30f));
  EXPECT_TRUE(Near(t, std::nanf(""), std::nanf("1")));
  EXPECT_FALSE(Near(t, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()));
  EXPECT_FALSE(Near(t, ElementType::kS32, 1, 2));
}

// Two neighbors of an eight-bit type may be 25 % apart, but not more of them.
TEST_F(ToleranceTest, NarrowTypesMayDifferByOneUlp) {
  const Tolerance t = Tolerance::OfPass(1e-5);
  EXPECT_TRUE(Near(t, ElementType::kF8E5M2, F8E5M2(1.0), F8E5M2(1.25)));
  EXPECT_FALSE(Near(t, ElementType::kF8E5M2, F8E5M2(1.0), F8E5M2(1.5)));
  EXPECT_FALSE(Near(t, ElementType::kF8E5M2, F8E5M2(1.0), F8E5M2(2.0)));
}

// Large elements do not make up for small ones.
TEST_F(ToleranceTest, EachElementCounts) {
  const Shape shape = context_.shapes.Array(ElementType::kF32, {2});
  std::vector<Literal> a = {Literal::Zeros(shape)}, b = a;
  a[0].values<float>()[0] = b[0].values<float>()[0] = 1e9f;
  a[0].values<float>()[1] = 1;
  b[0].values<float>()[1] = 2;
  EXPECT_EQ(CompareResults(a, b, Tolerance::OfPass(1e-3)),
            "result 0, element {1} of f32[2]: 2, expected 1 (off by 1, 1 of the expected value, 8.389e+06 ulp)");
}

TEST_F(ToleranceTest, Specifications) {
  const Tolerance relative = *Tolerance::Parse("0.01");
  EXPECT_TRUE(Near(relative, 100, 100.9f));
  EXPECT_FALSE(Near(relative, 100, 101.1f));
  EXPECT_FALSE(Near(relative, 0, 1e-9f));
  const Tolerance both = *Tolerance::Parse("rel:0.01,abs:0.1");
  EXPECT_TRUE(Near(both, 0, 0.0999f));
  EXPECT_FALSE(Near(both, 0, 0.2f));
  const Tolerance typed = *Tolerance::Parse("f64=1e-6;0.5");
  EXPECT_TRUE(Near(typed, 1, 1.4f));
  EXPECT_FALSE(Near(typed, ElementType::kF64, 1.0, 1.4));
  EXPECT_FALSE(Near(typed, ElementType::kS32, 2, 3));  // never
  EXPECT_TRUE(Near(*Tolerance::Parse("0"), 0, -0.0f));
  EXPECT_FALSE(Near(*Tolerance::Parse("0"), 1, std::nextafterf(1, 2)));
  EXPECT_FALSE(Near(*Tolerance::Parse("exact"), 0, -0.0f));
  for (const char* text : {"", "x", "-1", "nan", "rel", "f32", "f33=1", "s32=1", "f32=1;", "abs:-1"}) {
    EXPECT_FALSE(Tolerance::Parse(text).ok()) << text;
  }
}

TEST(FillSpecialTest, AllKindsOfValuesOccur) {
  Context context;
  Literal floats = Literal::Zeros(context.shapes.Array(ElementType::kF32, {400}));
  FillSpecial(1, &floats);
  int nans = 0, infinities = 0, negative_zeros = 0, denormals = 0, zeros = 0;
  for (const float v : floats.values<float>()) {
    nans += std::isnan(v);
    infinities += std::isinf(v);
    denormals += std::fpclassify(v) == FP_SUBNORMAL;
    negative_zeros += v == 0 && std::signbit(v);
    zeros += v == 0 && !std::signbit(v);
  }
  EXPECT_GT(nans, 5);
  EXPECT_GT(infinities, 10);
  EXPECT_GT(denormals, 10);
  EXPECT_GT(negative_zeros, 5);
  EXPECT_GT(zeros, 150);  // the elements that stay
  Literal preds = Literal::Zeros(context.shapes.Array(ElementType::kPred, {100}));
  FillSpecial(1, &preds);
  for (const bool v : preds.values<bool>()) EXPECT_FALSE(v);
}

}  // namespace
}  // namespace hlokit::interp
