// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/sharding.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hlokit {
namespace {

class ShardingTest : public ::testing::Test {
 protected:
  static ShardingLeaf Of(ShardingKind kind) {
    ShardingLeaf leaf;
    leaf.kind = kind;
    return leaf;
  }
  static ShardingLeaf OnDevice(int64_t device) {
    ShardingLeaf leaf = Of(ShardingKind::kMaximal);
    leaf.device = device;
    return leaf;
  }
  static ShardingLeaf Tiled(TileAssignment tiles, std::vector<SubgroupType> subgroups = {}) {
    ShardingLeaf leaf = Of(ShardingKind::kTiled);
    leaf.tiles = std::move(tiles);
    leaf.subgroups = std::move(subgroups);
    return leaf;
  }
  static TileAssignment Iota(std::vector<int64_t> dims) {
    const int64_t count = DeviceCount(dims).value();
    return TileAssignment::Iota(std::move(dims), {{count}, {0}});
  }
  std::string Text(ListId id, bool include_metadata = true) {
    std::string text;
    TextWriter out(&text);
    PrintSharding(out, context_, id, include_metadata);
    out.Flush();
    return text;
  }
  // Canonicalizes, encodes, decodes and prints `leaf`.
  std::string Text(ShardingLeaf leaf) {
    if (std::optional<std::string> error = NormalizeTiled(&leaf)) return *error;
    const ListId id = EncodeLeaf(&context_, leaf);
    EXPECT_EQ(DecodeLeaf(context_, id), leaf);
    return Text(id);
  }
  Shape F32(std::vector<int64_t> dims) { return context_.shapes.Array(ElementType::kF32, dims); }

