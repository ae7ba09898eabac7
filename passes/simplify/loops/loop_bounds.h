// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_LOOPS_LOOP_BOUNDS_H_
#define HLOKIT_PASSES_SIMPLIFY_LOOPS_LOOP_BOUNDS_H_

#include "passes/core/pass.h"

namespace hlokit {

// Records known trip counts in backend_config.
class WhileLoopTripCountAnnotator : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Bounds the trip counts of loops whose trip count is unknown, or of all loops, and removes communication.
class ControlFlowFlattening : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_LOOPS_LOOP_BOUNDS_H_
