// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_DCE_H_
#define HLOKIT_PASSES_SIMPLIFY_DCE_H_

#include "passes/core/pass.h"

namespace hlokit {

// Removes instructions that nothing uses and that have no side effect, then computations that nothing calls. Parameters
// stay, since callers give them values. Linear in the module.
class Dce : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_DCE_H_
