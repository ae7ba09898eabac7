// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/type_promotion.h"

#include <gtest/gtest.h>

#include "ir/graph/context.h"

namespace hlokit::lazy {
namespace {

TEST(PromotionTest, TheTypeThatHoldsBoth) {
  EXPECT_EQ(Promote(ElementType::kS64, ElementType::kF16), ElementType::kF16);
  EXPECT_EQ(Promote(ElementType::kBF16, ElementType::kF16), ElementType::kF32);
  EXPECT_EQ(Promote(ElementType::kU8, ElementType::kS8), ElementType::kS16);
  EXPECT_EQ(Promote(ElementType::kPred, ElementType::kU8), ElementType::kU8);
}

TEST(PromotionTest, RankZeroAndNumbersCountOnlyByCategory) {
  Context context;
  const auto of = [&](std::vector<Shape> tensors, std::vector<Scalar> numbers) {
    ResultTypeState p;
    for (Shape s : tensors) p.Add(s);
    for (Scalar s : numbers) p.Add(s);
    return p.result();
  };
  const Shape f16 = context.shapes.Array(ElementType::kF16, {2});
  const Shape s32 = context.shapes.Array(ElementType::kS32, {2});
  const Shape f64_scalar = context.shapes.Scalar(ElementType::kF64);
  EXPECT_EQ(of({f16, f64_scalar}, {}), ElementType::kF16);
  EXPECT_EQ(of({s32, f64_scalar}, {}), ElementType::kF64);
  EXPECT_EQ(of({s32}, {2}), ElementType::kS32);
  EXPECT_EQ(of({s32}, {2.5}), ElementType::kF32);
  EXPECT_EQ(of({f16}, {2.5}), ElementType::kF16);
}

}  // namespace
}  // namespace hlokit::lazy
