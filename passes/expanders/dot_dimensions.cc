// SPDX-License-Identifier: Apache-2.0
// Dimensions of dots that were made of several by reshapes of the operands: frameworks whose matrix products take two
// or three dimensions merge the others into them. A merged dimension can be divided among devices by its major part
// only, as batch and heads, or batch and tokens, in one cannot both be tiled. The dot is written with the dimensions
// apart, as einsums are.
#include <algorithm>
#include <optional>
#include <vector>

#include "ir/graph/attribute_views.h"
#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

using Sizes = std::vector<int64_t>;

constexpr int kMaxSteps = 8;  // from a dot back to the reshape

bool IsView(Instruction i) {
  return i.opcode() == Opcode::kTranspose || (i.opcode() == Opcode::kConvert && i.shape().IsArray());
}

// Returns the sizes of the dimensions that a reshape merges into dimension `dim` of its result; empty if they are not
// at least two larger than one, or do not make up that dimension alone.
Sizes MergedInto(Instruction reshape, int64_t dim) {
  const Shape from = reshape.operand(0).shape(), to = reshape.shape();
  int64_t before = 1;
  for (int64_t d = 0; d < dim; ++d) before *= to.dim(d);
  int64_t at = 0, product = 1;
  while (at < from.rank() && product < before) product *= from.dim(at++);
  if (product != before) return {};
  Sizes sizes;
  for (product = 1; at < from.rank() && product < to.dim(dim); ++at) {
    product *= from.dim(at);
    if (from.dim(at) != 1) sizes.push_back(from.dim(at));
  }
  return product == to.dim(dim) && sizes.size() > 1 ? sizes : Sizes();
}

// Returns the sizes of the dimensions that dimension `dim` of an operand was made of; empty if it was not.
Sizes PartsOf(Instruction operand, int64_t dim) {
  for (int step = 0; step < kMaxSteps; ++step) {
    if (operand.shape().has_dynamic_dims() || operand.shape().element_count() == 0) return {};
    if (operand.opcode() == Opcode::kReshape) {
      return operand.operand(0).shape().has_dynamic_dims() ? Sizes() : MergedInto(operand, dim);
    }
    if (!IsView(operand)) return {};
    if (operand.opcode() == Opcode::kTranspose) dim = operand.list_attr(Attr::kDimensions)[static_cast<size_t>(dim)];
    operand = operand.operand(0);
  }
  return {};
}

// Returns the operand with its dimensions cut into these parts, whose reshape goes ahead of transposes and conversions.
InstructionId CutOperand(PatternRewriter& rewriter, Instruction operand, std::vector<Sizes> parts) {
  if (std::all_of(parts.begin(), parts.end(), [](const Sizes& own) { return own.size() == 1; })) return operand.id();
  std::vector<Instruction> views;
  while (IsView(operand) && views.size() < kMaxSteps) {
    views.push_back(operand);
    if (operand.opcode() == Opcode::kTranspose) {
      std::vector<Sizes> before(parts.size());
      const absl::Span<const int64_t> perm = operand.list_attr(Attr::kDimensions);
      for (size_t d = 0; d < parts.size(); ++d) before[static_cast<size_t>(perm[d])] = std::move(parts[d]);
      parts = std::move(before);
    }
    operand = operand.operand(0);
  }
  const auto shape_of = [&](ElementType type) {
    Sizes sizes;
    for (const Sizes& part : parts) sizes.insert(sizes.end(), part.begin(), part.end());
    return rewriter.shapes().Array(type, sizes);
  };
  const Instruction source = operand.opcode() == Opcode::kReshape ? operand.operand(0) : operand;
  const Shape cut = shape_of(operand.shape().element_type());
  InstructionId id = Compatible(source.shape(), cut) ? source.id() : rewriter.MakeReshape(source.id(), cut);
  for (size_t v = views.size(); v-- > 0;) {
    const Instruction view = views[v];
    if (view.opcode() == Opcode::kConvert) {
      id = rewriter.MakeConvert(id, view.shape().element_type());
      rewriter.AddMetadataSource(id, view);
      continue;
    }
    const absl::Span<const int64_t> perm = view.list_attr(Attr::kDimensions);
    std::vector<int64_t> first(parts.size() + 1, 0), order;
    for (size_t d = 0; d < parts.size(); ++d) first[d + 1] = first[d] + static_cast<int64_t>(parts[d].size());
    std::vector<Sizes> after;
    for (int64_t d : perm) {
      const auto from = static_cast<size_t>(d);
      for (int64_t k = first[from]; k < first[from + 1]; ++k) order.push_back(k);
      after.push_back(parts[from]);
    }
    parts = std::move(after);
    const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, order)};
    id = rewriter.Make(Opcode::kTranspose, shape_of(view.shape().element_type()), {id}, attrs);
    rewriter.AddMetadataSource(id, view);
  }
  return id;
}

