// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_CODE_MOTION_H_
#define HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_CODE_MOTION_H_

#include "passes/core/pass.h"

namespace hlokit {

// Moves instructions with which all branches of a conditional end after it, if the conditional then returns no more
// bytes than before. One computation of several branches is cloned; conditionals whose branches have other callers stay
// as they are.
class ConditionalCodeMotion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_CALLS_CONDITIONAL_CODE_MOTION_H_
