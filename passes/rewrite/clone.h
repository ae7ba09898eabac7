// SPDX-License-Identifier: Apache-2.0
// Cloning of computation bodies.
#ifndef HLOKIT_PASSES_REWRITE_CLONE_H_
#define HLOKIT_PASSES_REWRITE_CLONE_H_

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

// Clones the instructions of `source` before `position`, in another computation. `arguments[i]` replaces parameter i
// and gets its metadata. Callees are shared except those of fusions; metadata and internal control edges are copied.
// Returns the clone of the root.
InstructionId CloneBody(Module& module, Computation source, absl::Span<const InstructionId> arguments,
                        InstructionId position);

// Returns a clone of `source` with separate bodies for its fusions, at any depth: each body belongs to one fusion.
ComputationId CloneWithFusions(Module& module, ComputationId source);

// Returns true if nothing in `body` prevents cloning into a computation of `module`: another execution thread, control
// edges or channels that must be unique.
bool IsCloneable(Computation body);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_CLONE_H_
