// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_ALGSIMP_H_
#define HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_ALGSIMP_H_

#include "passes/core/pass.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {

// Applies a set of rules to a fixpoint.
class RulePass : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override;

 protected:
  virtual const RewritePatternSet& rules() const = 0;
  virtual RewriteScope where() const { return RewriteScope::kEverywhere; }
};

// Algebraic simplification: all the rules of this directory.
class AlgebraicSimplifier : public RulePass {
 protected:
  const RewritePatternSet& rules() const override;
};

// Moves reshapes and transposes below elementwise operations and merges them there.
class ReshapeMover : public RulePass {
 protected:
  const RewritePatternSet& rules() const override;
};

// Applies the rules on tuples only.
class TupleSimplifier : public RulePass {
 protected:
  const RewritePatternSet& rules() const override;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_ALGSIMP_H_
