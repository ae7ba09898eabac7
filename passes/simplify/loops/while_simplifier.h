// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_LOOPS_WHILE_SIMPLIFIER_H_
#define HLOKIT_PASSES_SIMPLIFY_LOOPS_WHILE_SIMPLIFIER_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "passes/core/pass.h"

namespace hlokit {

// Removes loops that never run, replaces loops that run once by their body, and removes unused and loop-invariant
// elements of the state.
class WhileLoopSimplifier : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;

 private:
  // What copies of loop bodies with several callers may still add: these bodies may contain others, so that the copies
  // would otherwise multiply with each level.
  struct Budget {
    int64_t max_added;                             // of one body
    int64_t left;                                  // of the module
    absl::flat_hash_map<uint32_t, int64_t> added;  // by body

    // Returns true, and counts the copy, if there may be one more.
    bool Take(Computation body);
  };

  bool RunOnce(Module& module, Budget* budget);
  bool RemoveShortLoops(Module& module, Budget* budget);
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
