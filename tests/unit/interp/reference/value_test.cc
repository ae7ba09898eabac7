// SPDX-License-Identifier: Apache-2.0
// Elements as numbers, and the order of indices.
#include "interp/reference/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ir/graph/context.h"

namespace hlokit::reference {
namespace {

class ValueTest : public testing::Test {
 protected:
  std::shared_ptr<Array> Zeros(ElementType type, std::vector<int64_t> dims) {
    return Array::Zeros(context_.shapes.Array(type, dims), &memory_);
  }
  Context context_;
  Memory memory_ = {1000};
};

TEST_F(ValueTest, FloatsAreRoundedToTheType) {
  const auto f32 = Zeros(ElementType::kF32, {1});
  f32->SetReal(0, 1 + 0x1p-30);
  EXPECT_EQ(f32->Real(0), 1);
  const auto bf16 = Zeros(ElementType::kBF16, {1});
  bf16->SetReal(0, 1 + 0x1p-8 + 0x1p-40);  // to f32 first, where it is a tie
  EXPECT_EQ(bf16->Real(0), 1);
}

TEST_F(ValueTest, IntegersWrap) {
  const auto s4 = Zeros(ElementType::kS4, {1});
  s4->SetInteger(0, 9);
  EXPECT_EQ(s4->Integer(0), -7);
  const auto u64 = Zeros(ElementType::kU64, {1});
  u64->SetInteger(0, -1);
  EXPECT_EQ(u64->Integer(0), -1);
  EXPECT_EQ(IndexAt(*u64, 0), std::numeric_limits<int64_t>::max());
}

TEST_F(ValueTest, ElementsBeyondTheEndAreZeroAndNotWritten) {
  const auto array = Zeros(ElementType::kS32, {2});
  array->SetInteger(2, 5);
  array->SetInteger(-1, 5);
  EXPECT_EQ(array->Integer(2), 0);
  EXPECT_EQ(array->Integer(-1), 0);
  EXPECT_EQ(array->Integer(0) + array->Integer(1), 0);
}

TEST_F(ValueTest, MemoryIsCountedAndBounded) {
  {
    const auto array = Zeros(ElementType::kF64, {100});
    EXPECT_EQ(memory_.used, 800);
    EXPECT_EQ(Zeros(ElementType::kF64, {26}), nullptr);
  }
  EXPECT_EQ(memory_.used, 0);
  EXPECT_EQ(memory_.peak, 800);
  EXPECT_EQ(Zeros(ElementType::kF64, {int64_t{1} << 62}), nullptr);
}

TEST(IndexTest, RowMajorOrder) {
  const std::vector<int64_t> dims = {2, 3};
  Index index = {0, 0};
  for (int64_t position = 0; position < 6; ++position) {
    EXPECT_EQ(PositionOf(index, dims), position);
    EXPECT_EQ(NextIndex(dims, &index), position < 5);
  }
  EXPECT_EQ(GroupPositions(dims, {1}), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(GroupPositions(dims, {1, 0}), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(GroupPositions(dims, {}), (std::vector<int64_t>{0}));
}

TEST(RoundToOddTest, ASecondRoundingIsTheOnlyOne) {
  EXPECT_EQ(RoundToOdd(1.5L), 1.5f);
  EXPECT_EQ(RoundToOdd(1 + 0x1p-40L), std::nextafter(1.0f, 2.0f));
  EXPECT_EQ(RoundToOdd(1 - 0x1p-40L), std::nextafter(1.0f, 0.0f));
  EXPECT_EQ(RoundToOdd(1e300L), std::numeric_limits<float>::max());
}

}  // namespace
}  // namespace hlokit::reference
