// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/tile_assignment.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hlokit {
namespace {

using Ints = std::vector<int64_t>;

std::string Text(const TileAssignment& tiles) {
  std::string text;
  TextWriter out(&text);
  PrintTileAssignment(out, tiles);
  out.Flush();
  return text;
}

IotaTileAssignment Canonical(Ints reshape, Ints perm) {
  IotaTileAssignment order{std::move(reshape), std::move(perm)};
  order.Canonicalize();
  return order;
}

TEST(DeviceCount, RefusesWhatIsNoCount) {
  EXPECT_EQ(DeviceCount({}), 1);
  EXPECT_EQ(DeviceCount({2, 3}), 6);
  EXPECT_EQ(DeviceCount({2, 0}), std::nullopt);
  EXPECT_EQ(DeviceCount({-2, -3}), std::nullopt);
  EXPECT_EQ(DeviceCount({int64_t{1} << 32, int64_t{1} << 31}), std::nullopt);
  EXPECT_EQ(DeviceCount({int64_t{1} << 31, int64_t{1} << 31}), int64_t{1} << 62);
}

TEST(IotaTileAssignment, Valid) {
  EXPECT_TRUE((IotaTileAssignment{{4, 2}, {1, 0}}).Valid());
  EXPECT_FALSE((IotaTileAssignment{{4, 2}, {1, 1}}).Valid());
  EXPECT_FALSE((IotaTileAssignment{{4, 2}, {0, 2}}).Valid());
  EXPECT_FALSE((IotaTileAssignment{{4, 2}, {0}}).Valid());
  EXPECT_FALSE((IotaTileAssignment{{4, -2}, {1, 0}}).Valid());
  EXPECT_FALSE((IotaTileAssignment{{4}, {1}}).Valid());
  EXPECT_FALSE((IotaTileAssignment{}).Valid());
}

TEST(IotaTileAssignment, CanonicalForms) {
  EXPECT_EQ(Canonical({3, 4, 5}, {0, 1, 2}), (IotaTileAssignment{{60}, {0}}));
  EXPECT_EQ(Canonical({3, 4, 5}, {1, 2, 0}), (IotaTileAssignment{{3, 20}, {1, 0}}));
  EXPECT_EQ(Canonical({3, 4, 5}, {2, 0, 1}), (IotaTileAssignment{{12, 5}, {1, 0}}));
  EXPECT_EQ(Canonical({3, 4, 5}, {2, 1, 0}), (IotaTileAssignment{{3, 4, 5}, {2, 1, 0}}));
  EXPECT_EQ(Canonical({1, 3, 1, 4, 1, 5}, {4, 3, 2, 5, 1, 0}), (IotaTileAssignment{{3, 20}, {1, 0}}));
  EXPECT_EQ(Canonical({2, 1}, {1, 0}), (IotaTileAssignment{{2}, {0}}));
  EXPECT_EQ(Canonical({1, 1}, {1, 0}), (IotaTileAssignment{{1}, {0}}));
}

TEST(IotaTileAssignment, At) {
  const IotaTileAssignment order{{2, 3}, {1, 0}};  // 0 3 1 4 2 5
  Ints devices;
  for (int64_t i = 0; i < 6; ++i) devices.push_back(order.At(i));
  EXPECT_EQ(devices, (Ints{0, 3, 1, 4, 2, 5}));
}

TEST(TileAssignment, Text) {
  EXPECT_EQ(Text(TileAssignment::Iota({8, 2}, {{2, 8}, {1, 0}})), "[8,2]<=[2,8]T(1,0)");
  EXPECT_EQ(Text(TileAssignment::Iota({16}, {{4, 4}, {0, 1}})), "[16]<=[16]");
  EXPECT_EQ(Text({{2, 1}, {}, {0, 1}}), "[2,1]0,1");
}

TEST(TileAssignment, HugeIotasAreNotListed) {
  const int64_t huge = 1000000000000;
  TileAssignment tiles = TileAssignment::Iota({huge, 2}, {{2, huge}, {1, 0}});
  EXPECT_EQ(tiles.device_count(), 2 * huge);
  EXPECT_EQ(tiles.At(1), huge);
  EXPECT_FALSE(tiles.Expand(kMaxExpandedDevices));
  EXPECT_TRUE(tiles.is_iota());
  EXPECT_TRUE(tiles.Transpose({1, 0}, kMaxExpandedDevices));
  EXPECT_EQ(Text(tiles), "[2,1000000000000]<=[2000000000000]");
  // This one is not an iota when transposed.
  tiles = TileAssignment::Iota({6, huge}, {{2, 3 * huge}, {1, 0}});
  const TileAssignment before = tiles;
  EXPECT_FALSE(tiles.Transpose({1, 0}, kMaxExpandedDevices));
  EXPECT_EQ(tiles, before);
}

// Every reordering agrees with that of the listed devices.
TEST(TileAssignment, IotasAgreeWithLists) {
  std::mt19937 random(7);
  const auto pick = [&random](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int still_iota = 0;
  for (int round = 0; round < 2000; ++round) {
    // An iota of 2 to 4 dimensions, with tiles of 1 to 5 dimensions.
    IotaTileAssignment order;
    for (int64_t n = pick(1, 4); n > 0; --n) order.reshape.push_back(pick(1, 4));
    order.perm.resize(order.reshape.size());
    std::iota(order.perm.begin(), order.perm.end(), 0);
    std::shuffle(order.perm.begin(), order.perm.end(), random);
    int64_t left = *DeviceCount(order.reshape);
    Ints dims;
    while (left > 1 && dims.size() < 4) {
      Ints divisors;
      for (int64_t d = 1; d <= left; ++d) {
        if (left % d == 0) divisors.push_back(d);
      }
      dims.push_back(divisors[static_cast<size_t>(pick(0, static_cast<int64_t>(divisors.size()) - 1))]);
      left /= dims.back();
    }
    dims.push_back(left);

    // Canonical or not, the order is the same.
    const int64_t count = *DeviceCount(dims);
    TileAssignment iota = TileAssignment::Iota(dims, order);
    ASSERT_TRUE(iota.iota.Valid());
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(iota.At(i), order.At(i));
    TileAssignment list = iota;
    ASSERT_TRUE(list.Expand(count));
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(list.At(i), iota.At(i));

    TileAssignment sorted_iota = iota, sorted_list = list;
    ASSERT_TRUE(sorted_iota.SortLastDim(count));
    ASSERT_TRUE(sorted_list.SortLastDim(count));
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(sorted_iota.At(i), sorted_list.At(i)) << Text(iota);

    Ints perm(dims.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    ASSERT_TRUE(iota.Transpose(perm, count));
    ASSERT_TRUE(list.Transpose(perm, count));
    ASSERT_EQ(iota.dims, list.dims);
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(iota.At(i), list.At(i));
    still_iota += iota.is_iota();
  }
  EXPECT_GT(still_iota, 500);
  EXPECT_LT(still_iota, 2000);
}

TEST(TileAssignment, SortedGroupsStayIotas) {
  TileAssignment tiles = TileAssignment::Iota({1, 1, 2, 4}, {{2, 4}, {1, 0}});
  ASSERT_TRUE(tiles.SortLastDim(kMaxExpandedDevices));
  EXPECT_EQ(Text(tiles), "[1,1,2,4]<=[2,2,2]T(1,0,2)");
  tiles = TileAssignment::Iota({2, 2, 4}, {{2, 2, 4}, {1, 2, 0}});
  ASSERT_TRUE(tiles.SortLastDim(kMaxExpandedDevices));
  EXPECT_EQ(Text(tiles), "[2,2,4]<=[2,4,2]T(1,0,2)");
}

}  // namespace
}  // namespace hlokit
