// SPDX-License-Identifier: Apache-2.0
// Passes that are a set of rules on the worklist of the rewriter.
#ifndef HLOKIT_PASSES_REWRITE_RULE_PASS_H_
#define HLOKIT_PASSES_REWRITE_RULE_PASS_H_

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

// The pass of the rules that `kAdd` adds.
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

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_RULE_PASS_H_
