// SPDX-License-Identifier: Apache-2.0
// Conditions on instructions that pipelining moves to another iteration.
#ifndef HLOKIT_PASSES_SCHEDULE_LOOP_COLLECTIVES_H_
#define HLOKIT_PASSES_SCHEDULE_LOOP_COLLECTIVES_H_

#include "ir/graph/module_fwd.h"
#include "ir/graph/side_effects.h"

namespace hlokit {

bool IsSyncCollective(Instruction i);

// Returns true if `i` can run in another iteration, and twice: a collective, or an operation that is cheap compared
// with one.
bool IsRecomputable(Instruction i, const SideEffects& effects);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_LOOP_COLLECTIVES_H_
