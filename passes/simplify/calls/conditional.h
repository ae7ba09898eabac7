// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_H_
#define HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_H_

#include "passes/core/pass.h"

namespace hlokit {

// Replaces conditionals by a branch if the predicate is known, or if all branches and arguments are equal.
class ConditionalSimplifier : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Removes unused parameters of computations, and the corresponding operands of their callers.
class DeadParameters : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_H_
