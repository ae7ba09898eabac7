// SPDX-License-Identifier: Apache-2.0
// What moving collectives of a loop's body to other trips asks: which may move.
#ifndef HLOKIT_PASSES_SCHEDULE_LOOP_COLLECTIVES_H_
#define HLOKIT_PASSES_SCHEDULE_LOOP_COLLECTIVES_H_

#include "ir/graph/module.h"
#include "ir/graph/side_effects.h"

namespace hlokit {

bool IsSyncCollective(Instruction i);

// Can be computed in another trip than its own, and once more than before: a collective, or what costs little beside
// one.
bool IsRecomputable(Instruction i, const SideEffects& effects);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_LOOP_COLLECTIVES_H_
