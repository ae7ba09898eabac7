// SPDX-License-Identifier: Apache-2.0
// Reductions and windows.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_set.h"
#include "passes/rewrite/reducer.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {
namespace {

// Returns the opcode of a computation that is one binary operation of its two scalar parameters, in either order.
std::optional<Opcode> OnlyOperation(Computation c) {
  const Instruction root = CombinationOf(c);
  if (!root.valid() || !HasTrait(root.opcode(), kCommutative)) return std::nullopt;
  const bool same_shapes = root.operand(0).shape() == root.shape() && root.operand(1).shape() == root.shape();
  return same_shapes ? std::optional(root.opcode()) : std::nullopt;
}

// Returns true if `splat` is the identity element of `opcode`.
bool IsNeutral(const PatternRewriter& rewriter, Opcode opcode, const Splat& splat) {
  const bool logical = splat.type == ElementType::kPred;
  switch (IdentityElementOf(opcode)) {
    case IdentityElement::kNone:
      return false;
    case IdentityElement::kNegativeZero:
      return IsNeutralForAdd(rewriter, splat);
    case IdentityElement::kZero:
      return splat.IsZero();
    case IdentityElement::kOne:
      return splat.IsOne();
    case IdentityElement::kLowest:
      return splat.IsLowest() || (logical && splat.IsZero());
    case IdentityElement::kHighest:
      return splat.IsHighest() || (logical && splat.IsOne());
    case IdentityElement::kAllOnes:
      return splat.IsAllOnes();
  }
  return false;
}

// Returns the operation of a reduce of one array whose init value is the identity element.
std::optional<Opcode> PlainReduction(const PatternRewriter& rewriter, Instruction reduce) {
  if (reduce.operand_count() != 2 || !reduce.shape().IsArray()) return std::nullopt;
  const auto opcode = OnlyOperation(reduce.computation_attr(Attr::kToApply));
  const auto init = SplatOf(reduce.operand(1));
  return opcode && init && init->type == reduce.shape().element_type() && IsNeutral(rewriter, *opcode, *init)
             ? opcode
             : std::nullopt;
}

// Returns true if the operation is associative and commutative for this type.
bool IsOrderFree(Opcode opcode, ElementType type) {
  return !IsFloat(type) ? !IsComplex(type) : OpcodeSet{Opcode::kMaximum, Opcode::kMinimum}.Contains(opcode);
}

bool ReduceOfNothing(PatternRewriter& rewriter, Instruction reduce) {
  if (reduce.operand_count() != 2 || !reduce.shape().IsArray()) return false;
  const Instruction operand = reduce.operand(0), init = reduce.operand(1);
  if (operand.shape().element_count() == 0 && reduce.shape().element_count() != 0) {
    rewriter.DropMetadataOf(operand);
    return init.shape().element_type() == reduce.shape().element_type() && rewriter.IsReplaceable(reduce) &&
           rewriter.Replace(reduce, rewriter.MakeSplat(reduce.shape(), init.id()));
  }
  if (operand.shape().element_count() != reduce.shape().element_count() || !PlainReduction(rewriter, reduce))
    return false;
  if (operand.shape() == reduce.shape()) return rewriter.Replace(reduce, operand.id());
  return operand.shape().element_type() == reduce.shape().element_type() &&
         rewriter.ReplaceWithNew(reduce, Opcode::kReshape, {operand.id()});
}

// Returns the dimensions of the operand that are not reduced, in order.
std::vector<int64_t> Kept(Instruction reduce) {
  const absl::Span<const int64_t> reduced = reduce.list_attr(Attr::kDimensions);
  std::vector<int64_t> kept;
  for (int64_t d = 0; d < reduce.operand(0).shape().rank(); ++d) {
    if (!absl::c_linear_search(reduced, d)) kept.push_back(d);
  }
  return kept;
}

bool ReplaceReduce(PatternRewriter& rewriter, Instruction reduce, InstructionId operand, absl::Span<const int64_t> dims,
                   std::initializer_list<Instruction> absorbed) {
  const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, dims), Builder::SameAs(reduce, Attr::kToApply)};
  return rewriter.ReplaceWithNew(reduce, Opcode::kReduce, {operand, reduce.operand(1).id()}, attrs, absorbed);
}

