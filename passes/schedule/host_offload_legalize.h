// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SCHEDULE_HOST_OFFLOAD_LEGALIZE_H_
#define HLOKIT_PASSES_SCHEDULE_HOST_OFFLOAD_LEGALIZE_H_

#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {

// Moves changes of layout and shape out of the way between MoveToHost and MoveToDevice, to the side of the device,
// where they are arithmetic on its memory: host-offloader then finds the calls next to what it replaces.
void AddHostOffloadLegalizeRules(RewritePatternSet* rules);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_HOST_OFFLOAD_LEGALIZE_H_
