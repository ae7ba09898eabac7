// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/collective_pipeliner.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/saturating.h"
#include "ir/graph/side_effects.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/loop.h"
#include "passes/analysis/memory.h"
#include "passes/analysis/trip_count.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/change_loop.h"
#include "passes/rewrite/loop_body_cloner.h"
#include "passes/schedule/forward_collective_pipeliner.h"
#include "passes/schedule/loop_collectives.h"
#include "passes/schedule/memory_limit.h"
#include "passes/target/tpu_target.h"

namespace hlokit {
namespace {

class LoopPipeliner {
 public:
  LoopPipeliner(Module* module, const CanonicalLoop& plain, int64_t counter, const SideEffects& effects,
                int64_t* next_channel)
      : module_(*module), plain_(plain), counter_(counter), effects_(effects), next_channel_(*next_channel) {}

  // Issues the collectives `ahead` one iteration earlier.
  void Run(const std::vector<InstructionId>& ahead) {
    // Before the loop, for the first iteration.
    std::vector<InstructionId> first;
    LoopBodyCloner before(
        &module_, plain_.body, plain_.loop.record().parent, plain_.loop.id(),
        [this](Instruction element) { return InitElement(module_, plain_, element.int_attr(Attr::kIndex)); },
        &next_channel_);
    for (InstructionId id : ahead) first.push_back(before.Clone(id));
    RewriteLoopState(module_, plain_, std::vector<uint8_t>(static_cast<size_t>(plain_.size), 1), first);
    // In the body, for the next iteration.
    const InstructionId root = plain_.body.root().id();
    const auto next = [this, root](Instruction element) {
      return module_.instruction(root).operand(element.int_attr(Attr::kIndex)).id();
    };
    LoopBodyCloner within(&module_, plain_.body, plain_.body.id(), root, next, &next_channel_);
    for (size_t k = 0; k < ahead.size(); ++k) {
      const InstructionId made = within.Clone(ahead[k]);
      const int64_t place = plain_.size + static_cast<int64_t>(k);
      const InstructionId given = module_.instruction(root).operand(place).id();
      module_.MoveBefore(given, plain_.body.record().first);
      module_.ReplaceAllUses(ahead[k], given);
      module_.ReplaceOperand(root, place, made);
    }
    EraseUnused();
  }

  // Returns the collectives whose value has uses in its iteration beyond the next state, operands first.
  std::vector<InstructionId> CollectPipelined() {
    absl::flat_hash_set<uint32_t> early;  // depend on nothing but the induction variable
    std::vector<InstructionId> collectives;
    for (InstructionId id : PostOrder(plain_.body)) {
      const Instruction i = module_.instruction(id);
      if (IsStateElement(i, plain_.body)) {
        const int64_t index = i.int_attr(Attr::kIndex);
        if (index == counter_ || plain_.unchanged[static_cast<size_t>(index)]) early.insert(id.value);
        continue;
      }
      if (!IsRecomputable(i, effects_)) continue;
      bool all = true;
      for (Instruction operand : i.operands()) all &= early.contains(operand.id().value);
      if (!all) continue;
      early.insert(id.value);
      early_order_.push_back(id);
      if (IsSyncCollective(i)) collectives.push_back(id);
    }
    std::vector<InstructionId> ahead;
    for (InstructionId id : collectives) {
      bool used = false;
      for (const auto use : module_.instruction(id).uses()) {
        used |= !use.user.is_root() && !early.contains(use.user.id().value);
      }
      // The value may reach the iteration through instructions computed from it, which then do not move.
      if (!used) used = ReachesIteration(id, early);
      if (used) ahead.push_back(id);
    }
    return ahead;
  }

 private:
  bool ReachesIteration(InstructionId from, const absl::flat_hash_set<uint32_t>& early) const {
    std::vector<InstructionId> open = {from};
    absl::flat_hash_set<uint32_t> seen = {from.value};
    while (!open.empty()) {
      const Instruction i = module_.instruction(open.back());
      open.pop_back();
      for (const auto use : i.uses()) {
        if (use.user.is_root() || IsSyncCollective(use.user)) continue;
        if (!early.contains(use.user.id().value)) return true;
        if (seen.insert(use.user.id().value).second) open.push_back(use.user.id());
      }
    }
    return false;
  }

  void EraseUnused() {
    for (size_t k = early_order_.size(); k-- > 0;) {
      const Instruction i = module_.instruction(early_order_[k]);
      if (i.record().parent.valid() && !i.has_users() && !i.is_root()) module_.Erase(i.id());
    }
  }

  Module& module_;
  const CanonicalLoop& plain_;
  const int64_t counter_;
  const SideEffects& effects_;
  int64_t& next_channel_;
  std::vector<InstructionId> early_order_;
};

bool HasSyncCollective(Computation computation) {
  for (Instruction i : computation.instructions()) {
    if (IsSyncCollective(i)) return true;
  }
  return false;
}

// Returns the highest channel id of the module plus 1.
int64_t FreeChannel(const Module& module) {
  int64_t highest = 0;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) highest = std::max(highest, i.int_attr(Attr::kChannelId, 0));
  }
  return highest < INT64_MAX / 2 ? highest + 1 : -1;
}

}  // namespace