  Context context_;
};

constexpr SubgroupType kReplicated = SubgroupType::kReplicated;
constexpr SubgroupType kManual = SubgroupType::kManual;
constexpr SubgroupType kUnreduced = SubgroupType::kUnreduced;

TEST_F(ShardingTest, EncodeDecode) {
  ShardingLeaf named = Of(ShardingKind::kNamed);
  named.mesh.names = {context_.strings.Intern("x"), context_.strings.Intern("y")};
  named.mesh.devices = Iota({2, 4});
  named.dims = {{{{0}, {1, 1, 2}}, false}, {{}, true}};
  named.unreduced = {{1, 2, 2}};
  named.reduction = ReductionOp::kMax;
  ShardingLeaf grouped = Of(ShardingKind::kUnknown);
  grouped.group = ShardGroup::kLike;
  grouped.group_id = 3;
  Sharding tuple{true, {{named, 1}, {grouped, 2}, {Tiled({{2, 2}, {}, {3, 1, 0, 2}}, {kManual}), 1}, {OnDevice(4), 1}}};
  ShardingLeaf manual = Of(ShardingKind::kManual);
  manual.over_mesh = true;
  manual.mesh = named.mesh;
  manual.manual = {{0}, {1}};
  const Sharding over_mesh = Sharding::Of(manual);
  EXPECT_EQ(DecodeSharding(context_, EncodeSharding(&context_, over_mesh)), over_mesh);
  for (Sharding::Run& run : tuple.runs) {
    const Sharding one = Sharding::Of(run.leaf);
    EXPECT_EQ(DecodeSharding(context_, EncodeSharding(&context_, one)), one);
  }
  const ListId id = EncodeSharding(&context_, tuple);
  EXPECT_TRUE(IsTupleSharding(context_, id));
  EXPECT_EQ(DecodeSharding(context_, id), tuple);
  EXPECT_EQ(tuple.leaf_count(), 5);
  EXPECT_EQ(Text(id),
            "{{mesh['x'=2,'y'=4], [{'x', 'y':(1)2}, {?}], unreduced=max{'y':(2)2}}, {unknown shard_like 3}, "
            "{unknown shard_like 3}, {devices=[2,2]3,1,0,2 last_tile_dims={manual}}, {maximal device=4}}");
  EXPECT_EQ(Text(EncodeTupleSharding(&context_, {})), "{}");
}

TEST_F(ShardingTest, EqualNeighborsAreOneRun) {
  const ListId leaf = EncodeLeaf(&context_, Of(ShardingKind::kReplicated));
  const std::vector<ListId> seven(7, leaf);
  const ListId id = EncodeTupleSharding(&context_, seven);
  EXPECT_EQ(context_.list(id).size(), 3);
  EXPECT_EQ(
      Text(id),
      "{{replicated}, {replicated}, {replicated}, {replicated}, {replicated}, /*index=5*/{replicated}, {replicated}}");
  Sharding split{true, {{Of(ShardingKind::kReplicated), 3}, {Of(ShardingKind::kReplicated), 4}}};
  EXPECT_EQ(EncodeSharding(&context_, split), id);
}

TEST_F(ShardingTest, OneForAllLeaves) {
  const ListId leaf = EncodeLeaf(&context_, Of(ShardingKind::kManual));
  const Shape array = F32({2}), pair = context_.shapes.Tuple({array, context_.shapes.Tuple({array})});
  EXPECT_EQ(NormalizeForShape(&context_, leaf, array), leaf);
  const ListId both = NormalizeForShape(&context_, leaf, pair);
  EXPECT_EQ(Text(both), "{{manual}, {manual}}");
  EXPECT_EQ(NormalizeForShape(&context_, both, pair), both);
  EXPECT_EQ(Text(NormalizeForShape(&context_, leaf, context_.shapes.Tuple({}))), "{{manual}}");
  // More leaves than can be expanded.
  Shape shape = array;
  for (int i = 0; i < 60; ++i) shape = context_.shapes.Tuple({shape, shape});
  const ListId many = NormalizeForShape(&context_, leaf, shape);
  EXPECT_EQ(DecodeSharding(context_, many).leaf_count(), int64_t{1} << 60);
}

TEST_F(ShardingTest, NormalTiles) {
  // Untiled leaves have a keyword.
  EXPECT_EQ(Text(Tiled(Iota({1, 1, 4}), {kReplicated})), "{replicated}");
  EXPECT_EQ(Text(Tiled(Iota({1, 2, 2}), {kManual, kManual})), "{manual}");
  EXPECT_EQ(Text(Tiled(Iota({1, 4}), {kUnreduced})), "{unreduced}");
  EXPECT_EQ(Text(Tiled(Iota({1, 1, 4}), {kManual, kReplicated})), "{replicated}");
  EXPECT_EQ(Text(Tiled(Iota({1, 4, 1}), {kManual, kReplicated})), "{manual}");
  // Dimensions of size one are dropped.
  EXPECT_EQ(Text(Tiled(Iota({2, 2, 1}), {kReplicated})), "{devices=[2,2]<=[4]}");
  EXPECT_EQ(Text(Tiled(Iota({2, 1, 2}), {kManual, kReplicated})), "{devices=[2,2]<=[4] last_tile_dim_replicate}");
  EXPECT_EQ(Text(Tiled(Iota({1, 1}), {kManual, kReplicated})), "{replicated}");
  // Types are sorted and merged.
  EXPECT_EQ(Text(Tiled(Iota({2, 2, 2}), {kReplicated, kManual})),
            "{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual, replicated}}");
  EXPECT_EQ(Text(Tiled({{1, 4, 2}, {}, {0, 2, 1, 3, 4, 6, 5, 7}}, {kReplicated, kManual})),
            "{devices=[1,2,4]0,1,4,5,2,3,6,7 last_tile_dims={manual, replicated}}");
  EXPECT_EQ(Text(Tiled(Iota({2, 2, 2, 2}), {kManual, kUnreduced, kManual})),
            "{devices=[2,4,2]<=[4,2,2]T(0,2,1) last_tile_dims={manual, unreduced}}");
  // Replicated groups are sorted.
  EXPECT_EQ(Text(Tiled({{2, 2}, {}, {1, 2, 3, 0}}, {kReplicated})), "{devices=[2,2]1,2,0,3 last_tile_dim_replicate}");
  EXPECT_EQ(Text(Tiled(TileAssignment::Iota({2, 4}, {{4, 2}, {1, 0}}), {kReplicated})),
            "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(Text(Tiled(Iota({4}), {kManual, kReplicated})), "more last_tile_dims than dimensions of the tiles");
}

TEST_F(ShardingTest, HugeTilesAreRefusedNotListed) {
  const int64_t million = 1000000;
  EXPECT_EQ(Text(Tiled(Iota({million, million, 2}), {kReplicated})),
            "{devices=[1000000,1000000,2]<=[2000000000000] last_tile_dim_replicate}");
  EXPECT_EQ(Text(Tiled(TileAssignment::Iota({6, million, 2}, {{4, 3 * million}, {1, 0}}), {kReplicated, kManual})),
            "the tiles have too many devices to be listed");
}

TEST_F(ShardingTest, NormalNames) {
  const auto named = [this](std::vector<DimSharding> dims) {
    ShardingLeaf leaf = Of(ShardingKind::kNamed);
    leaf.mesh.names = {context_.strings.Intern("x"), context_.strings.Intern("y")};
    leaf.mesh.devices = Iota({2, 4});
    leaf.dims = std::move(dims);
    return leaf;
  };
  const auto text = [this](ShardingLeaf leaf) {
    if (std::optional<std::string> error = NormalizeNamed(context_, &leaf)) return *error;
    return Text(EncodeLeaf(&context_, leaf));
  };
  ShardingLeaf leaf = named({});
  EXPECT_EQ(text(leaf), "{mesh['x'=2,'y'=4], replicated}");
  leaf.unreduced = {{0}, {1}};
  leaf.reduction = ReductionOp::kMin;
  EXPECT_EQ(text(leaf), "{mesh['x'=2,'y'=4], unreduced=min}");
  leaf.unreduced = {{1}};
  EXPECT_EQ(text(leaf), "{mesh['x'=2,'y'=4], [], unreduced=min{'y'}}");
  leaf = named({});
  leaf.manual = {{0}, {1}};
  EXPECT_EQ(text(leaf), "{mesh['x'=2,'y'=4], manual}");
  leaf.replicated = {{1}};
  EXPECT_EQ(text(leaf), "'y' and 'y' cannot be used together");
  EXPECT_EQ(text(named({{}, {}})), "{mesh['x'=2,'y'=4], [{}, {}]}");
  EXPECT_EQ(text(named({{{{1}}}, {{{0}}, true}})), "{mesh['x'=2,'y'=4], [{'y'}, {'x', ?}]}");
  EXPECT_EQ(text(named({{{{7}}}})), "axis number 7 is out of range: the mesh has 2 axes");
}

TEST_F(ShardingTest, NotesSums) {
  ShardingLeaf leaf = Of(ShardingKind::kUnreduced);
  NoteReduction(&context_, &leaf);
  const ListId id = EncodeLeaf(&context_, leaf);
  EXPECT_EQ(Text(id), R"({unreduced metadata={op_type="sdy::reduction_op" op_name="SUM"}})");
  EXPECT_EQ(Text(id, /*include_metadata=*/false), "{unreduced}");
  NoteReduction(&context_, &leaf);
  EXPECT_EQ(EncodeLeaf(&context_, leaf), id);
  leaf = Of(ShardingKind::kManual);
  NoteReduction(&context_, &leaf);
  EXPECT_TRUE(leaf.metadata.empty());
}

TEST_F(ShardingTest, Validate) {
  const auto check = [](ShardingLeaf leaf, Shape shape, int64_t devices) {
    return Validate(Sharding::Of(std::move(leaf)), shape, devices).value_or("ok");
  };
  const Shape array = F32({8, 8});
  EXPECT_EQ(check(Of(ShardingKind::kReplicated), array, 4), "ok");
  EXPECT_EQ(check(Of(ShardingKind::kReplicated), context_.shapes.Tuple({array}), 4),
            "expected a tuple sharding for a tuple");
  EXPECT_EQ(check(OnDevice(3), array, 4), "ok");
  EXPECT_EQ(check(OnDevice(4), array, 4), "device 4 is out of range: expected less than 4");
  EXPECT_EQ(check(OnDevice(4), array, 0), "ok");
  EXPECT_EQ(check(OnDevice(-1), array, 0), "device -1 is negative");
  EXPECT_EQ(check(OnDevice(9), context_.shapes.Token(), 4), "ok");
  EXPECT_EQ(check(Tiled(Iota({2, 2})), array, 4), "ok");
  EXPECT_EQ(check(Tiled(Iota({2, 2})), array, 8), "expected 8 devices in the sharding, found 4");
  EXPECT_EQ(check(Tiled(Iota({1, 2, 2}), {kReplicated}), array, 4), "ok");
  EXPECT_NE(check(Tiled(Iota({2, 2}), {kReplicated}), array, 4), "ok");
  EXPECT_NE(check(Tiled(Iota({2, 2, 1})), array, 4), "ok");
  EXPECT_EQ(check(Tiled({{2, 2}, {}, {3, 2, 1, 0}}), array, 4), "ok");
  EXPECT_EQ(check(Tiled({{2, 2}, {}, {3, 2, 1, 1}}), array, 4), "duplicate device 1");
  EXPECT_EQ(check(Tiled({{2, 2}, {}, {3, 2, 1, 4}}), array, 4), "device 4 is out of range: expected less than 4");
  EXPECT_EQ(check(Tiled({{1, 2}, {}, {0, 1}}), array, 4), "expected 4 devices in the sharding, found 2");
  EXPECT_EQ(check(Tiled(Iota({1, 1})), array, 4), "ok");  // whole on any number of devices
}

TEST_F(ShardingTest, ValidateTuples) {
  const Shape array = F32({8, 8}), vector = F32({8});
  const Shape pair = context_.shapes.Tuple({array, context_.shapes.Tuple({vector, context_.shapes.Token()})});
  const ShardingLeaf square = Tiled(Iota({2, 2})), line = Tiled(Iota({4}));
  EXPECT_EQ(Validate({true, {{square, 1}, {line, 2}}}, pair, 4), std::nullopt);
  EXPECT_EQ(Validate({true, {{square, 1}, {line, 1}}}, pair, 4),
            "expected 3 shardings, one for each leaf of the shape, found 2");
  EXPECT_EQ(Validate({true, {{square, 3}}}, array, 4), "unexpected tuple sharding: the value is not a tuple");
  const std::optional<std::string> error = Validate({true, {{square, 3}}}, pair, 4);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->substr(0, 8), "leaf 1: ");
  const Shape empty = context_.shapes.Tuple({});
  EXPECT_EQ(Validate({true, {}}, empty, 4), std::nullopt);
  EXPECT_EQ(Validate({true, {{OnDevice(1), 1}}}, empty, 4), std::nullopt);
}

}  // namespace
}  // namespace hlokit
