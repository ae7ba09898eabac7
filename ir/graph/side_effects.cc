// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/side_effects.h"

#include <utility>
#include <vector>

#include "ir/graph/potential_callers.h"

namespace hlokit {

namespace {

// Custom-calls declare side effects in an attribute.
constexpr uint32_t kMayHaveEffect = kSideEffect | kCollective | kAsyncChain;

// Returns true if no instruction of this opcode has side effects itself, whatever its attributes.
bool NeverHasEffect(Opcode opcode) {
  return (kOpcodeTraits[static_cast<size_t>(opcode)] & kMayHaveEffect) == 0 && opcode != Opcode::kCustomCall;
}

}  // namespace

bool HasSideEffectNoRecurse(Instruction i) {
  const Opcode opcode = i.opcode();
  if (NeverHasEffect(opcode)) return false;
  if (HasTrait(opcode, kSideEffect)) return true;
  if (opcode == Opcode::kCustomCall) return i.bool_attr(Attr::kCustomCallHasSideEffect);
  if (HasTrait(opcode, kCollective)) {
    return i.has(Attr::kChannelId) || i.bool_attr(Attr::kConstrainLayout) || HasTrait(opcode, kStartsAsync);
  }
  return HasTrait(opcode, kAsyncChain);
}

SideEffects::SideEffects(const Module& module) : computations_(module.computation_id_bound(), 0) {
  std::vector<ComputationId> open;
  const auto mark = [&](ComputationId id) {
    if (std::exchange(computations_[id.value], 1) == 0) open.push_back(id);
  };
  const PotentialCallers callers(module, [&](InstructionId id, const InstructionRecord& r) {
    if (!NeverHasEffect(r.opcode) && HasSideEffectNoRecurse(module.instruction(id))) mark(r.parent);
  });
  // Few computations have side effects themselves; callers are only traversed if there is one.
  if (open.empty()) return;
  // By callee, a linked list of its callers.
  struct Call {
    ComputationId caller;
    uint32_t next;
  };
  constexpr uint32_t kEnd = 0xffffffffu;
  std::vector<Call> calls;
  std::vector<uint32_t> first(computations_.size(), kEnd);
  for (InstructionId caller : callers.all()) {
    module.instruction(caller).ForEachCallee([&](Computation callee) {
      const uint32_t id = callee.id().value;
      if (id >= first.size()) return;
      calls.push_back({module.record(caller).parent, first[id]});
      first[id] = static_cast<uint32_t>(calls.size() - 1);
    });
  }
  while (!open.empty()) {
    const ComputationId id = open.back();
    open.pop_back();
    for (uint32_t k = first[id.value]; k != kEnd; k = calls[k].next) mark(calls[k].caller);
  }
}

bool SideEffects::Of(Instruction i) const {
  if (HasSideEffectNoRecurse(i)) return true;
  bool effect = false;
  i.ForEachCallee([&](Computation callee) {
    effect |= callee.id().value < computations_.size() && computations_[callee.id().value] != 0;
  });
  return effect;
}

}  // namespace hlokit
