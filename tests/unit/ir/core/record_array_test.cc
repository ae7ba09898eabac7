// SPDX-License-Identifier: Apache-2.0
// Records are preserved while the array grows, shrinks, is copied and moved.
#include "ir/core/record_array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace hlokit {
namespace {

TEST(RecordArrayTest, GrowsAndKeepsWhatItHolds) {
  RecordArray<uint32_t> array;
  EXPECT_TRUE(array.empty());
  // Large enough that the system moves it more than once.
  constexpr uint32_t kSize = 300000;
  for (uint32_t i = 0; i < kSize; ++i) array.push_back(i * 7);
  array.shrink_to_fit();
  EXPECT_EQ(array.capacity(), kSize);
  for (uint32_t i = 0; i < kSize; ++i) ASSERT_EQ(array[i], i * 7);
}

TEST(RecordArrayTest, AnElementOfItsOwnCanBeAppended) {
  RecordArray<uint64_t> array;
  array.push_back(5);
  while (array.size() < 1000) array.push_back(array[0]);
  EXPECT_EQ(array.back(), 5u);
}

TEST(RecordArrayTest, ExtendGivesRoomAtTheEnd) {
  RecordArray<uint16_t> array;
  array.push_back(1);
  uint16_t* added = array.Extend(40);
  EXPECT_EQ(added, array.begin() + 1);
  for (int i = 0; i < 40; ++i) added[i] = static_cast<uint16_t>(i);
  EXPECT_EQ(array.size(), 41u);
  EXPECT_EQ(array[0], 1);
  EXPECT_EQ(array.back(), 39);
}

TEST(RecordArrayTest, CopiesAreTheirOwn) {
  RecordArray<int> a;
  a.reserve(100);
  a.push_back(1);
  RecordArray<int> b = a;
  b[0] = 2;
  EXPECT_EQ(a[0], 1);
  a = b;
  EXPECT_EQ(a[0], 2);
  const RecordArray<int> c = std::move(b);
  EXPECT_EQ(c.size(), 1u);
  RecordArray<int> empty;
  a = empty;
  EXPECT_TRUE(a.empty());
  a.shrink_to_fit();
  EXPECT_EQ(a.capacity(), 0u);
  a.push_back(3);
  EXPECT_EQ(a[0], 3);
}

}  // namespace
}  // namespace hlokit
