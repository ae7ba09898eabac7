// SPDX-License-Identifier: Apache-2.0
#include "check/equivalence/partition_tracker.h"

#include <optional>
#include <utility>
#include <vector>

#include "ir/sharding/sharding.h"
#include "ir/sharding/unpartitioned.h"

namespace hlokit::interp {
namespace {

std::vector<Shape> ParameterLeaves(const Module& module) {
  std::vector<Shape> leaves;
  for (int64_t k = 0; k < module.entry().parameter_count(); ++k) {
    for (Shape leaf : Leaves(module.entry().parameter(k).shape())) leaves.push_back(leaf);
  }
  return leaves;
}

bool Communicates(const Module& module) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (HasTrait(i.opcode(), kCollective) || i.opcode() == Opcode::kPartitionId) return true;
    }
  }
  return false;
}

// Returns true if one device alone has some value.
bool HasMaximalSharding(const Module& module) {
  if (IsMarkedPartitioned(module)) return false;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      const std::optional<uint32_t> payload = i.payload(Attr::kSharding);
      if (!payload) continue;
      for (const Sharding::Run& run : DecodeSharding(module.context(), ListId(*payload)).runs) {
        if (run.leaf.kind == ShardingKind::kMaximal) return true;
      }
    }
  }
  return false;
}

}  // namespace

PartitionTracker::PartitionTracker(const Module& module)
    : whole_(module.header().num_partitions > 1 &&
             (FirstUnpartitioned(module).valid() || (HasMaximalSharding(module) && !Communicates(module)))) {}

void PartitionTracker::RunBeforePass(const Module& module) {
  if (!whole_) return;
  const int64_t partitions = module.header().num_partitions;
  absl::StatusOr<ShardedArrays> parameters = ShardedArrays::OfParameters(module, partitions);
  absl::StatusOr<ShardedArrays> result = ShardedArrays::OfResult(module, partitions);
  before_.reset();
  if (parameters.ok() && result.ok()) before_ = Division{*std::move(parameters), *std::move(result)};
}

void PartitionTracker::RunAfterPass(const Module& module) {
  if (!whole_ || !before_) return;
  const std::vector<Shape> results = Leaves(module.entry().root().shape());
  if (!before_->parameters.CheckPartShapes(ParameterLeaves(module), "argument").ok() ||
      !before_->result.CheckPartShapes(results, "result").ok()) {
    return;
  }
  const bool divided = before_->parameters.IsDivided() || before_->result.IsDivided();
  if (!divided && !Communicates(module) && !IsMarkedPartitioned(module)) return;
  division_ = std::move(before_);
  whole_ = false;
}

int64_t PartitionTracker::PartitionsOf(const Module& module) const {
  return whole_ ? 1 : module.header().num_partitions;
}

}  // namespace hlokit::interp
