// SPDX-License-Identifier: Apache-2.0
// Passes that remove what an earlier compilation left in a module: shardings, control edges, the schedule; and passes
// that place constants.
#ifndef HLOKIT_PASSES_SIMPLIFY_CLEANUP_H_
#define HLOKIT_PASSES_SIMPLIFY_CLEANUP_H_

#include "passes/core/pass.h"

namespace hlokit {

// Removes shardings, and the custom-calls that only carry one.
class ShardingRemover : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Removes all control edges.
class ControlDepRemover : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Marks the module as not scheduled.
class HloDescheduler : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Changes nothing: the literals of a context are interned.
class LiteralCanonicalizer : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Moves the constants of a scheduled module to just before their first users.
class ConstantDeferring : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Moves scalar constants that are operands of fusions into the fused computations.
class FusionConstantSinking : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_CLEANUP_H_
