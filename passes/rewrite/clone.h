// SPDX-License-Identifier: Apache-2.0
// Copying the body of a computation into another.
#ifndef HLOKIT_PASSES_REWRITE_CLONE_H_
#define HLOKIT_PASSES_REWRITE_CLONE_H_

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

// Copies the instructions of `source` before `position`, which stands in another computation. Parameter i is
// `arguments[i]` there, which stands for it from then on. Callees are shared but for those of fusions; metadata and
// control edges within are copied. Returns what the root became.
InstructionId CloneBody(Module& module, Computation source, absl::Span<const InstructionId> arguments,
                        InstructionId position);

// A copy of `source` in which fusions, at any depth, have bodies of their own: each belongs to one fusion.
ComputationId CloneWithFusions(Module& module, ComputationId source);

// True if `body` holds nothing that keeps it from being copied into a computation of `module`: another execution
// thread, control edges or channels that must stay single.
bool IsCloneable(Computation body);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_CLONE_H_
