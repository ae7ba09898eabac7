// SPDX-License-Identifier: Apache-2.0
// Passes that apply a set of rules through the worklist of the rewriter.
#ifndef HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULE_PASSES_H_
#define HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULE_PASSES_H_

#include <string_view>
#include <vector>

#include "passes/rewrite/rule_pass.h"

namespace hlokit {

void AddZeroSizedRules(RewritePatternSet* rules);
void AddSortRules(RewritePatternSet* rules);
void AddTransposeFoldingRules(RewritePatternSet* rules);
void AddConvertMoverRules(RewritePatternSet* rules);
void AddBf16NormalizationRules(RewritePatternSet* rules);
void AddDynamicDimensionRules(RewritePatternSet* rules);
void AddGatherScatterSimplifierRules(RewritePatternSet* rules);
void AddFloatNormalizationRules(RewritePatternSet* rules);
void AddSimplifyFpConversionsRules(RewritePatternSet* rules);
void AddElementTypeConverterRules(RewritePatternSet* rules);
void AddChangeOpDataTypeRules(RewritePatternSet* rules);
void AddOperandUpcasterRules(RewritePatternSet* rules);
void AddResultCasterRules(RewritePatternSet* rules);
void AddDynamicIndexSplitterRules(RewritePatternSet* rules);
void AddScatterSimplifierRules(RewritePatternSet* rules);
void AddBatchDotSimplificationRules(RewritePatternSet* rules);

// Returns the opcodes of instructions whose type change-op-data-type can change.
std::vector<std::string_view> ChangeableOpcodeNames();

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULE_PASSES_H_
