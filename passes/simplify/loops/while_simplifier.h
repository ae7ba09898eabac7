// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_LOOPS_WHILE_SIMPLIFIER_H_
#define HLOKIT_PASSES_SIMPLIFY_LOOPS_WHILE_SIMPLIFIER_H_

#include "passes/core/pass.h"

namespace hlokit {

// Loops that never run go; loops that run once become their body; parts of the state that nothing needs, and parts that
// the body passes on unchanged, leave the state.
class WhileLoopSimplifier : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;

 private:
  bool RunOnce(Module& module);
};

// Moves what a body computes from unchanged parts of the state alone in front of the loop.
class WhileLoopInvariantCodeMotion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Constants that a loop carries unchanged are known inside it.
class WhileLoopConstantSinking : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

// Loops with a small known number of trips become that many copies of their body.
class WhileLoopUnroller : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_LOOPS_WHILE_SIMPLIFIER_H_
