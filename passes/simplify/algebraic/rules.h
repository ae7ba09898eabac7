// SPDX-License-Identifier: Apache-2.0
// The rewrites of algebraic simplification, one file a family. A function for each family adds its rules to a set; the
// order of the calls is the order in which rules of one opcode are tried.
//
// All keep values: bit for bit for integers, and for floats up to the sign of zero. None reassociates floats.
#ifndef HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULES_H_
#define HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULES_H_

#include <optional>
#include <vector>

#include "ir/graph/module.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {

void AddArithmeticRules(RewritePatternSet* rules);
void AddLogicRules(RewritePatternSet* rules);
void AddConvertRules(RewritePatternSet* rules);
void AddReshapeRules(RewritePatternSet* rules);
void AddBroadcastRules(RewritePatternSet* rules);
void AddTransposeRules(RewritePatternSet* rules);
void AddSliceRules(RewritePatternSet* rules);
void AddDynamicSliceRules(RewritePatternSet* rules);
void AddConcatenateRules(RewritePatternSet* rules);
void AddReduceRules(RewritePatternSet* rules);
void AddDotRules(RewritePatternSet* rules);
void AddIndexedRules(RewritePatternSet* rules);
void AddTupleRules(RewritePatternSet* rules);
void AddBroadcastMovers(RewritePatternSet* rules);
void AddReshapeMovers(RewritePatternSet* rules);

// True if no element can be below zero: known without looking far.
bool IsNonNegative(Instruction instruction);

// Where reshaping from dimensions `from` to `to` keeps the dimensions `kept` of `from` as they are (same size, same
// stride), those of `to` that they become; nullopt if one is split, merged or gone.
std::optional<std::vector<int64_t>> UnmodifiedByReshape(absl::Span<const int64_t> from, absl::Span<const int64_t> to,
                                                        absl::Span<const int64_t> kept);

// `from` and `to` are the same but for dimensions of size 1.
bool DiffersByUnitDims(absl::Span<const int64_t> from, absl::Span<const int64_t> to);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULES_H_
