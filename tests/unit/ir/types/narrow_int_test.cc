// SPDX-License-Identifier: Apache-2.0
#include "ir/types/narrow_int.h"

#include <limits>

#include "gtest/gtest.h"

namespace hlokit {
namespace {

TEST(NarrowIntTest, KeepsTheLowBits) {
  for (int i = -300; i <= 300; ++i) {
    EXPECT_EQ(static_cast<int>(UInt4(i)), i & 15);
    EXPECT_EQ(static_cast<int>(Int4(i)), ((i + 8) & 15) - 8);
    EXPECT_EQ(static_cast<int>(Int2(i)), ((i + 2) & 3) - 2);
    EXPECT_EQ(static_cast<int>(UInt2(i)), i & 3);
    EXPECT_EQ(static_cast<int>(Int1(i)), -(i & 1));
    EXPECT_EQ(static_cast<int>(UInt1(i)), i & 1);
  }
}

TEST(NarrowIntTest, ArithmeticWrapsAround) {
  EXPECT_EQ(Int4(7) + Int4(1), Int4(-8));
  EXPECT_EQ(-Int4(-8), Int4(-8));
  EXPECT_EQ(Int4(5) * Int4(5), Int4(9));
  EXPECT_EQ(UInt4(3) - UInt4(5), UInt4(14));
  EXPECT_EQ(~UInt2(1), UInt2(2));
  EXPECT_LT(Int4(-1), Int4(0));
  EXPECT_GT(UInt4(15), UInt4(0));
}

TEST(NarrowIntTest, Limits) {
  EXPECT_EQ(static_cast<int>(std::numeric_limits<Int4>::min()), -8);
  EXPECT_EQ(static_cast<int>(std::numeric_limits<Int4>::max()), 7);
  EXPECT_EQ(static_cast<int>(std::numeric_limits<UInt2>::max()), 3);
  EXPECT_EQ(static_cast<int>(std::numeric_limits<Int1>::min()), -1);
  EXPECT_EQ(static_cast<int>(std::numeric_limits<Int1>::max()), 0);
}

}  // namespace
}  // namespace hlokit
