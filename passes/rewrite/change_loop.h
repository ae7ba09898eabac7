// SPDX-License-Identifier: Apache-2.0
// Changes the state of while loops.
#ifndef HLOKIT_PASSES_REWRITE_CHANGE_LOOP_H_
#define HLOKIT_PASSES_REWRITE_CHANGE_LOOP_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"
#include "passes/analysis/loop.h"

namespace hlokit {

// Returns element `index` of the state before the loop: the tuple's operand, or a get-tuple-element created before the
// loop.
InstructionId InitElement(Module& module, const CanonicalLoop& loop, int64_t index);

// Removes elements from the state, and adds others: `keep` by old element. Requires: the body does not read removed
// elements. Uses of the old result are rewired to the new one; a user other than get-tuple-element gets a tuple with
// removed elements replaced by their initial values. `added`: initial values of additional elements at the end, which
// the body forwards. Returns the new loop; BodyElement creates the get-tuple-elements of added elements in the body.
Instruction RewriteLoopState(Module& module, const CanonicalLoop& loop, const std::vector<uint8_t>& keep,
                             const std::vector<InstructionId>& added);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_CHANGE_LOOP_H_
