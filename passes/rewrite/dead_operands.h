// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_REWRITE_DEAD_OPERANDS_H_
#define HLOKIT_PASSES_REWRITE_DEAD_OPERANDS_H_

#include "ir/graph/module.h"

namespace hlokit {

// Erases `first` and the operands that are unused then, and merges their metadata into `to`. `first` may be a
// collective with a channel, which counts as a side effect: all devices run the same program, so that none misses it.
// It stays if it is used or has control edges.
void EraseDead(Module& module, InstructionId first, InstructionId to);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_DEAD_OPERANDS_H_