// Folds an operand transpose that keeps the order of the remaining dimensions, and of the reduced ones where order
// matters.
bool ReduceOfTranspose(PatternRewriter& rewriter, Instruction reduce) {
  const Instruction transpose = reduce.operand_count() == 2 ? reduce.operand(0) : Instruction();
  if (!transpose.valid() || transpose.opcode() != Opcode::kTranspose) return false;
  const absl::Span<const int64_t> permutation = transpose.list_attr(Attr::kDimensions);
  int64_t last = -1;
  for (int64_t d : Kept(reduce)) {
    if (permutation[static_cast<size_t>(d)] < last) return false;
    last = permutation[static_cast<size_t>(d)];
  }
  absl::Span<const int64_t> reduced = reduce.list_attr(Attr::kDimensions);
  std::vector<int64_t> in_order(reduced.begin(), reduced.end()), dims;
  std::sort(in_order.begin(), in_order.end());
  for (int64_t d : in_order) dims.push_back(permutation[static_cast<size_t>(d)]);
  const auto opcode = OnlyOperation(reduce.computation_attr(Attr::kToApply));
  const bool free = opcode && IsOrderFree(*opcode, reduce.shape().element_type());
  if (!free && !std::is_sorted(dims.begin(), dims.end())) return false;
  std::sort(dims.begin(), dims.end());
  return ReplaceReduce(rewriter, reduce, transpose.operand(0).id(), dims, {transpose});
}

// Folds an operand reshape that only adds or removes unit dimensions.
bool ReduceOfUnitReshape(PatternRewriter& rewriter, Instruction reduce) {
  const Instruction reshape = reduce.operand_count() == 2 ? reduce.operand(0) : Instruction();
  if (!reshape.valid() || reshape.opcode() != Opcode::kReshape) return false;
  const Instruction source = reshape.operand(0);
  const absl::Span<const int64_t> from = source.shape().dims(), to = reshape.shape().dims();
  if (!DiffersByUnitDims(from, to)) return false;
  const absl::Span<const int64_t> reduced = reduce.list_attr(Attr::kDimensions);
  std::vector<int64_t> dims, kept_sizes;
  size_t j = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) {
      kept_sizes.push_back(1);
      continue;
    }
    while (to[j] == 1) ++j;
    if (absl::c_linear_search(reduced, static_cast<int64_t>(j))) {
      dims.push_back(static_cast<int64_t>(i));
    } else {
      kept_sizes.push_back(from[i]);
    }
    ++j;
  }
  const absl::Span<const int64_t> result = reduce.shape().dims();
  // Unit dimensions of the source that the result lacks are reduced too. That changes nothing if the init value is the
  // identity, or if another dimension is reduced with them.
  std::vector<int64_t> all;
  size_t k = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool is_reduced = absl::c_linear_search(dims, static_cast<int64_t>(i));
    if (is_reduced || (from[i] == 1 && (k == result.size() || result[k] != 1))) {
      all.push_back(static_cast<int64_t>(i));
    } else if (k < result.size() && result[k] == from[i]) {
      ++k;
    } else {
      return false;
    }
  }
  if (k != result.size()) return false;
  if (all.empty() && !PlainReduction(rewriter, reduce)) return false;
  return ReplaceReduce(rewriter, reduce, source.id(), all, {reshape});
}

// Merges reduce(reduce(x)) with one order-free operation.
bool ReduceOfReduce(PatternRewriter& rewriter, Instruction reduce) {
  const Instruction inner = reduce.operand_count() == 2 ? reduce.operand(0) : Instruction();
  if (!inner.valid() || inner.opcode() != Opcode::kReduce || !HasOneUser(inner)) return false;
  const auto opcode = PlainReduction(rewriter, reduce);
  if (!opcode || PlainReduction(rewriter, inner) != opcode || !IsOrderFree(*opcode, reduce.shape().element_type()))
    return false;
  const std::vector<int64_t> kept = Kept(inner);
  const absl::Span<const int64_t> inner_dims = inner.list_attr(Attr::kDimensions);
  std::vector<int64_t> dims(inner_dims.begin(), inner_dims.end());
  for (int64_t d : reduce.list_attr(Attr::kDimensions)) dims.push_back(kept[static_cast<size_t>(d)]);
  std::sort(dims.begin(), dims.end());
  return ReplaceReduce(rewriter, reduce, inner.operand(0).id(), dims, {inner});
}

// Reducing unit dimensions along with a larger reduction is free; no dimension may appear twice.
bool WindowOfOne(PatternRewriter& rewriter, Instruction reduce_window) {
  if (reduce_window.operand_count() != 2 || !PlainReduction(rewriter, reduce_window)) return false;
  const WindowView window = WindowView::Of(reduce_window);
  for (int64_t d = 0; d < window.rank(); ++d) {
    const WindowDim w = window[d];
    if (w.size != 1 || w.stride != 1 || w.padding_low != 0 || w.padding_high != 0 || w.base_dilation != 1) return false;
  }
  return rewriter.Replace(reduce_window, reduce_window.operand(0).id());
}

}  // namespace

void AddReduceRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kReduce}, "reductions of nothing removed", ReduceOfNothing);
  rules->Add({Opcode::kReduce}, "reductions of transposes merged", ReduceOfTranspose);
  rules->Add({Opcode::kReduce}, "reductions of reshapes merged", ReduceOfUnitReshape);
  rules->Add({Opcode::kReduce}, "reductions of reductions merged", ReduceOfReduce);
  rules->Add({Opcode::kReduceWindow}, "windows of one element removed", WindowOfOne);
}

}  // namespace hlokit
