// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/unpartitioned.h"

#include <algorithm>

#include "ir/graph/attribute_views.h"
#include "ir/sharding/sharding.h"

namespace hlokit {
namespace {

bool DividesData(const ShardingLeaf& leaf) {
  if (leaf.kind == ShardingKind::kNamed) {
    return std::any_of(leaf.dims.begin(), leaf.dims.end(), [](const DimSharding& d) { return !d.axes.empty(); });
  }
  if (leaf.kind != ShardingKind::kTiled) return false;
  const int64_t rank = std::max<int64_t>(leaf.data_rank(), 0);
  const std::vector<int64_t>& dims = leaf.tiles.dims;
  return std::any_of(dims.begin(), dims.begin() + rank, [](int64_t tiles) { return tiles > 1; });
}

}  // namespace

bool HasTiledSharding(Instruction instruction) {
  const ListId id = AttrReader(instruction).list_id(Attr::kSharding);
  if (!instruction.has(Attr::kSharding)) return false;
  const Sharding sharding = DecodeSharding(instruction.module().context(), id);
  return std::any_of(sharding.runs.begin(), sharding.runs.end(),
                     [](const Sharding::Run& run) { return DividesData(run.leaf); });
}

Instruction FirstUnpartitioned(const Module& module) {
  Instruction first;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (HasTrait(i.opcode(), kCollective)) return Instruction();
      if (!first.valid() && HasTiledSharding(i)) first = i;
    }
  }
  return first;
}

}  // namespace hlokit
