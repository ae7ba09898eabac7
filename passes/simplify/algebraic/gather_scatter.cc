// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters that reduce to simpler operations.
#include <algorithm>

#include "ir/graph/attribute_views.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/rule_pass.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rule_passes.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

// Replaces a gather of one slice, with a vector of starts, by a reshaped dynamic-slice.
bool GatherOfOneSlice(PatternRewriter& rewriter, Instruction gather) {
  const GatherDims dims = GatherDims::Of(gather);
  const Shape operand = gather.operand(0).shape(), starts = gather.operand(1).shape();
  if (!dims.operand_batching_dims.empty() ||
      starts.element_count() != static_cast<int64_t>(dims.start_index_map.size()) || !rewriter.IsReplaceable(gather) ||
      dims.start_index_map.empty() || operand.element_count() == 0) {
    return false;
  }
  if (!std::is_sorted(dims.offset_dims.begin(), dims.offset_dims.end())) return false;
  // A collapsed dimension has an element even if its slice has none.
  if (std::count(dims.slice_sizes.begin(), dims.slice_sizes.end(), 0) != 0) return false;
  const ElementType type = starts.element_type();
  const InstructionId vector = rewriter.MakeReshape(
      gather.operand(1).id(), rewriter.shapes().Array(type, {static_cast<int64_t>(dims.start_index_map.size())}));
  const Shape scalar = rewriter.shapes().Scalar(type);
  std::vector<InstructionId> operands = {gather.operand(0).id()};
  InstructionId zero;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const auto found = std::find(dims.start_index_map.begin(), dims.start_index_map.end(), d);
    if (found == dims.start_index_map.end()) {
      if (!zero.valid()) zero = rewriter.MakeScalarConstant(type, 0);
      operands.push_back(zero);
      continue;
    }
    const int64_t k = found - dims.start_index_map.begin();
    const AttrValue slice[] = {rewriter.List(Attr::kSlice, {k, k + 1, 1})};
    const InstructionId part = rewriter.Make(Opcode::kSlice, rewriter.shapes().Array(type, {1}), {vector}, slice);
    operands.push_back(rewriter.MakeReshape(part, scalar));
  }
  const AttrValue attrs[] = {rewriter.List(Attr::kDynamicSliceSizes, dims.slice_sizes)};
  const Shape sliced = rewriter.shapes().Array(operand.element_type(), dims.slice_sizes);
  const InstructionId slice = rewriter.Make(Opcode::kDynamicSlice, sliced, operands, attrs);
  return rewriter.Replace(gather, rewriter.MakeReshape(slice, gather.shape()));
}

}  // namespace

void AddGatherScatterSimplifierRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kGather}, "gathers of one slice made dynamic slices", GatherOfOneSlice);
  AddIndexedRules(rules);
}

HLOKIT_PASS(GatherSimplifier) {
  return {.name = "gather-simplifier",
          .category = "simplify",
          .summary = "replace gathers and scatters with simpler instructions",
          .doc =
              "A gather of a single slice becomes a dynamic-slice; gathers from a broadcast scalar become "
              "broadcasts; scatters without updates are removed.",
          .example = R"(ENTRY e {
  p = f32[8,4] parameter(0)
  i = s32[1] parameter(1)
  ROOT g = f32[4] gather(p, i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,4}, metadata={op_name="f/take"}
})",
          .create = MakePass<RulesOf<AddGatherScatterSimplifierRules>>};
}

}  // namespace hlokit
