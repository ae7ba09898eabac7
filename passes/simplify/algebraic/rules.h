// SPDX-License-Identifier: Apache-2.0
// The rewrites of algebraic simplification, one file per family. A function for each family adds its rules to a set;
// rules of one opcode are tried in the order of the calls.
//
// All rules preserve values: bit for bit for integers, and for floats up to the sign of zero, which the option
// signed-zeros preserves too. None reassociates floats.
#ifndef HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULES_H_
#define HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULES_H_

#include <optional>
#include <vector>

#include "ir/graph/module_fwd.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/splat.h"

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

// Returns true if adding `splat` changes no value: with the option signed-zeros, only -0 changes no float.
bool IsNeutralForAdd(const PatternRewriter& rewriter, const Splat& splat);

// Returns true if no element can be negative, as far as nearby instructions show.
bool IsNonNegative(Instruction instruction);

// If a reshape from dimensions `from` to `to` keeps the dimensions `kept` of `from` (same size, same stride), returns
// the corresponding dimensions of `to`. Returns nullopt if one is split, merged or absent.
std::optional<std::vector<int64_t>> UnmodifiedByReshape(absl::Span<const int64_t> from, absl::Span<const int64_t> to,
                                                        absl::Span<const int64_t> kept);

// Returns true if `from` and `to` are equal except for dimensions of size 1.
bool DiffersByUnitDims(absl::Span<const int64_t> from, absl::Span<const int64_t> to);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_ALGEBRAIC_RULES_H_
