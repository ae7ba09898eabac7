// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_ALGSIMP_H_
#define HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_ALGSIMP_H_

#include "passes/rewrite/rule_pass.h"

namespace hlokit {

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
