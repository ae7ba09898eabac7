// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_CONSTANT_FOLDING_H_
#define HLOKIT_PASSES_SIMPLIFY_CONSTANT_FOLDING_H_

#include "passes/core/pass.h"

namespace hlokit {

// Replaces instructions whose operands are constants by their values. Does nothing without PassContext::evaluate.
class ConstantFolding : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_CONSTANT_FOLDING_H_
