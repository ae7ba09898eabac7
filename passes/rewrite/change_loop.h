// SPDX-License-Identifier: Apache-2.0
// What passes do to the state of while loops.
#ifndef HLOKIT_PASSES_REWRITE_CHANGE_LOOP_H_
#define HLOKIT_PASSES_REWRITE_CHANGE_LOOP_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"
#include "passes/analysis/loop.h"

namespace hlokit {

// Element `index` of the state before the loop: the tuple's operand, or a get-tuple-element made before the loop.
InstructionId InitElement(Module& module, const CanonicalLoop& loop, int64_t index);

// Takes elements out of the state, and adds others: `keep` by old element. The body must not read what goes. Uses of
// the old result are rewired to the new one; a user other than get-tuple-element gets a tuple with the elements that
// went replaced by their values before the loop. `added`: values before the loop that become further elements, at the
// end, which the body passes on. Returns the new loop; the get-tuple-elements of the added ones in the body are made by
// BodyElement.
Instruction RewriteLoopState(Module& module, const CanonicalLoop& loop, const std::vector<uint8_t>& keep,
                             const std::vector<InstructionId>& added);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_CHANGE_LOOP_H_
