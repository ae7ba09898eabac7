// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/partitioning.h"

#include <cstdint>
#include <utility>

#include "ir/sharding/sharding.h"
#include "ir/sharding/unpartitioned.h"
#include "passes/core/pipeline.h"

namespace hlokit::lazy {
namespace {

// The most devices of a result's sharding that are written out.
constexpr int64_t kMaxListed = 1 << 20;

}  // namespace

absl::Status SetPartitions(Module* module) {
  const int64_t partitions = PartitionsOfShardings(*module);
  if (partitions <= 1) return absl::OkStatus();
  module->header().num_partitions = partitions;
  Module whole = module->Clone();
  absl::StatusOr<Pipeline> propagation = Pipeline::Parse("spmd-propagation");
  if (!propagation.ok()) return propagation.status();
  if (absl::Status status = propagation->Run(whole).status(); !status.ok()) return status;
  // The result has the distributions of what it is a tuple of, as with
  // allow_spmd_sharding_propagation_to_output.
  Sharding result{true, {}};
  for (const Instruction element : whole.entry().root().operands()) {
    const std::optional<uint32_t> found = element.payload(Attr::kSharding);
    const bool of_array = found && element.shape().IsArray() && !IsTupleSharding(whole.context(), ListId(*found));
    result.runs.push_back({of_array ? DecodeLeaf(whole.context(), ListId(*found)) : ShardingLeaf(), 1});
  }
  if (result.runs.empty()) return absl::OkStatus();
  module->SetAttr(module->entry().root().id(), Attr::kSharding, EncodeSharding(&module->context(), result).value);
  return absl::OkStatus();
}

std::vector<std::optional<Tiling>> ResultShardings(const Module& lowered) {
  std::vector<std::optional<Tiling>> result;
  const Instruction root = lowered.entry().root();
  const std::optional<uint32_t> found = root.payload(Attr::kSharding);
  if (!found) return result;
  for (const Sharding::Run& run : DecodeSharding(lowered.context(), ListId(*found)).runs) {
    std::optional<Tiling> tiling;
    TileAssignment tiles = run.leaf.tiles;
    const std::vector<SubgroupType>& subgroups = run.leaf.subgroups;
    const bool copies = subgroups == std::vector<SubgroupType>{SubgroupType::kReplicated};
    if (run.leaf.kind == ShardingKind::kTiled && (subgroups.empty() || copies) && tiles.Expand(kMaxListed)) {
      tiling = Tiling{std::move(tiles.dims), std::move(tiles.devices), copies};
    }
    for (int64_t i = 0; i < run.count; ++i) result.push_back(tiling);
  }
  return result;
}

}  // namespace hlokit::lazy
