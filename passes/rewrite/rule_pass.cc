// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/rule_pass.h"

namespace hlokit {

absl::StatusOr<bool> RulePass::Run(Module& module) {
  PatternRewriter rewriter(&module, &rules(), &options(), where());
  rewriter.SetLimit(context().rewrites);
  const bool changed = rewriter.Run();
  for (uint16_t rule = 0; rule < rules().size(); ++rule) Count(rules()[rule].name, rewriter.applied()[rule]);
  return changed;
}

}  // namespace hlokit
