// SPDX-License-Identifier: Apache-2.0
// What must not be removed, merged or reordered although no value depends on it.
#ifndef HLOKIT_IR_GRAPH_SIDE_EFFECTS_H_
#define HLOKIT_IR_GRAPH_SIDE_EFFECTS_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

// Side effects of the instruction itself: the trait of its opcode, a custom-call that says so, a collective that must
// meet others (it has a channel or a constrained layout).
bool HasSideEffectNoRecurse(Instruction instruction);

// The same with the effects of called computations, found once for a module.
class SideEffects {
 public:
  explicit SideEffects(const Module& module);

  bool Of(Instruction instruction) const;
  bool Of(Computation computation) const { return computations_[computation.id().value] != 0; }

 private:
  std::vector<uint8_t> computations_;  // by ComputationId: holds an instruction with a side effect
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_SIDE_EFFECTS_H_
