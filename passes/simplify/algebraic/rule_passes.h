// SPDX-License-Identifier: Apache-2.0
// Passes that are a set of rules on the worklist of the rewriter.
#ifndef HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULE_PASSES_H_
#define HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULE_PASSES_H_

#include <memory>

#include "passes/simplify/algebraic/algsimp.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {

// What a function adds to a set of rules, as a pass.
template <void (*kAdd)(RuleSet*), Where kWhere = Where::kEverywhere>
class RulesOf : public RulePass {
 protected:
  Where where() const override { return kWhere; }
  const RuleSet& rules() const override {
    static const RuleSet* const kRules = [] {
      auto* rules = new RuleSet();
      kAdd(rules);
      return rules;
    }();
    return *kRules;
  }
};

void AddZeroSizedRules(RuleSet* rules);
void AddSortRules(RuleSet* rules);
void AddTransposeFoldingRules(RuleSet* rules);
void AddConvertMoverRules(RuleSet* rules);
void AddBf16NormalizationRules(RuleSet* rules);
void AddDynamicDimensionRules(RuleSet* rules);
void AddDotDecomposerRules(RuleSet* rules);
void AddBatchNormExpanderRules(RuleSet* rules);
void AddLogisticExpanderRules(RuleSet* rules);
void AddTriangularSolveExpanderRules(RuleSet* rules);
void AddCholeskyExpanderRules(RuleSet* rules);
void AddGatherExpanderRules(RuleSet* rules);
void AddScatterExpanderRules(RuleSet* rules);
void AddRngBitGeneratorExpanderRules(RuleSet* rules);
void AddRngExpanderRules(RuleSet* rules);
void AddGatherScatterSimplifierRules(RuleSet* rules);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULE_PASSES_H_
