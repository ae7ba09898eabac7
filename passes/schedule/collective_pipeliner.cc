#include "passes/schedule/collective_pipeliner.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/side_effects.h"
#include "ir/traversal.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/memory.h"
#include "passes/analysis/saturating.h"
#include "passes/analysis/trip_count.h"
#include "passes/simplify/loops/loop.h"

namespace hlokit {
namespace {

bool IsBlockingCollective(Instruction i) {
  return HasTrait(i.opcode(), kCollective) && !HasTrait(i.opcode(), kStartsAsync) &&
         !HasTrait(i.opcode(), kEndsAsync) && !HasTrait(i.opcode(), kUpdatesAsync);
}

// Can be computed in another trip than its own, and once more than before.
bool MayRepeat(Instruction i, const SideEffects& effects) {
  if (i.is_root() || i.has(Attr::kControlPredecessors) || !i.control_successors().empty() || i.has(Attr::kSharding)) {
    return false;
  }
  if (IsBlockingCollective(i)) return i.shape().IsArray() && !i.bool_attr(Attr::kConstrainLayout);
  return !effects.Of(i) && !HasTrait(i.opcode(), kControlFlow) && !HasTrait(i.opcode(), kStartsAsync) &&
         !HasTrait(i.opcode(), kEndsAsync) && !HasTrait(i.opcode(), kUpdatesAsync) &&
         !HasTrait(i.opcode(), kCollective) && i.opcode() != Opcode::kParameter && i.opcode() != Opcode::kCustomCall &&
         i.opcode() != Opcode::kFusion;
}

class LoopPipeliner {
 public:
  LoopPipeliner(Module* module, const PlainLoop& plain, int64_t counter, const SideEffects& effects,
                int64_t* next_channel)
      : module_(*module), plain_(plain), counter_(counter), effects_(effects), next_channel_(*next_channel) {}

  // Issues them a trip ahead.
  void Run(const std::vector<InstructionId>& ahead) {
    // In front of the loop, for its first trip.
    std::vector<InstructionId> first;
    {
      absl::flat_hash_map<uint32_t, InstructionId> copies;
      for (InstructionId id : ahead) {
        const auto start = [this](int64_t index) { return InitElement(module_, plain_, index); };
        first.push_back(Copy(id, plain_.loop.record().parent, plain_.loop.id(), start, &copies));
      }
    }
    ChangeState(module_, plain_, std::vector<uint8_t>(static_cast<size_t>(plain_.size), 1), first);
    // In the body, for the next trip.
    const InstructionId root = plain_.body.root().id();
    absl::flat_hash_map<uint32_t, InstructionId> copies;
    for (size_t k = 0; k < ahead.size(); ++k) {
      const auto next = [&](int64_t index) { return module_.instruction(root).operand(index).id(); };
      const InstructionId made = Copy(ahead[k], plain_.body.id(), root, next, &copies);
      const int64_t place = plain_.size + static_cast<int64_t>(k);
      const InstructionId given = module_.instruction(root).operand(place).id();
      module_.Move(given, plain_.body.record().first);
      module_.ReplaceAllUses(ahead[k], given);
      module_.ReplaceOperand(root, place, made);
    }
    EraseUnused();
  }

  // Collectives whose value the trip uses for more than the next one's state, operands first.
  std::vector<InstructionId> FindAhead() {
    absl::flat_hash_set<uint32_t> early;  // depend on nothing else than the number of the trip
    std::vector<InstructionId> collectives;
    for (InstructionId id : PostOrder(plain_.body)) {
      const Instruction i = module_.instruction(id);
      if (IsState(i)) {
        const int64_t index = i.int_attr(Attr::kIndex);
        if (index == counter_ || plain_.unchanged[static_cast<size_t>(index)]) early.insert(id.value);
        continue;
      }
      if (!MayRepeat(i, effects_)) continue;
      bool all = true;
      for (Instruction operand : i.operands()) all &= early.contains(operand.id().value);
      if (!all) continue;
      early.insert(id.value);
      early_order_.push_back(id);
      if (IsBlockingCollective(i)) collectives.push_back(id);
    }
    std::vector<InstructionId> ahead;
    for (InstructionId id : collectives) {
      bool used = false;
      for (const auto use : module_.instruction(id).uses()) {
        used |= !use.user.is_root() && !early.contains(use.user.id().value);
      }
      // Its value may reach the trip through what is computed from it, which stays in the trip then.
      if (!used) used = ReachesTrip(id, early);
      if (used) ahead.push_back(id);
    }
    return ahead;
  }

 private:
  bool IsState(Instruction i) const {
    return i.opcode() == Opcode::kGetTupleElement && i.operand(0) == plain_.body.parameter(0);
  }

