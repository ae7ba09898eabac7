// SPDX-License-Identifier: Apache-2.0
// Loop-carried arrays in a TPU's vector memory, from before the loop until after it.
#ifndef HLOKIT_PASSES_SCHEDULE_LOOP_PINNING_H_
#define HLOKIT_PASSES_SCHEDULE_LOOP_PINNING_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/graph/module_fwd.h"
#include "passes/schedule/loop_state.h"

namespace hlokit {

// Returns true if all kernels of the body that read or write the element can do so in VMEM.
bool CanPin(const LoopVariantElement& element, Computation body);

// Puts these elements of the loop state into VMEM: sets their memory space throughout the loop, copies them to VMEM
// before it and back to HBM after it. Requires: a canonical loop (MatchCanonicalLoop) over a flat tuple that a tuple
// instruction creates; CanPin holds for each element; no other element of the state aliases their arrays; the condition
// does not read them.
absl::Status PinLoopState(Module& module, Instruction loop, absl::Span<const LoopVariantElement> elements);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_LOOP_PINNING_H_
