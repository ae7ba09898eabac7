// SPDX-License-Identifier: Apache-2.0
// Passes on collectives that are sets of rules. They do not change modules with a schedule.
#ifndef HLOKIT_PASSES_COLLECTIVE_COLLECTIVE_RULES_H_
#define HLOKIT_PASSES_COLLECTIVE_COLLECTIVE_RULES_H_

#include "ir/graph/module.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {

template <void (*kAdd)(RewritePatternSet*)>
class CollectiveRules : public RulesOf<kAdd, RewriteScope::kSequential> {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    if (module.header().is_scheduled || !module.entry().valid()) return false;
    return RulesOf<kAdd, RewriteScope::kSequential>::Run(module);
  }
};

// Erases `collective`, and `user` before it, if they are unused. All devices run the same program: a collective whose
// result no device needs is not missed by another, though one with a channel counts as a side effect. The metadata must
// have been merged into a replacement.
void EraseUnusedCollective(PatternRewriter& rewriter, Instruction user, Instruction collective);

// all-reduce of one dynamic-slice to reduce-scatter.
void AddReduceScatterCreatorRules(RewritePatternSet* rules);
// dynamic-slice of all-gather to its operand.
void AddAllGatherDynamicSliceSimplifierRules(RewritePatternSet* rules);
// all-gather of broadcast to broadcast of all-gather.
void AddAllGatherBroadcastReorderRules(RewritePatternSet* rules);
// all-to-all of an array to slices, all-to-all of a tuple and concatenate.
void AddAllToAllDecomposerRules(RewritePatternSet* rules);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_COLLECTIVE_COLLECTIVE_RULES_H_
