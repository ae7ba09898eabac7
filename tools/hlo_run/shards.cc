// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/shards.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/sharding/sharding.h"
#include "ir/sharding/tiling.h"

namespace hlokit::run {
namespace {

// Returns the sharding of each leaf of the parameters; nullopt without one.
std::vector<std::optional<ShardingLeaf>> LeafShardings(const Module& module, size_t leaves) {
  std::vector<std::optional<ShardingLeaf>> shardings;
  const Computation entry = module.entry();
  for (int64_t p = 0; p < entry.parameter_count() && shardings.size() < leaves; ++p) {
    const Instruction parameter = entry.parameter(p);
    const size_t end =
        std::min(leaves, shardings.size() + static_cast<size_t>(std::max<int64_t>(parameter.shape().leaf_count(), 0)));
    if (parameter.has(Attr::kSharding)) {
      const Sharding sharding = DecodeSharding(module.context(), AttrReader(parameter).list_id(Attr::kSharding));
      for (const Sharding::Run& run : sharding.runs) {
        for (int64_t k = 0; k < run.count && shardings.size() < end; ++k) shardings.emplace_back(run.leaf);
      }
      // A sharding that is no tuple holds for all leaves.
      while (!sharding.is_tuple && shardings.size() < end) shardings.emplace_back(sharding.leaf());
    }
    shardings.resize(end);
  }
  shardings.resize(leaves);
  return shardings;
}

bool SameBytes(const Literal& a, const Literal& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Copies `shard` to the place of the whole that begins at `begin`; what is beyond its end is padding.
void CopyShard(const Literal& shard, absl::Span<const int64_t> begin, Literal* whole) {
  const absl::Span<const int64_t> from = shard.shape().dims(), to = whole->shape().dims();
  const size_t rank = to.size();
  if (shard.element_count() == 0 || whole->element_count() == 0) return;
  const size_t element = whole->size_bytes() / static_cast<size_t>(whole->element_count());
  std::vector<int64_t> sizes(rank), index(rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    sizes[d] = std::min(from[d], to[d] - begin[d]);
    if (sizes[d] <= 0) return;
  }
  while (true) {
    // Copies a run along the last dimension.
    size_t source = 0, target = 0;
    for (size_t d = 0; d < rank; ++d) {
      source = source * static_cast<size_t>(from[d]) + static_cast<size_t>(index[d]);
      target = target * static_cast<size_t>(to[d]) + static_cast<size_t>(begin[d] + index[d]);
    }
    const size_t run = rank == 0 ? 1 : static_cast<size_t>(sizes[rank - 1]);
    std::memcpy(whole->data() + target * element, shard.data() + source * element, run * element);
    size_t d = rank;
    if (d > 0) --d;  // the run
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

absl::StatusOr<Literal> JoinLeaf(absl::Span<const ShardedArguments> partitions, size_t leaf, Shape whole,
                                 const std::optional<ShardingLeaf>& sharding) {
  const auto fail = [&](std::string_view message) {
    return absl::InvalidArgumentError(StrCat("argument ", leaf, ": ", message));
  };
  const Literal& first = partitions[0][leaf];
  for (const ShardedArguments& partition : partitions) {
    if (partition[leaf].elided()) return fail("it has no value in the snapshot");
    if (!Compatible(partition[leaf].shape(), first.shape())) return fail("the partitions have parts of other shapes");
  }
  if (Compatible(first.shape(), whole)) {
    const auto same = [&](const ShardedArguments& partition) { return SameBytes(partition[leaf], first); };
    if (whole.IsArray() && !std::all_of(partitions.begin(), partitions.end(), same)) {
      return fail(
          "the partitions have other values, and each has all of its shape: specify --replicas or --partitions");
    }
    return first;
  }
  const auto shapes = [&] {
    return StrCat("partitions have ", ToString(first.shape(), false), "; the program takes ", ToString(whole, false));
  };
  if (!whole.IsArray() || !first.shape().IsArray() || first.shape().element_type() != whole.element_type() ||
      first.shape().rank() != whole.rank()) {
    return fail(shapes());
  }
  if (!sharding)
    return fail(StrCat(shapes(), ", and no sharding that divides it: specify whole arguments with --args"));
  const std::optional<Tiling> tiling = TilingOf(*sharding, whole.rank());
  if (!tiling || !tiling->tiled() || tiling->rank() != whole.rank() ||
      tiling->device_count != static_cast<int64_t>(partitions.size())) {
    return fail(StrCat(shapes(), ", and its sharding is not one over ", partitions.size(), " devices"));
  }
  for (int64_t d = 0; d < whole.rank(); ++d) {
    const int64_t tiles = tiling->tiles(d), size = whole.dim(d);
    if (first.shape().dim(d) != (size + tiles - 1) / tiles) return fail(shapes());
  }
  Literal joined = Literal::Zeros(whole);
  std::vector<int64_t> begin(static_cast<size_t>(whole.rank()));
  for (int64_t position = 0; position < tiling->device_count; ++position) {
    const int64_t device = tiling->DeviceAt(position);
    if (device < 0 || device >= tiling->device_count) return fail("its sharding has devices out of range");
    for (size_t d = 0; d < begin.size(); ++d) {
      begin[d] = TileNumber(tiling->dims[d], position) * first.shape().dim(static_cast<int64_t>(d));
    }
    CopyShard(partitions[static_cast<size_t>(device)][leaf], begin, &joined);
  }
  return joined;
}

}  // namespace

absl::StatusOr<std::vector<Literal>> JoinShards(absl::Span<const ShardedArguments> partitions,
                                                absl::Span<const Shape> wholes, const Module& module) {
  for (const ShardedArguments& partition : partitions) {
    if (partition.size() != wholes.size()) {
      return absl::InvalidArgumentError(
          StrCat("the snapshot has ", partition.size(), " arguments; the program has ", wholes.size()));
    }
  }
  const std::vector<std::optional<ShardingLeaf>> shardings = LeafShardings(module, wholes.size());
  std::vector<Literal> joined;
  for (size_t leaf = 0; leaf < wholes.size(); ++leaf) {
    absl::StatusOr<Literal> value = JoinLeaf(partitions, leaf, wholes[leaf], shardings[leaf]);
    if (!value.ok()) return value.status();
    joined.push_back(*std::move(value));
  }
  return joined;
}

}  // namespace hlokit::run