// The parts of each dimension of both operands.
struct DotParts {
  std::vector<Sizes> lhs, rhs;
  bool any = false;
};

DotParts PartsOfDot(Instruction dot, const DotDims& dims) {
  DotParts parts;
  const Instruction lhs = dot.operand(0), rhs = dot.operand(1);
  for (int64_t d = 0; d < lhs.shape().rank(); ++d) parts.lhs.push_back({lhs.shape().dim(d)});
  for (int64_t d = 0; d < rhs.shape().rank(); ++d) parts.rhs.push_back({rhs.shape().dim(d)});
  std::vector<bool> lhs_free(parts.lhs.size(), true), rhs_free(parts.rhs.size(), true);
  const auto cut_pairs = [&](absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
    for (size_t k = 0; k < a.size(); ++k) {
      lhs_free[static_cast<size_t>(a[k])] = rhs_free[static_cast<size_t>(b[k])] = false;
      Sizes own = PartsOf(lhs, a[k]);
      // Dimensions that both operands have are cut where both were made of the same parts.
      if (own.empty() || own != PartsOf(rhs, b[k])) continue;
      parts.any = true;
      parts.lhs[static_cast<size_t>(a[k])] = own;
      parts.rhs[static_cast<size_t>(b[k])] = std::move(own);
    }
  };
  cut_pairs(dims.lhs_batch, dims.rhs_batch);
  cut_pairs(dims.lhs_contracting, dims.rhs_contracting);
  const auto cut_free = [&](Instruction operand, const std::vector<bool>& is_free, std::vector<Sizes>* own) {
    for (size_t d = 0; d < own->size(); ++d) {
      if (!is_free[d]) continue;
      Sizes sizes = PartsOf(operand, static_cast<int64_t>(d));
      if (sizes.empty()) continue;
      parts.any = true;
      (*own)[d] = std::move(sizes);
    }
  };
  cut_free(lhs, lhs_free, &parts.lhs);
  cut_free(rhs, rhs_free, &parts.rhs);
  return parts;
}

