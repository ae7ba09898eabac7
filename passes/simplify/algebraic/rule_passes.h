// SPDX-License-Identifier: Apache-2.0
// Passes that apply a set of rules through the worklist of the rewriter.
#ifndef HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULE_PASSES_H_
#define HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULE_PASSES_H_

#include <memory>

#include "passes/simplify/algebraic/algsimp.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {

// The pass of the rules that a function adds to a set.
template <void (*kAdd)(RewritePatternSet*), RewriteScope kWhere = RewriteScope::kEverywhere>
class RulesOf : public RulePass {
 protected:
  RewriteScope where() const override { return kWhere; }
  const RewritePatternSet& rules() const override {
    static const RewritePatternSet* const kRules = [] {
      auto* rules = new RewritePatternSet();
      kAdd(rules);
      return rules;
    }();
    return *kRules;
  }
};

void AddZeroSizedRules(RewritePatternSet* rules);
void AddSortRules(RewritePatternSet* rules);
void AddTransposeFoldingRules(RewritePatternSet* rules);
void AddConvertMoverRules(RewritePatternSet* rules);
void AddBf16NormalizationRules(RewritePatternSet* rules);
void AddDynamicDimensionRules(RewritePatternSet* rules);
void AddDotDecomposerRules(RewritePatternSet* rules);
void AddBatchNormExpanderRules(RewritePatternSet* rules);
void AddLogisticExpanderRules(RewritePatternSet* rules);
void AddTriangularSolveExpanderRules(RewritePatternSet* rules);
void AddCholeskyExpanderRules(RewritePatternSet* rules);
void AddGatherExpanderRules(RewritePatternSet* rules);
void AddScatterExpanderRules(RewritePatternSet* rules);
void AddRngBitGeneratorExpanderRules(RewritePatternSet* rules);
void AddRngExpanderRules(RewritePatternSet* rules);
void AddGatherScatterSimplifierRules(RewritePatternSet* rules);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULE_PASSES_H_