  bool ReachesTrip(InstructionId from, const absl::flat_hash_set<uint32_t>& early) const {
    std::vector<InstructionId> open = {from};
    absl::flat_hash_set<uint32_t> seen = {from.value};
    while (!open.empty()) {
      const Instruction i = module_.instruction(open.back());
      open.pop_back();
      for (const auto use : i.uses()) {
        if (use.user.is_root() || IsBlockingCollective(use.user)) continue;
        if (!early.contains(use.user.id().value)) return true;
        if (seen.insert(use.user.id().value).second) open.push_back(use.user.id());
      }
    }
    return false;
  }

  // Copies an instruction and what it is computed from before `position`; `element` gives the parts of the state there.
  template <typename OfState>
  InstructionId Copy(InstructionId id, ComputationId parent, InstructionId position, const OfState& element,
                     absl::flat_hash_map<uint32_t, InstructionId>* copies) {
    std::vector<InstructionId> open = {id};
    while (!open.empty()) {
      const InstructionId at = open.back();
      if (copies->contains(at.value)) {
        open.pop_back();
        continue;
      }
      const Instruction i = module_.instruction(at);
      if (IsState(i)) {
        (*copies)[at.value] = element(i.int_attr(Attr::kIndex));
        open.pop_back();
        continue;
      }
      const size_t before = open.size();
      for (Instruction operand : i.operands()) {
        if (!copies->contains(operand.id().value)) open.push_back(operand.id());
      }
      if (open.size() != before) continue;
      open.pop_back();
      std::vector<InstructionId> operands;
      for (Instruction operand : i.operands()) operands.push_back(copies->at(operand.id().value));
      std::vector<AttrValue> attrs(i.attrs().begin(), i.attrs().end());
      for (AttrValue& attr : attrs) {
        if (attr.attr == Attr::kChannelId) attr.payload = module_.Int64Payload(next_channel_++);
      }
      const InstructionRecord r = i.record();
      const StringId name = module_.UniqueInstructionName(module_.context().str(r.name));
      const InstructionId copy =
          module_.AddInstruction(parent, r.opcode, module_.context().shape(r.shape), name, operands, attrs, r.payload);
      module_.SetMetadata(copy, r.metadata);
      module_.Move(copy, position);
      (*copies)[at.value] = copy;
    }
    return copies->at(id.value);
  }

  void EraseUnused() {
    for (size_t k = early_order_.size(); k-- > 0;) {
      const Instruction i = module_.instruction(early_order_[k]);
      if (i.record().parent.valid() && !i.has_users() && !i.is_root()) module_.Erase(i.id());
    }
  }

  Module& module_;
  const PlainLoop& plain_;
  const int64_t counter_;
  const SideEffects& effects_;
  int64_t& next_channel_;
  std::vector<InstructionId> early_order_;
};

// One more than any channel of the module.
int64_t FreeChannel(const Module& module) {
  int64_t highest = 0;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) highest = std::max(highest, i.int_attr(Attr::kChannelId, 0));
  }
  return highest < INT64_MAX / 2 ? highest + 1 : -1;
}

}  // namespace

absl::StatusOr<int64_t> PipelineCollectives(Module& module, int64_t memory_bytes) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  int64_t channel = FreeChannel(module);
  if (channel < 0) return 0;
  const std::vector<uint32_t> callers = CountCallers(module);
  int64_t made = 0;
  std::optional<int64_t> left;  // of the memory
  for (InstructionId id : WhileLoops(module)) {
    const Instruction loop = module.instruction(id);
    const std::optional<PlainLoop> plain = AsPlainLoop(loop, callers);
    if (!plain) continue;
    const std::optional<CountedLoop> counted = CountLoop(loop);
    if (!counted || counted->trips < 2) continue;
    const SideEffects effects(module);
    LoopPipeliner pipeliner(&module, *plain, counted->index, effects, &channel);
    const std::vector<InstructionId> ahead = pipeliner.FindAhead();
    if (ahead.empty()) continue;
    if (memory_bytes > 0) {
      if (!left) {
        const absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Make(module);
        if (!memory.ok()) return memory.status();
        left = memory_bytes - memory->OfModule().peak_bytes;
      }
      // What a trip was given, and what it makes for the next.
      int64_t bytes = 0;
      for (InstructionId collective : ahead) {
        bytes = SatAdd(bytes, SatMul(BufferBytes(module.instruction(collective).shape()), 2));
      }
      if (bytes > *left) continue;
      *left -= bytes;
    }
    pipeliner.Run(ahead);
    made += static_cast<int64_t>(ahead.size());
  }
  return made;
}

}  // namespace hlokit
