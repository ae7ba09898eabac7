// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/more_partitions.h"

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/module.h"
#include "ir/sharding/tiling.h"
#include "ir/sharding/unpartitioned.h"

namespace hlokit::tpu {
namespace {

bool MultiplySlowestAxis(ShardingLeaf* leaf, int64_t rank, int64_t factor) {
  if (leaf->kind != ShardingKind::kTiled && leaf->kind != ShardingKind::kNamed) return true;
  if (rank < 0) return false;
  std::optional<Tiling> tiling = TilingOf(*leaf, rank);
  if (!tiling || !tiling->order.empty()) return false;
  if (!tiling->tiled()) return true;
  const int64_t devices = tiling->device_count;
  tiling->device_count *= factor;
  const auto multiply = [&](AxisList* axes) {
    for (DeviceAxis& axis : *axes) {
      if (axis.end() == devices) axis.size *= factor;
    }
  };
  for (AxisList& dim : tiling->dims) multiply(&dim);
  for (AxisList* axes : {&tiling->maximal, &tiling->manual, &tiling->unreduced, &tiling->replicated}) multiply(axes);
  *leaf = LeafOf(*tiling);
  return true;
}

}  // namespace

bool MultiplyPartitions(Module* module, int64_t factor) {
  constexpr int64_t kMaxDevices = int64_t{1} << 20;
  if (!AwaitsPartitioning(*module) || module->header().num_partitions > kMaxDevices / factor) return false;
  module->header().num_partitions *= factor;
  absl::flat_hash_map<uint32_t, uint32_t> changed;  // by encoded sharding; named ones depend on the rank too
  for (Computation c : module->computations()) {
    for (Instruction i : c.instructions()) {
      const std::optional<uint32_t> own = i.payload(Attr::kSharding);
      if (!own) continue;
      const auto [known, added] = changed.emplace(*own, 0);
      if (added) {
        Sharding sharding = DecodeSharding(module->context(), ListId(*own));
        for (Sharding::Run& run : sharding.runs) {
          const int64_t rank = i.shape().IsArray() ? i.shape().rank() : run.leaf.data_rank();
          if (!MultiplySlowestAxis(&run.leaf, rank, factor)) return false;
        }
        known->second = EncodeSharding(&module->context(), sharding).value;
      }
      module->SetAttr(i.id(), Attr::kSharding, known->second);
    }
  }
  return true;
}

}  // namespace hlokit::tpu
