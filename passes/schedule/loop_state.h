// SPDX-License-Identifier: Apache-2.0
// Loop-variant and loop-invariant elements of a loop state. VMEM can hold them across iterations without HBM transfers.
#ifndef HLOKIT_PASSES_SCHEDULE_LOOP_STATE_H_
#define HLOKIT_PASSES_SCHEDULE_LOOP_STATE_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

struct LoopVariantElement {
  int64_t index = 0;
  Instruction value;      // the new value that the body computes, before aliases
  bool in_place = false;  // only a part is overwritten
};

// Returns the arrays of the state of `body` that it does not forward unchanged. Empty unless `body` has one tuple
// parameter and a tuple root.
std::vector<LoopVariantElement> LoopVariantElements(Computation body);

// Returns the index of the operand of `value` whose buffer the kernel can overwrite with its result, or -1. That
// operand is an element of the state of `body`, is read at the indices that are written, and has no other user.
int64_t OperandWrittenOver(Instruction value, Computation body);

// Returns the indices of the elements that the body forwards unchanged, ascending.
std::vector<int64_t> InvariantElements(Computation body);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_LOOP_STATE_H_
