// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_H_
#define HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_H_

#include "passes/core/pass.h"

namespace hlokit {

// Conditionals whose branch is known, and those with equal branches and arguments, become that branch.
class ConditionalSimplifier : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Takes parameters that computations do not use out of them and of their callers' operands.
class DeadParameters : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_H_
