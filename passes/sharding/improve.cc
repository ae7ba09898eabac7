// SPDX-License-Identifier: Apache-2.0
// Whether a proposed sharding replaces what an instruction has.
#include <algorithm>
#include <optional>
#include <utility>

#include "ir/sharding/tiling_arithmetic.h"
#include "passes/sharding/propagator.h"

namespace hlokit::sharding {

std::optional<Tiling> Propagator::Improvement(Shape shape, const Tiling& current, const Tiling& proposal,
                                              bool aggressive, bool* conflict) const {
  const bool untiled = current.kind == ShardingKind::kReplicated || current.kind == ShardingKind::kMaximal;
  if (proposal.kind == ShardingKind::kManual) return untiled ? std::optional(proposal) : std::nullopt;
  if (!proposal.tiled()) return std::nullopt;
  if (untiled) return proposal;
  if (!current.tiled() || current.dims.size() != proposal.dims.size()) return std::nullopt;
  Tiling candidate = proposal;
  const int64_t have = current.tiles(), offered = proposal.tiles();
  bool merged = false;
  if (MayMerge() && current.IsPartiallyReplicated() && proposal.IsPartiallyReplicated()) {
    std::optional<Tiling> both = Merge(current, proposal, MergePolicy::kWholeDimensions);
    if (!both) both = Merge(current, proposal, MergePolicy::kPrefixes);
    if (both && both->tiles() > std::max(have, offered)) {
      candidate = *std::move(both);
      merged = true;
    }
  }
  if (!merged) {
    if (offered <= have) {
      *conflict = offered > 1 && !IsSubTilingOrEqual(shape.dims(), current, proposal);
      return std::nullopt;
    }
    if (!aggressive && !IsSubTilingOrEqual(shape.dims(), proposal, current)) {
      *conflict = true;
      return std::nullopt;
    }
  }
  return candidate;
}

bool Propagator::Improve(Instruction i, int64_t leaf, const Tiling& proposal, bool aggressive, const Source& source) {
  const absl::Span<const Shape> shapes = LeafShapes(i);
  std::vector<TilingRef> proposals(shapes.size(), nullptr);
  proposals[ToSize(leaf)] = Intern(proposal);
  return ImproveAll(i, proposals, aggressive, source);
}

bool Propagator::ImproveAll(Instruction i, absl::Span<const TilingRef> proposals, bool aggressive,
                            const Source& source) {
  const absl::Span<const Shape> shapes = LeafShapes(i);
  const auto usable = [](TilingRef t) {
    return t != nullptr && (t->tiled() || t->kind == ShardingKind::kReplicated || t->kind == ShardingKind::kManual);
  };
  if (!Has(i)) {
    TilingRef first = nullptr;
    for (TilingRef t : proposals) {
      if (usable(t) && (first == nullptr || IsMoreSpecific(*t, *first))) first = t;
    }
    if (first == nullptr) return false;
    // Leaves that nothing is known of are replicated, within the same subgroups.
    LeafTilings leaves;
    for (size_t k = 0; k < shapes.size(); ++k) {
      if (usable(proposals[k])) {
        leaves.push_back(proposals[k]);
      } else {
        Tiling rest =
            first->tiled() ? ReplicateAllDims(*first, shapes[k].rank()) : Tiling::Of(ShardingKind::kReplicated);
        rest.metadata = first->metadata;
        leaves.push_back(Intern(rest));
      }
    }
    SetFrom(i, std::move(leaves), source);
    return true;
  }
  LeafTilings leaves = Get(i);
  bool improved = false;
  for (size_t k = 0; k < leaves.size(); ++k) {
    if (!usable(proposals[k])) continue;
    bool conflict = false;
    // The elements of a tuple are resharded one by one.
    const bool forwards = i.shape().IsTuple() && RuleClassOf(i.opcode()) == RuleClass::kForwarding;
    const std::optional<Tiling> better =
        Improvement(shapes[k], *leaves[k], *proposals[k], aggressive || forwards, &conflict);
    if (better) {
      leaves[k] = Intern(*better);
      improved = true;
    } else if (conflict && log_ != nullptr) {
      log_->steps.push_back({i.id(), static_cast<int64_t>(k), source.kind,
                             source.instruction.valid() ? source.instruction.id() : InstructionId(), source.leaf,
                             level_, *leaves[k], *proposals[k], true});
    }
  }
  if (improved) SetFrom(i, std::move(leaves), source);
  return improved;
}

}  // namespace hlokit::sharding
