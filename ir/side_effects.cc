#include "ir/side_effects.h"

#include "ir/call_traits.h"
#include "ir/traversal.h"

namespace hlokit {

bool HasOwnSideEffect(Instruction i) {
  const Opcode opcode = i.opcode();
  if (HasTrait(opcode, kSideEffect)) return true;
  if (opcode == Opcode::kCustomCall) return i.bool_attr(Attr::kCustomCallHasSideEffect);
  if (HasTrait(opcode, kCollective)) {
    return i.has(Attr::kChannelId) || i.bool_attr(Attr::kConstrainLayout) || HasTrait(opcode, kStartsAsync);
  }
  return HasTrait(opcode, kStartsAsync) || HasTrait(opcode, kUpdatesAsync) || HasTrait(opcode, kEndsAsync);
}

SideEffects::SideEffects(const Module& module) : computations_(module.computation_id_bound(), 0) {
  // Callees first, so that one look at each instruction suffices.
  for (ComputationId id : ComputationPostOrder(module)) {
    for (Instruction i : module.computation(id).instructions()) {
      if (Of(i)) {
        computations_[id.value] = 1;
        break;
      }
    }
  }
}

bool SideEffects::Of(Instruction i) const {
  if (HasOwnSideEffect(i)) return true;
  if (!MayCall(i.opcode())) return false;
  for (Computation callee : i.called_computations()) {
    if (callee.id().value < computations_.size() && computations_[callee.id().value]) return true;
  }
  return false;
}

}  // namespace hlokit
