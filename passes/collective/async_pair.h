// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_COLLECTIVE_ASYNC_PAIR_H_
#define HLOKIT_PASSES_COLLECTIVE_ASYNC_PAIR_H_

#include "absl/status/status.h"
#include "ir/graph/module.h"

namespace hlokit {

// Replaces an instruction by an async-start of a computation of only this instruction, and an async-done. Requires: it
// has no control edges.
absl::Status WrapInAsyncPair(Module& module, InstructionId id);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_COLLECTIVE_ASYNC_PAIR_H_
