// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_LOOPS_WHILE_SIMPLIFIER_H_
#define HLOKIT_PASSES_SIMPLIFY_LOOPS_WHILE_SIMPLIFIER_H_

#include "passes/core/pass.h"

namespace hlokit {

// Removes loops that never run, replaces loops that run once by their body, and removes unused and loop-invariant
// elements of the state.
class WhileLoopSimplifier : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;

 private:
  bool RunOnce(Module& module);
  bool RemoveShortLoops(Module& module);
};

// Moves computations on loop-invariant state before the loop.
class WhileLoopInvariantCodeMotion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Moves expensive computations on loop-invariant state before the loop, whatever the size of their results.
class WhileLoopExpensiveInvariantCodeMotion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Sinks constants that a loop carries unchanged into its body and condition.
class WhileLoopConstantSinking : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Unrolls loops with a small known trip count.
class WhileLoopUnroller : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_LOOPS_WHILE_SIMPLIFIER_H_
