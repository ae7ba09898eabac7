// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_CSE_H_
#define HLOKIT_PASSES_SIMPLIFY_CSE_H_

#include "passes/core/pass.h"

namespace hlokit {

// Merges instructions of a computation that have the same opcode, shape, operands (in any order where the opcode is
// commutative) and attributes into the first of them in post-order. Called computations count as equal when they are
// equal instruction by instruction. Instructions with side effects, parameters and elided constants are left alone.
// Metadata, origins and statistics do not keep instructions apart. n log n in the module at worst.
class Cse : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_CSE_H_
