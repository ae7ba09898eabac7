// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_ANNOTATIONS_PROPAGATE_H_
#define HLOKIT_PASSES_ANNOTATIONS_PROPAGATE_H_

#include "passes/core/pass.h"

namespace hlokit {

// Gives instructions without metadata that of their nearest users with metadata, at any distance, or else of their
// nearest operands. Linear in the module.
class PropagateAnnotations : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANNOTATIONS_PROPAGATE_H_
