// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_DOT_MERGER_H_
#define HLOKIT_PASSES_SIMPLIFY_DOT_MERGER_H_

#include "passes/core/pass.h"

namespace hlokit {

// Merges dots that share an operand, and are otherwise alike, into one dot of the shared operand and the concatenation
// of the others, and slices of its result.
class DotMerger : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;

 private:
  // Merges pairs of dots of one computation. Returns false if there are none.
  bool MergeIn(Module& module, Computation c);
  bool MergePair(Module& module, InstructionId first, InstructionId second, int64_t shared);
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_DOT_MERGER_H_
