// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_DCE_H_
#define HLOKIT_PASSES_SIMPLIFY_DCE_H_

#include "passes/core/pass.h"

namespace hlokit {

// Removes unused instructions without side effects, then computations without callers. Parameters stay, since callers
// bind them. Linear in the module.
class Dce : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_DCE_H_
