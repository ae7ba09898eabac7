// SPDX-License-Identifier: Apache-2.0
// The rules of the expanders, which write an operation as simpler ones.
#ifndef HLOKIT_PASSES_EXPANDERS_EXPANDERS_H_
#define HLOKIT_PASSES_EXPANDERS_EXPANDERS_H_

#include "passes/rewrite/rule_pass.h"

namespace hlokit {

void AddDotDecomposerRules(RewritePatternSet* rules);
void AddBatchNormExpanderRules(RewritePatternSet* rules);
// Variances as E[x^2] - E[x]^2, from one read of the operand.
void AddOnePassBatchNormExpanderRules(RewritePatternSet* rules);
void AddLogisticExpanderRules(RewritePatternSet* rules);
void AddTriangularSolveExpanderRules(RewritePatternSet* rules);
void AddCholeskyExpanderRules(RewritePatternSet* rules);
void AddGatherExpanderRules(RewritePatternSet* rules);
void AddScatterExpanderRules(RewritePatternSet* rules);
void AddRngBitGeneratorExpanderRules(RewritePatternSet* rules);
void AddRngExpanderRules(RewritePatternSet* rules);
void AddRealImagExpanderRules(RewritePatternSet* rules);
void AddBitcastDtypesExpanderRules(RewritePatternSet* rules);
void AddMapInlinerRules(RewritePatternSet* rules);
void AddTopkDecomposerRules(RewritePatternSet* rules);
void AddStableSortExpanderRules(RewritePatternSet* rules);
void AddQrExpanderRules(RewritePatternSet* rules);
void AddEighExpanderRules(RewritePatternSet* rules);
void AddReduceDecomposerRules(RewritePatternSet* rules);
void AddRaggedDotRewriterRules(RewritePatternSet* rules);
void AddSelectAndScatterExpanderRules(RewritePatternSet* rules);
void AddTreeReductionRewriterRules(RewritePatternSet* rules);
void AddDotDimensionMergerRules(RewritePatternSet* rules);
void AddDotDimensionSplitterRules(RewritePatternSet* rules);
void AddConvolutionGroupConverterRules(RewritePatternSet* rules);

// The option `wide` of expanders of matrix decompositions.
OptionInfo WideOption();
// Returns the type of intermediate values of matrices of `type`, by the option `wide`: only results are rounded.
ElementType WideTypeOf(PatternRewriter& rewriter, ElementType type);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_EXPANDERS_EXPANDERS_H_
