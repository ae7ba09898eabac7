// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/algebraic/algsimp.h"

#include "passes/simplify/algebraic/rules.h"

namespace hlokit {

absl::StatusOr<bool> RulePass::Run(Module& module) {
  Rewriter rewriter(&module, &rules(), &options(), where());
  const bool changed = rewriter.Run();
  for (uint16_t rule = 0; rule < rules().size(); ++rule) Count(rules()[rule].name, rewriter.applied()[rule]);
  return changed;
}

const RuleSet& AlgebraicSimplifier::rules() const {
  static const RuleSet* const kRules = [] {
    auto* rules = new RuleSet();
    AddArithmeticRules(rules);
    AddLogicRules(rules);
    AddConvertRules(rules);
    AddReshapeRules(rules);
    AddBroadcastRules(rules);
    AddTransposeRules(rules);
    AddSliceRules(rules);
    AddDynamicSliceRules(rules);
    AddConcatenateRules(rules);
    AddReduceRules(rules);
    AddDotRules(rules);
    AddIndexedRules(rules);
    AddTupleRules(rules);
    AddBroadcastMovers(rules);
    return rules;
  }();
  return *kRules;
}

const RuleSet& ReshapeMover::rules() const {
  static const RuleSet* const kRules = [] {
    auto* rules = new RuleSet();
    AddReshapeMovers(rules);
    AddReshapeRules(rules);
    AddTransposeRules(rules);
    AddBroadcastRules(rules);
    return rules;
  }();
  return *kRules;
}

const RuleSet& TupleSimplifier::rules() const {
  static const RuleSet* const kRules = [] {
    auto* rules = new RuleSet();
    AddTupleRules(rules);
    return rules;
  }();
  return *kRules;
}

}  // namespace hlokit
