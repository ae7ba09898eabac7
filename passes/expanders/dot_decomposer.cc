// SPDX-License-Identifier: Apache-2.0
// Canonicalizes dots for kernels: [batch…, rows, contracted] x [batch…, contracted, columns], with one dimension each
// for rows, columns and contraction.
#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

std::vector<int64_t> FreeDims(Shape shape, absl::Span<const int64_t> batch, absl::Span<const int64_t> contracting) {
  std::vector<int64_t> free;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const bool taken = absl::c_linear_search(batch, d) || absl::c_linear_search(contracting, d);
    if (!taken) free.push_back(d);
  }
  return free;
}

// Transposes and reshapes `operand` to the dimensions of the groups, merging each group of `merged` into one.
InstructionId Arrange(PatternRewriter& rewriter, Instruction operand, absl::Span<const int64_t> batch,
                      absl::Span<const int64_t> second, absl::Span<const int64_t> third) {
  std::vector<int64_t> order(batch.begin(), batch.end());
  order.insert(order.end(), second.begin(), second.end());
  order.insert(order.end(), third.begin(), third.end());
  const Shape shape = operand.shape();
  InstructionId at = operand.id();
  if (!std::is_sorted(order.begin(), order.end())) {
    std::vector<int64_t> sizes;
    for (int64_t d : order) sizes.push_back(shape.dim(d));
    const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, order)};
    at = rewriter.Make(Opcode::kTranspose, rewriter.shapes().Array(shape.element_type(), sizes), {at}, attrs);
  }
  std::vector<int64_t> sizes;
  for (int64_t d : batch) sizes.push_back(shape.dim(d));
  for (absl::Span<const int64_t> group : {second, third}) {
    int64_t product = 1;
    for (int64_t d : group) product *= shape.dim(d);
    sizes.push_back(product);
  }
  return rewriter.MakeReshape(at, rewriter.shapes().Array(shape.element_type(), sizes));
}

bool Decompose(PatternRewriter& rewriter, Instruction dot) {
  if (dot.operand_count() != 2 || !rewriter.IsReplaceable(dot)) return false;
  const Instruction lhs = dot.operand(0), rhs = dot.operand(1);
  const absl::Span<const int64_t> lhs_batch = dot.list_attr(Attr::kLhsBatchDims),
                                  rhs_batch = dot.list_attr(Attr::kRhsBatchDims),
                                  lhs_contracting = dot.list_attr(Attr::kLhsContractingDims),
                                  rhs_contracting = dot.list_attr(Attr::kRhsContractingDims);
  const std::vector<int64_t> lhs_free = FreeDims(lhs.shape(), lhs_batch, lhs_contracting),
                             rhs_free = FreeDims(rhs.shape(), rhs_batch, rhs_contracting);
  const int64_t batch = static_cast<int64_t>(lhs_batch.size());
  const auto is_iota = [](absl::Span<const int64_t> dims) {
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] != static_cast<int64_t>(k)) return false;
    }
    return true;
  };
  const bool canonical = is_iota(lhs_batch) && is_iota(rhs_batch) && lhs_contracting.size() == 1 &&
                         lhs_free.size() <= 1 && rhs_free.size() <= 1 &&
                         lhs_contracting[0] == batch + static_cast<int64_t>(lhs_free.size()) &&
                         rhs_contracting[0] == batch;
  if (canonical || dot.shape().element_count() == 0 || lhs.shape().element_count() == 0) return false;
  // Both sides agree on the order of contracting dimensions; the result keeps its order.
  const InstructionId a = Arrange(rewriter, lhs, lhs_batch, lhs_free, lhs_contracting);
  const InstructionId b = Arrange(rewriter, rhs, rhs_batch, rhs_contracting, rhs_free);
  std::vector<int64_t> batch_dims(static_cast<size_t>(batch)), sizes;
  std::iota(batch_dims.begin(), batch_dims.end(), 0);
  for (int64_t d : lhs_batch) sizes.push_back(lhs.shape().dim(d));
  sizes.push_back(rewriter.at(a).shape().dim(batch));
  sizes.push_back(rewriter.at(b).shape().dim(batch + 1));
  std::vector<AttrValue> attrs;
  for (AttrValue value : dot.attrs()) {
    const bool batch_attr = value.attr == Attr::kLhsBatchDims || value.attr == Attr::kRhsBatchDims;
    if (batch_attr) value = rewriter.List(value.attr, batch_dims);
    if (value.attr == Attr::kLhsContractingDims) value = rewriter.List(value.attr, {batch + 1});
    if (value.attr == Attr::kRhsContractingDims) value = rewriter.List(value.attr, {batch});
    if (!IsCommon(value.attr)) attrs.push_back(value);
  }
  const Shape shape = rewriter.shapes().Array(dot.shape().element_type(), sizes);
  const InstructionId made = rewriter.Make(Opcode::kDot, shape, {a, b}, attrs);
  return rewriter.Replace(dot, rewriter.MakeReshape(made, dot.shape()));
}

}  // namespace

void AddDotDecomposerRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDot}, "dots brought into form", Decompose);
}

HLOKIT_PASS(DotDecomposer) {
  return {.name = "dot-decomposer",
          .category = "expand",
          .summary = "transform dots into canonical form",
          .doc =
              "Batch dimensions first, then rows and contracting dimension on the left, contracting "
              "dimension and columns on the right, with transposes and reshapes around the dot.",
          .example = R"(ENTRY e {
  a = f32[2,5,3] parameter(0)
  b = f32[4,5] parameter(1)
  ROOT d = f32[2,3,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}, metadata={op_name="f/dot"}
})",
          .create = MakePass<RulesOf<AddDotDecomposerRules>>};
}

}  // namespace hlokit
