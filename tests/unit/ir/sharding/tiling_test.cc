// SPDX-License-Identifier: Apache-2.0
// Tilings: conversion from and to every text form, and their arithmetic, against device lists that are written out.
#include "ir/sharding/tiling.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "ir/sharding/tiling_reshape.h"

namespace hlokit {
namespace {

ShardingLeaf TiledLeaf(TileAssignment tiles, std::vector<SubgroupType> subgroups = {}) {
  ShardingLeaf leaf;
  leaf.kind = ShardingKind::kTiled;
  leaf.tiles = std::move(tiles);
  leaf.subgroups = std::move(subgroups);
  EXPECT_EQ(NormalizeTiled(&leaf), std::nullopt);
  return leaf;
}

TileAssignment Iota(std::vector<int64_t> dims, std::vector<int64_t> reshape = {}, std::vector<int64_t> perm = {}) {
  const int64_t count = DeviceCount(dims).value();
  if (reshape.empty()) return TileAssignment::Iota(std::move(dims), {{count}, {0}});
  return TileAssignment::Iota(std::move(dims), {std::move(reshape), std::move(perm)});
}

std::string TextOf(const Context& context, const ShardingLeaf& leaf) {
  std::string text;
  {
    TextWriter out(&text);
    Context scratch;
    PrintSharding(out, context, EncodeLeaf(const_cast<Context*>(&context), leaf));
  }
  return text;
}

class TilingTest : public ::testing::Test {
 protected:
  std::string Text(const Tiling& tiling) { return TextOf(context_, LeafOf(tiling)); }
  std::string Text(const std::optional<Tiling>& tiling) { return tiling ? Text(*tiling) : "none"; }
  static Tiling Tiled(TileAssignment tiles, std::vector<SubgroupType> subgroups = {}) {
    const ShardingLeaf leaf = TiledLeaf(std::move(tiles), std::move(subgroups));
    return TilingOf(leaf, leaf.data_rank()).value();
  }
  // Mesh 'x', 'y', … of these sizes.
  ShardingLeaf Named(std::vector<int64_t> sizes, std::vector<DimSharding> dims) {
    ShardingLeaf leaf;
    leaf.kind = ShardingKind::kNamed;
    for (size_t i = 0; i < sizes.size(); ++i) {
      leaf.mesh.names.push_back(context_.strings.Intern(std::string(1, static_cast<char>('x' + i))));
    }
    leaf.mesh.devices = Iota(sizes);
    leaf.dims = std::move(dims);
    return leaf;
  }
  Context context_;
};

constexpr SubgroupType kReplicatedDim = SubgroupType::kReplicated;
constexpr SubgroupType kManualDim = SubgroupType::kManual;

TEST_F(TilingTest, RoundTripsTileAssignments) {
  EXPECT_EQ(Text(Tiled(Iota({2, 4}))), "{devices=[2,4]<=[8]}");
  EXPECT_EQ(Text(Tiled(Iota({4, 2}, {2, 4}, {1, 0}))), "{devices=[4,2]<=[2,4]T(1,0)}");
  EXPECT_EQ(Text(Tiled(Iota({2, 1, 4}), {kReplicatedDim})), "{devices=[2,1,4]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(Text(Tiled(Iota({2, 2, 2}), {kManualDim, kReplicatedDim})),
            "{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}");
  // A list with a pattern becomes an iota; one without stays a list.
  EXPECT_EQ(Text(Tiled({{2, 2}, {}, {0, 2, 1, 3}})), "{devices=[2,2]<=[2,2]T(1,0)}");
  EXPECT_EQ(Text(Tiled({{2, 2}, {}, {0, 1, 3, 2}})), "{devices=[2,2]0,1,3,2}");
  // The dimensions cut an axis of the iota, or do not divide it.
  EXPECT_EQ(Text(Tiled(Iota({6, 35}, {7, 10, 3}, {2, 1, 0}))), "{devices=[6,35]<=[7,10,3]T(2,1,0)}");
  EXPECT_EQ(Text(Tiled(Iota({4, 3}, {4, 3}, {1, 0}))), "{devices=[4,3]0,3,6,9,1,4,7,10,2,5,8,11}");
}

TEST_F(TilingTest, HugeAssignmentsAreNotListed) {
  const int64_t million = 1000000;
  EXPECT_EQ(Text(Tiled(Iota({million, million}, {million, million}, {1, 0}))),
            "{devices=[1000000,1000000]<=[1000000,1000000]T(1,0)}");
  const ShardingLeaf odd = TiledLeaf(Iota({4 * million, 3}, {4, 3 * million}, {1, 0}));
  EXPECT_EQ(TilingOf(odd, 2), std::nullopt);
}

TEST_F(TilingTest, NamedAxes) {
  const ShardingLeaf leaf = Named({2, 4}, {{{{1, 1, 2}}}, {{{0}}}});
  const Tiling tiling = TilingOf(leaf, 2).value();
  EXPECT_EQ(Text(tiling), "{devices=[2,2,2]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}");
  const std::optional<ShardingLeaf> back = NamedLeafOf(tiling, leaf.mesh);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*back, leaf);
  EXPECT_EQ(TextOf(context_, NamedLeafOf(&context_, tiling)),
            "{mesh['axis_0'=2,'axis_1'=2,'axis_2'=2], [{'axis_1'}, {'axis_0'}]}");
  // Axes of another factorization are not on the mesh.
  EXPECT_EQ(NamedLeafOf(Tiled(Iota({3, 4})), Named({4, 3}, {}).mesh), std::nullopt);
}

TEST_F(TilingTest, MergesDimensions) {
  const Tiling rows = Tiled(Iota({2, 1, 4}), {kReplicatedDim}),
               columns = Tiled(Iota({1, 2, 4}, {4, 2}, {1, 0}), {kReplicatedDim});
  EXPECT_EQ(Text(Merge(rows, columns, MergePolicy::kWholeDimensions)),
            "{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}");
  EXPECT_EQ(Text(Merge(rows, Tiled(Iota({1, 2, 4}), {kReplicatedDim}), MergePolicy::kWholeDimensions)), "none");
  const Tiling finer = Tiled(Iota({4, 1, 2}), {kReplicatedDim});
  EXPECT_EQ(Text(Merge(finer, rows, MergePolicy::kWholeDimensions)), "none");
  EXPECT_EQ(Text(Merge(finer, rows, MergePolicy::kPrefixes)), "{devices=[4,1,2]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(Text(Merge(rows, Tiling::Of(ShardingKind::kReplicated), MergePolicy::kWholeDimensions)), Text(rows));
  // Lists of devices without a pattern relate through the parts they share.
  const Tiling listed = Tiled({{2, 2}, {}, {0, 1, 3, 2}}),
               coarse = Tiled({{2, 1, 2}, {}, {0, 1, 2, 3}}, {kReplicatedDim});
  EXPECT_EQ(Text(Merge(listed, coarse, MergePolicy::kWholeDimensions)), Text(listed));
}

TEST_F(TilingTest, Reshapes) {
  const Tiling rows = Tiled(Iota({6, 1}));
  EXPECT_EQ(Text(Reshape({{6, 4}}, {{24}}, rows)), "{devices=[6]<=[6]}");
  EXPECT_EQ(Text(Reshape({{24}}, {{6, 4}}, Tiled(Iota({12})))), "{devices=[6,2]<=[12]}");
  // Tiles of the minor dimension would be strided.
  EXPECT_EQ(Text(Reshape({{6, 4}}, {{24}}, Tiled(Iota({1, 2})))), "none");
  EXPECT_EQ(Text(Reshape({{2, 3, 5}}, {{3, 5, 2}}, Tiled(Iota({1, 3, 1})))), "none");
  EXPECT_EQ(Text(Reshape({{0, 4}}, {{4, 0}}, Tiled(Iota({1, 2})))), "none");
  EXPECT_EQ(Text(Reshape({{1, 8}}, {{8}}, Tiled(Iota({2, 4})))),
            "{devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}");
}

TEST_F(TilingTest, ReversedDevices) {
  EXPECT_EQ(Text(Reverse(Tiled(Iota({4, 2})), {{0}})), "{devices=[4,2]6,7,4,5,2,3,0,1}");
  EXPECT_EQ(Text(Reverse(*Reverse(Tiled(Iota({4, 2})), {{0}}), {{0}})), "{devices=[4,2]<=[8]}");
}

TEST_F(TilingTest, Bounds) {
  const Tiling uneven = Tiled(Iota({4, 2}));
  EXPECT_EQ(TileSizes(uneven, {{5, 6}}), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(BoundsOf(uneven, {{5, 6}}, 5)->offset, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(BoundsOf(uneven, {{5, 6}}, 5)->limit, (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(BoundsOf(uneven, {{5, 6}}, 7)->offset, (std::vector<int64_t>{5, 3}));  // nothing but padding
  EXPECT_EQ(BoundsOf(uneven, {{5, 6}}, 8), std::nullopt);
}

// Returns a random tiling of 24 devices, of two dimensions: axes in a random order, some replicated.
Tiling RandomTiling(std::mt19937* random) {
  std::vector<int64_t> reshape = {2, 3, 2, 2};
  std::shuffle(reshape.begin(), reshape.end(), *random);
  std::vector<int64_t> perm = {0, 1, 2, 3};
  std::shuffle(perm.begin(), perm.end(), *random);
  size_t ends[] = {(*random)() % 5, (*random)() % 5};
  if (ends[0] > ends[1]) std::swap(ends[0], ends[1]);
  std::vector<int64_t> dims(3, 1);
  for (size_t i = 0; i < perm.size(); ++i) {
    dims[i < ends[0] ? 0 : i < ends[1] ? 1 : 2] *= reshape[static_cast<size_t>(perm[i])];
  }
  const ShardingLeaf leaf = TiledLeaf(Iota(dims, reshape, perm), {kReplicatedDim});
  return TilingOf(leaf, 2).value();
}

// Containment and merging agree with the bounds of the parts of every device.
TEST_F(TilingTest, AgreesWithTheDevicesParts) {
  std::mt19937 random(7);
  int contained = 0, merged_pairs = 0;
  for (int i = 0; i < 3000; ++i) {
    const Tiling a = RandomTiling(&random), b = RandomTiling(&random);
    const std::vector<int64_t> sizes = {static_cast<int64_t>(1 + random() % 30), 24};
    bool within = true;
    for (int64_t device = 0; device < 24; ++device) {
      const TileBounds sub = *BoundsOf(a, sizes, device), super = *BoundsOf(b, sizes, device);
      for (size_t d = 0; d < 2; ++d) {
        within = within && (sub.offset[d] == sub.limit[d] ||
                            (super.offset[d] <= sub.offset[d] && sub.limit[d] <= super.limit[d]));
      }
    }
    EXPECT_EQ(IsSubTilingOrEqual(sizes, a, b), within) << Text(a) << " " << Text(b) << " " << sizes[0];
    contained += within;
    const std::optional<Tiling> merged = Merge(a, b, MergePolicy::kPrefixes);
    if (!merged) continue;
    ++merged_pairs;
    const std::vector<int64_t> even = {24, 24};
    EXPECT_TRUE(IsSubTilingOrEqual(even, *merged, b)) << Text(a) << " " << Text(b) << " " << Text(*merged);
    if (const std::optional<Tiling> whole = Merge(a, b, MergePolicy::kWholeDimensions)) {
      EXPECT_TRUE(IsSubTilingOrEqual(even, *whole, a)) << Text(a) << " " << Text(b) << " " << Text(*whole);
      EXPECT_TRUE(IsSubTilingOrEqual(even, *whole, b)) << Text(a) << " " << Text(b) << " " << Text(*whole);
    }
  }
  EXPECT_GT(contained, 100);
  EXPECT_GT(merged_pairs, 100);
}

// A device has the same elements before and after a reshape.
TEST_F(TilingTest, ReshapesMoveNoData) {
  std::mt19937 random(11);
  const std::vector<std::vector<int64_t>> shapes = {{24, 6}, {6, 24}, {4, 36}, {144, 1}, {2, 72}, {12, 12}, {16, 9}};
  int kept = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<int64_t>&from = shapes[random() % shapes.size()], &to = shapes[random() % shapes.size()];
    const Tiling tiling = RandomTiling(&random);
    const Tiling reshaped = ReshapeOrReplicate(from, to, tiling);
    if (!reshaped.tiled()) continue;
    if (from[0] % tiling.tiles(0) != 0 || from[1] % tiling.tiles(1) != 0) continue;
    ++kept;
    for (int64_t device = 0; device < 24; ++device) {
      const TileBounds before = *BoundsOf(tiling, from, device), after = *BoundsOf(reshaped, to, device);
      // Each element of the part before is in the part after.
      for (int64_t r = before.offset[0]; r < before.limit[0]; ++r) {
        for (int64_t c = before.offset[1]; c < before.limit[1]; ++c) {
          const int64_t element = r * from[1] + c, row = element / to[1], column = element % to[1];
          ASSERT_TRUE(after.offset[0] <= row && row < after.limit[0] && after.offset[1] <= column &&
                      column < after.limit[1])
              << Text(tiling) << " " << Text(reshaped);
        }
      }
    }
  }
  EXPECT_GT(kept, 100);
}

}  // namespace
}  // namespace hlokit
