#include "ir/side_effects.h"

#include <array>

#include "ir/call_traits.h"
#include "ir/traversal.h"

namespace hlokit {

namespace {

// No instruction of this opcode has an effect of its own, whatever its attributes.
bool NeverHasEffect(Opcode opcode) {
  static const std::array<bool, kOpcodeCount + 1> kTable = [] {
    std::array<bool, kOpcodeCount + 1> table{};
    for (size_t i = 0; i < kOpcodeCount; ++i) {
      constexpr uint16_t kPossible = kSideEffect | kCollective | kStartsAsync | kUpdatesAsync | kEndsAsync;
      table[i] =
          (InfoOf(static_cast<Opcode>(i)).traits & kPossible) == 0 && static_cast<Opcode>(i) != Opcode::kCustomCall;
    }
    return table;
  }();
  return kTable[static_cast<size_t>(opcode)];
}

// Neither has an effect of its own nor calls what might.
bool IsPure(Opcode opcode) {
  static const std::array<bool, kOpcodeCount + 1> kTable = [] {
    std::array<bool, kOpcodeCount + 1> table{};
    for (size_t i = 0; i <= kOpcodeCount; ++i) {
      table[i] = NeverHasEffect(static_cast<Opcode>(i)) && !MayCall(static_cast<Opcode>(i));
    }
    return table;
  }();
  return kTable[static_cast<size_t>(opcode)];
}

}  // namespace

bool HasOwnSideEffect(Instruction i) {
  const Opcode opcode = i.opcode();
  if (NeverHasEffect(opcode)) return false;
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
      if (!IsPure(i.opcode()) && Of(i)) {
        computations_[id.value] = 1;
        break;
      }
    }
  }
}

bool SideEffects::Of(Instruction i) const {
  if (HasOwnSideEffect(i)) return true;
  if (!MayCall(i.opcode())) return false;
  const auto has = [this](size_t callee) { return callee < computations_.size() && computations_[callee] != 0; };
  for (const AttrValue& a : i.attrs()) {
    const AttrType type = InfoOf(a.attr).type;
    if (type == AttrType::kComputation) {
      if (has(a.payload)) return true;
    } else if (type == AttrType::kComputationList) {
      for (int64_t callee : i.module().context().list(ListId(a.payload))) {
        if (has(static_cast<size_t>(callee))) return true;
      }
    }
  }
  return false;
}

}  // namespace hlokit
