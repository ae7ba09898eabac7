// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SCHEDULE_HOST_OFFLOAD_LEGALIZE_H_
#define HLOKIT_PASSES_SCHEDULE_HOST_OFFLOAD_LEGALIZE_H_

#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {

// Moves changes of layout and shape out of the way between MoveToHost and MoveToDevice, to the side of the device,
// where they are arithmetic on its memory: host-offloader then finds the calls next to what it replaces.
void AddHostOffloadLegalizeRules(RewritePatternSet* rules);

// Moves copies to other layouts into the loops that only move slices of them to the device: the loop then carries the
// array as it is on the host, and the rules move the copy behind the slice. Returns the number of copies.
int64_t SinkHostCopiesIntoLoops(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_HOST_OFFLOAD_LEGALIZE_H_
