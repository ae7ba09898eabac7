// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/algebraic/algsimp.h"

#include "passes/simplify/algebraic/rules.h"

namespace hlokit {

const RewritePatternSet& AlgebraicSimplifier::rules() const {
  static const RewritePatternSet* const kRules = [] {
    auto* rules = new RewritePatternSet();
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

const RewritePatternSet& ReshapeMover::rules() const {
  static const RewritePatternSet* const kRules = [] {
    auto* rules = new RewritePatternSet();
    AddReshapeMovers(rules);
    AddReshapeRules(rules);
    AddTransposeRules(rules);
    AddBroadcastRules(rules);
    return rules;
  }();
  return *kRules;
}

const RewritePatternSet& TupleSimplifier::rules() const {
  static const RewritePatternSet* const kRules = [] {
    auto* rules = new RewritePatternSet();
    AddTupleRules(rules);
    return rules;
  }();
  return *kRules;
}

}  // namespace hlokit