bool SplitDot(PatternRewriter& rewriter, Instruction dot) {
  const DotDims dims = DotDims::Of(dot);
  if (dot.operand_count() != 2 || dot.shape().has_dynamic_dims() || !rewriter.IsReplaceable(dot)) return false;
  const DotParts parts = PartsOfDot(dot, dims);
  if (!parts.any) return false;
  const auto numbers_of = [](const std::vector<Sizes>& own, absl::Span<const int64_t> given) {
    std::vector<int64_t> first(own.size() + 1, 0), numbers;
    for (size_t d = 0; d < own.size(); ++d) first[d + 1] = first[d] + static_cast<int64_t>(own[d].size());
    for (int64_t g : given) {
      for (int64_t k = first[static_cast<size_t>(g)]; k < first[static_cast<size_t>(g) + 1]; ++k) numbers.push_back(k);
    }
    return numbers;
  };
  std::vector<AttrValue> attrs;
  for (AttrValue value : OwnAttrs(dot)) {
    if (value.attr == Attr::kLhsBatchDims) value = rewriter.List(value.attr, numbers_of(parts.lhs, dims.lhs_batch));
    if (value.attr == Attr::kRhsBatchDims) value = rewriter.List(value.attr, numbers_of(parts.rhs, dims.rhs_batch));
    if (value.attr == Attr::kLhsContractingDims) {
      value = rewriter.List(value.attr, numbers_of(parts.lhs, dims.lhs_contracting));
    }
    if (value.attr == Attr::kRhsContractingDims) {
      value = rewriter.List(value.attr, numbers_of(parts.rhs, dims.rhs_contracting));
    }
    attrs.push_back(value);
  }
  // The result: batch dimensions, then those of one operand each.
  Sizes result;
  const auto append = [&result](const Sizes& sizes) { result.insert(result.end(), sizes.begin(), sizes.end()); };
  for (int64_t d : dims.lhs_batch) append(parts.lhs[static_cast<size_t>(d)]);
  const auto append_free = [&](const std::vector<Sizes>& own, absl::Span<const int64_t> batch,
                               absl::Span<const int64_t> contracting) {
    for (size_t d = 0; d < own.size(); ++d) {
      const auto number = static_cast<int64_t>(d);
      const bool shared = std::find(batch.begin(), batch.end(), number) != batch.end() ||
                          std::find(contracting.begin(), contracting.end(), number) != contracting.end();
      if (!shared) append(own[d]);
    }
  };
  append_free(parts.lhs, dims.lhs_batch, dims.lhs_contracting);
  append_free(parts.rhs, dims.rhs_batch, dims.rhs_contracting);
  const InstructionId operands[] = {CutOperand(rewriter, dot.operand(0), parts.lhs),
                                    CutOperand(rewriter, dot.operand(1), parts.rhs)};
  const Shape shape = rewriter.shapes().Array(dot.shape().element_type(), result);
  const InstructionId made = rewriter.Make(Opcode::kDot, shape, operands, attrs);
  return rewriter.Replace(dot, rewriter.MakeReshape(made, dot.shape()));
}

// Reshapes the operand of a reshape, without the dimensions in between.
bool MergeReshapes(PatternRewriter& rewriter, Instruction reshape) {
  const Instruction inner = reshape.operand(0);
  if (inner.opcode() != Opcode::kReshape || reshape.shape().has_dynamic_dims() || inner.shape().has_dynamic_dims() ||
      inner.operand(0).shape().has_dynamic_dims() || !rewriter.IsReplaceable(reshape)) {
    return false;
  }
  const Instruction source = inner.operand(0);
  if (source.shape() == reshape.shape()) return rewriter.Replace(reshape, source.id(), {inner});
  return rewriter.Replace(reshape, rewriter.MakeReshape(source.id(), reshape.shape()), {inner});
}

}  // namespace

void AddDotDimensionSplitterRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDot}, "merged dimensions split", SplitDot);
  rules->Add({Opcode::kReshape}, "reshapes of reshapes merged", MergeReshapes);
}

HLOKIT_PASS(DotDimensionSplitter) {
  return {.name = "dot-dimension-splitter",
          .category = "expand",
          .summary = "split dimensions of dots that reshapes of the operands merged",
          .doc =
              "Batch and contracting dimensions that both operands made of the same dimensions, and "
              "others that one made, are taken apart, with a reshape after the dot; reshapes of "
              "reshapes merge. Before sharding propagation: batch and heads, or batch and tokens, "
              "in one dimension cannot both be divided among devices. The inverse of "
              "dot-dimension-merger; XLA's pipelines have no such pass.",
          .example = R"(ENTRY e {
  a = f32[2,3,4,5] parameter(0)
  b = f32[2,3,5,6] parameter(1)
  r = f32[6,4,5] reshape(a)
  s = f32[6,5,6] reshape(b)
  d = f32[6,4,6] dot(r, s), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, metadata={op_name="f/dot"}
  ROOT o = f32[2,3,4,6] reshape(d)
})",
          .create = MakePass<RulesOf<AddDotDimensionSplitterRules>>};
}

}  // namespace hlokit
