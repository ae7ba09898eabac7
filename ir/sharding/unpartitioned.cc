// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/unpartitioned.h"

#include <algorithm>
#include <string_view>

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

// Returns true if a sharding of Shardy, "#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>]>", names an axis for a
// dimension.
bool DividesData(std::string_view shardy) {
  for (size_t begin = shardy.find("[{"); begin != shardy.npos; begin = shardy.find("[{", begin + 1)) {
    if (shardy.substr(begin, shardy.find(']', begin) - begin).find('"') != shardy.npos) return true;
  }
  return false;
}

bool HasTiledShardySharding(Instruction instruction) {
  if (!instruction.has(Attr::kFrontendAttributes)) return false;
  const Context& context = instruction.module().context();
  const ListId id = AttrReader(instruction).list_id(Attr::kFrontendAttributes);
  const absl::Span<const int64_t> entries = context.list(id);  // keys and values in turn
  const StringId key = context.strings.Find("xla.sdy.sharding");
  for (size_t k = 0; key.valid() && k + 1 < entries.size(); k += 2) {
    if (entries[k] == key.value) return DividesData(context.str(StringId(static_cast<uint32_t>(entries[k + 1]))));
  }
  return false;
}

}  // namespace

bool IsMarkedPartitioned(const Module& module) {
  const ListId attributes = module.header().frontend_attributes;
  const StringId key = module.context().strings.Find(kPartitionedAttribute);
  if (!attributes.valid() || !key.valid()) return false;
  const absl::Span<const int64_t> entries = module.context().list(attributes);  // keys and values in turn
  for (size_t k = 0; k + 1 < entries.size(); k += 2) {
    if (entries[k] == key.value) return true;
  }
  return false;
}

bool HasTiledSharding(Instruction instruction) {
  if (HasTiledShardySharding(instruction)) return true;
  const ListId id = AttrReader(instruction).list_id(Attr::kSharding);
  if (!instruction.has(Attr::kSharding)) return false;
  const Sharding sharding = DecodeSharding(instruction.module().context(), id);
  return std::any_of(sharding.runs.begin(), sharding.runs.end(),
                     [](const Sharding::Run& run) { return DividesData(run.leaf); });
}

Instruction FirstUnpartitioned(const Module& module) {
  Instruction first;
  if (IsMarkedPartitioned(module)) return first;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (HasTrait(i.opcode(), kCollective)) return Instruction();
      if (!first.valid() && HasTiledSharding(i)) first = i;
    }
  }
  return first;
}

bool AwaitsPartitioning(const Module& module) {
  return module.header().num_partitions > 1 && FirstUnpartitioned(module).valid();
}

}  // namespace hlokit
