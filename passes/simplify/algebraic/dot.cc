// SPDX-License-Identifier: Apache-2.0
// Dots and convolutions.

#include "absl/algorithm/container.h"
#include "ir/graph/attribute_views.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/rule_pass.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rule_passes.h"

namespace hlokit {
namespace {

// Folds an operand transpose that keeps the order of the free dimensions by renumbering the other dimensions.
bool DotOfTranspose(PatternRewriter& rewriter, Instruction dot) {
  if (dot.operand_count() != 2 || !rewriter.IsReplaceable(dot)) return false;
  for (int64_t side = 0; side < 2; ++side) {
    const Instruction transpose = dot.operand(side);
    if (transpose.opcode() != Opcode::kTranspose) continue;
    const absl::Span<const int64_t> permutation = transpose.list_attr(Attr::kDimensions);
    const Attr batch = side == 0 ? Attr::kLhsBatchDims : Attr::kRhsBatchDims;
    const Attr contracting = side == 0 ? Attr::kLhsContractingDims : Attr::kRhsContractingDims;
    const absl::Span<const int64_t> batch_dims = dot.list_attr(batch), contracting_dims = dot.list_attr(contracting);
    int64_t last = -1;
    bool ordered = true;
    for (int64_t d = 0; d < transpose.shape().rank(); ++d) {
      if (absl::c_linear_search(batch_dims, d) || absl::c_linear_search(contracting_dims, d)) continue;
      ordered &= permutation[static_cast<size_t>(d)] > last;
      last = permutation[static_cast<size_t>(d)];
    }
    if (!ordered) continue;
    const auto renumbered = [&](absl::Span<const int64_t> dims) {
      std::vector<int64_t> result;
      for (int64_t d : dims) result.push_back(permutation[static_cast<size_t>(d)]);
      return result;
    };
    std::vector<AttrValue> attrs;
    for (AttrValue value : dot.attrs()) {
      if (value.attr == batch) value = rewriter.List(batch, renumbered(batch_dims));
      if (value.attr == contracting) value = rewriter.List(contracting, renumbered(contracting_dims));
      if (!IsCommon(value.attr) || value.attr == Attr::kBackendConfig) attrs.push_back(value);
    }
    InstructionId operands[] = {dot.operand(0).id(), dot.operand(1).id()};
    operands[side] = transpose.operand(0).id();
    if (rewriter.ReplaceWithNew(dot, Opcode::kDot, operands, attrs, {transpose})) return true;
  }
  return false;
}

// Folds an operand transpose by renumbering the batch, feature and spatial dimensions.
bool ConvolutionOfTranspose(PatternRewriter& rewriter, Instruction convolution) {
  const ConvolutionDims dims = ConvolutionDims::Of(convolution);
  if (convolution.operand_count() != 2 || !dims.ok() || !rewriter.IsReplaceable(convolution)) return false;
  for (int64_t side = 0; side < 2; ++side) {
    const Instruction transpose = convolution.operand(side);
    if (transpose.opcode() != Opcode::kTranspose) continue;
    const absl::Span<const int64_t> permutation = transpose.list_attr(Attr::kDimensions);
    const absl::Span<const int64_t> labels = convolution.list_attr(Attr::kDimLabels);
    // After the number of spatial dimensions come those of input, kernel and output.
    std::vector<int64_t> renumbered(labels.begin(), labels.end());
    const auto rank = static_cast<size_t>(dims.rank());
    for (size_t k = 1 + static_cast<size_t>(side) * rank; k < 1 + static_cast<size_t>(side + 1) * rank; ++k) {
      renumbered[k] = permutation[static_cast<size_t>(labels[k])];
    }
    std::vector<AttrValue> attrs;
    for (AttrValue value : convolution.attrs()) {
      if (value.attr == Attr::kDimLabels) value = rewriter.List(Attr::kDimLabels, renumbered);
      if (!IsCommon(value.attr) || value.attr == Attr::kBackendConfig) attrs.push_back(value);
    }
    InstructionId operands[] = {convolution.operand(0).id(), convolution.operand(1).id()};
    operands[side] = transpose.operand(0).id();
    if (rewriter.ReplaceWithNew(convolution, Opcode::kConvolution, operands, attrs, {transpose})) return true;
  }
  return false;
}

// Folds a result transpose that exchanges the free dimensions of the two sides by swapping the operands.
bool TransposeOfDot(PatternRewriter& rewriter, Instruction transpose) {
  const Instruction dot = transpose.operand(0);
  if (dot.opcode() != Opcode::kDot || dot.operand_count() != 2 || !HasOneUser(dot)) return false;
  const int64_t batch = static_cast<int64_t>(dot.list_attr(Attr::kLhsBatchDims).size());
  const int64_t contracting = static_cast<int64_t>(dot.list_attr(Attr::kLhsContractingDims).size());
  const int64_t lhs_free = dot.operand(0).shape().rank() - batch - contracting;
  const int64_t rank = dot.shape().rank();
  const absl::Span<const int64_t> permutation = transpose.list_attr(Attr::kDimensions);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t rhs_free = rank - batch - lhs_free;
    const int64_t expected = i < batch ? i : i < batch + rhs_free ? i + lhs_free : i - rhs_free;
    if (permutation[static_cast<size_t>(i)] != expected) return false;
  }
  std::vector<AttrValue> attrs;
  for (AttrValue value : dot.attrs()) {
    if (value.attr == Attr::kLhsBatchDims) {
      value.attr = Attr::kRhsBatchDims;
    } else if (value.attr == Attr::kRhsBatchDims) {
      value.attr = Attr::kLhsBatchDims;
    } else if (value.attr == Attr::kLhsContractingDims) {
      value.attr = Attr::kRhsContractingDims;
    } else if (value.attr == Attr::kRhsContractingDims) {
      value.attr = Attr::kLhsContractingDims;
    } else if (value.attr == Attr::kOperandPrecision) {
      const absl::Span<const int64_t> p = dot.list_attr(Attr::kOperandPrecision);
      const std::vector<int64_t> reversed(p.rbegin(), p.rend());
      value = rewriter.List(Attr::kOperandPrecision, reversed);
    } else if (value.attr == Attr::kDotAlgorithm) {
      return false;  // algorithms may treat the sides differently
    } else if (IsCommon(value.attr)) {
      continue;
    }
    attrs.push_back(value);
  }
  return rewriter.ReplaceWithNew(transpose, Opcode::kDot, {dot.operand(1).id(), dot.operand(0).id()}, attrs, {dot});
}

// Replaces a dot over no elements by zero.
bool EmptyDot(PatternRewriter& rewriter, Instruction dot) {
  if (dot.shape().element_count() == 0 || dot.operand(0).shape().element_count() != 0) return false;
  if (!rewriter.IsReplaceable(dot)) return false;
  rewriter.DropMetadataOfOperands(dot);
  const Literal zero = Literal::Zeros(rewriter.shapes().Scalar(dot.shape().element_type()));
  return rewriter.Replace(dot, rewriter.MakeSplat(dot.shape(), rewriter.MakeConstant(zero)));
}

}  // namespace

void AddTransposeFoldingRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDot}, "transposes folded into dots", DotOfTranspose);
  rules->Add({Opcode::kConvolution}, "transposes folded into convolutions", ConvolutionOfTranspose);
  rules->Add({Opcode::kTranspose}, "dots exchanged to save a transpose", TransposeOfDot);
}

void AddDotRules(RewritePatternSet* rules) {
  AddTransposeFoldingRules(rules);
  rules->Add({Opcode::kDot, Opcode::kConvolution}, "empty products folded", EmptyDot);
}

HLOKIT_PASS(TransposeFolding) {
  return {.name = "transpose-folding",
          .category = "simplify",
          .summary = "fold transposes into dots and convolutions",
          .doc =
              "A transpose of an operand that keeps the order of the free dimensions folds into the "
              "dimension numbers of the dot; one of the result that exchanges the two sides swaps the "
              "operands. A transpose of an operand of a convolution folds into its dimension numbers.",
          .example = R"(ENTRY e {
  a = f32[3,2] parameter(0)
  b = f32[3,4] parameter(1)
  t = f32[2,3] transpose(a), dimensions={1,0}, metadata={op_name="f/t"}
  d = f32[2,4] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/dot"}
  ROOT r = f32[4,2] transpose(d), dimensions={1,0}, metadata={op_name="f/out"}
})",
          .create = MakePass<RulesOf<AddTransposeFoldingRules>>};
}

}  // namespace hlokit
