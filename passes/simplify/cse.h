// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_CSE_H_
#define HLOKIT_PASSES_SIMPLIFY_CSE_H_

#include "passes/core/pass.h"

namespace hlokit {

// Merges instructions of a computation with equal opcodes, shapes, operands (in any order if the opcode is commutative)
// and attributes into the first of them in post-order. Called computations are equal if they are equal instruction by
// instruction. Skips instructions with side effects, parameters and elided constants. Ignores metadata, original values
// and statistics. O(n log n) in the module at worst.
class Cse : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_CSE_H_
