// SPDX-License-Identifier: Apache-2.0
// Instructions that must not be removed, merged or reordered although no value depends on them.
#ifndef HLOKIT_IR_GRAPH_SIDE_EFFECTS_H_
#define HLOKIT_IR_GRAPH_SIDE_EFFECTS_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

// Returns true if the instruction itself has side effects: by the trait of its opcode, a custom-call that declares
// them, or a collective that must synchronize with others (it has a channel or a constrained layout).
bool HasSideEffectNoRecurse(Instruction instruction);

// Side effects including those of called computations, computed once for a module.
class SideEffects {
 public:
  explicit SideEffects(const Module& module);

  bool Of(Instruction instruction) const;
  bool Of(Computation computation) const { return computations_[computation.id().value] != 0; }

 private:
  std::vector<uint8_t> computations_;  // by ComputationId: contains an instruction with side effects
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_SIDE_EFFECTS_H_