absl::StatusOr<PipelinedCounts> PipelineCollectives(Module& module, int64_t memory_bytes, PipelineDirection direction) {
  if (module.header().is_scheduled || !module.entry().valid()) return PipelinedCounts();
  int64_t channel = FreeChannel(module);
  if (channel < 0) return PipelinedCounts();
  const std::vector<uint32_t> callers = CountCallers(module);
  PipelinedCounts counts;
  std::optional<int64_t> left;  // memory that remains
  // Of the module as it was: a computation whose loops are pipelined has the effects of their collectives either way.
  std::optional<SideEffects> effects;
  const auto fits = [&](int64_t bytes) -> absl::StatusOr<bool> {
    if (memory_bytes <= 0) return true;
    if (!left) {
      const absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Create(module);
      if (!memory.ok()) return memory.status();
      left = memory_bytes - memory->OfModule().peak_bytes;
    }
    if (bytes > *left) return false;
    *left -= bytes;
    return true;
  };
  for (InstructionId id : WhileLoops(module)) {
    if (!HasSyncCollective(module.instruction(id).computation_attr(Attr::kBody))) continue;
    const std::optional<CountedLoop> counted = CountLoop(module.instruction(id));
    if (!counted || counted->trip_count < 2) continue;
    const std::optional<CanonicalLoop> plain = MatchCanonicalLoop(module.instruction(id), callers);
    if (!plain) continue;
    if (!effects) effects.emplace(module);
    LoopPipeliner pipeliner(&module, *plain, counted->index, *effects, &channel);
    std::vector<InstructionId> ahead;
    if (direction != PipelineDirection::kForward) ahead = pipeliner.CollectPipelined();
    if (!ahead.empty()) {
      // The result of this iteration and that of the next.
      int64_t bytes = 0;
      for (InstructionId collective : ahead) {
        bytes = SaturatingAdd(bytes, SaturatingMultiply(BufferBytes(module.instruction(collective).shape()), 2));
      }
      const absl::StatusOr<bool> has_capacity = fits(bytes);
      if (!has_capacity.ok()) return has_capacity.status();
      if (*has_capacity) {
        pipeliner.Run(ahead);
        counts.backward += static_cast<int64_t>(ahead.size());
      }
    }
    if (direction == PipelineDirection::kBackward) continue;
    const std::optional<CanonicalLoop> now = MatchCanonicalLoop(module.instruction(id), callers);
    if (!now) continue;
    ForwardCollectivePipeliner delayer(&module, *now, counted->index, *effects, &channel);
    if (delayer.count() == 0) continue;
    const absl::StatusOr<bool> has_capacity = fits(delayer.bytes());
    if (!has_capacity.ok()) return has_capacity.status();
    if (!*has_capacity) continue;
    if (absl::Status status = delayer.Run(); !status.ok()) return status;
    counts.forward += delayer.count();
  }
  return counts;
}

namespace {

class CollectivePipeliner : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<PipelinedCounts> made =
        PipelineCollectives(module, HbmBytes(*this, tpu::TargetOf(*this, module)), Direction());
    if (!made.ok()) return made.status();
    if (made->backward > 0) Count("collectives issued an iteration ahead", made->backward);
    if (made->forward > 0) Count("collectives issued an iteration later", made->forward);
    return made->backward + made->forward > 0;
  }

 private:
  PipelineDirection Direction() const {
    const std::string_view direction = options().String("direction");
    if (direction == "backward") return PipelineDirection::kBackward;
    return direction == "forward" ? PipelineDirection::kForward : PipelineDirection::kBoth;
  }
};

}  // namespace

HLOKIT_PASS(CollectivePipeliner) {
  return {
      .name = "collective-pipeliner",
      .category = "schedule",
      .summary = "pipeline collectives of loops: issue them an iteration ahead or later",
      .doc =
          "A collective that depends only on loop-invariant values and the induction variable, such as the all-gather "
          "of a layer's weights, moves to the previous iteration, the first one before the loop, and its result "
          "becomes loop state. The last iteration computes an unused one. A collective whose result is only stored, "
          "such as the reduce-scatter of a layer's gradient, moves to the next iteration, the last one after the "
          "loop. For loops with a known trip count, if there is memory for the additional loop state.",
      .example = R"(HloModule layers

cond {
  p = (s32[], f32[8,64]{1,0}, f32[4,32,64]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[8,64]{1,0}, f32[4,32,64]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8,64]{1,0} get-tuple-element(p), index=1
  all = f32[4,32,64]{2,1,0} get-tuple-element(p), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  part = f32[1,32,64]{2,1,0} dynamic-slice(all, i, zero, zero), dynamic_slice_sizes={1,32,64}
  half = f32[32,64]{1,0} reshape(part)
  w = f32[64,64]{1,0} all-gather(half), replica_groups={{0,1}}, dimensions={0}
  y = f32[8,64]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[8,64]{1,0}, f32[4,32,64]{2,1,0}) tuple(next, y, all)
}

ENTRY main {
  x = f32[8,64]{1,0} parameter(0)
  all = f32[4,32,64]{2,1,0} parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8,64]{1,0}, f32[4,32,64]{2,1,0}) tuple(zero, x, all)
  w = (s32[], f32[8,64]{1,0}, f32[4,32,64]{2,1,0}) while(t), condition=cond, body=body
  ROOT y = f32[8,64]{1,0} get-tuple-element(w), index=1
}
)",
      .options = {tpu::DeviceOption(),
                  HbmBytesOption(),
                  {.name = "direction",
                   .type = OptionInfo::Type::kString,
                   .default_text = "both",
                   .doc = "backward: only an iteration earlier; forward: only an iteration later",
                   .choices = {"both", "backward", "forward"}}},
      .preconditions = kNoSchedule,
      .create = MakePass<CollectivePipeliner>};
}

}  // namespace hlokit
