// SPDX-License-Identifier: Apache-2.0
// Which elements of a loop's state change from trip to trip: what vector memory holds of it need not pass HBM.
#ifndef HLOKIT_PASSES_SCHEDULE_LOOP_STATE_H_
#define HLOKIT_PASSES_SCHEDULE_LOOP_STATE_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

struct LoopVariantElement {
  int64_t index = 0;
  Instruction value;      // what the body gives for it, under its first name
  bool in_place = false;  // a part of it is written over, the rest stays
};

// The arrays of the state of `body` that it does not pass on as they are. None if it is no body over one tuple that
// ends in a tuple.
std::vector<LoopVariantElement> LoopVariantElements(Computation body);

// The operand of `value`, an element of the state of `body`, that the kernel can write its result over, since it reads
// each element of it where it writes one and nothing else reads the operand; -1: none.
int64_t OperandWrittenOver(Instruction value, Computation body);

// Elements of the state that the body passes on as they are, ascending.
std::vector<int64_t> InvariantElements(Computation body);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_LOOP_STATE_H_
