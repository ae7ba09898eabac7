// SPDX-License-Identifier: Apache-2.0
// Brings indices of slices, dimensions of scatters and batch dimensions of dots into simple forms.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/algorithm/container.h"
#include "ir/graph/attribute_views.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/rule_pass.h"
#include "passes/simplify/algebraic/rule_passes.h"

namespace hlokit {
namespace {

// Splits an array of start indices into scalars.
bool SplitIndex(PatternRewriter& rewriter, Instruction i) {
  const int64_t first = i.opcode() == Opcode::kDynamicSlice ? 1 : 2;
  // A scalar has one slice: itself.
  if (i.shape().IsScalar()) return rewriter.Replace(i, i.operand(first - 1).id());
  if (i.operand_count() != first + 1) return false;
  const Instruction index = i.operand(first);
  const Shape shape = index.shape();
  if (shape.rank() != 1 || shape.has_dynamic_dims() || !rewriter.IsReplaceable(i)) return false;
  const ElementType type = shape.element_type();
  std::vector<InstructionId> operands;
  for (int64_t k = 0; k < first; ++k) operands.push_back(i.operand(k).id());
  for (int64_t k = 0; k < shape.dim(0); ++k) {
    const AttrValue attrs[] = {rewriter.List(Attr::kSlice, {k, k + 1, 1})};
    const InstructionId one = rewriter.Make(Opcode::kSlice, rewriter.shapes().Array(type, {1}), {index.id()}, attrs);
    operands.push_back(rewriter.MakeReshape(one, rewriter.shapes().Scalar(type)));
  }
  return rewriter.ReplaceWithNew(i, i.opcode(), operands, OwnAttrs(i));
}

InstructionId MakeTranspose(PatternRewriter& rewriter, InstructionId array, const std::vector<int64_t>& order) {
  if (absl::c_is_sorted(order)) return array;
  const Shape from = rewriter.shape_of(array);
  std::vector<int64_t> sizes;
  for (int64_t d : order) sizes.push_back(from.dim(d));
  const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, order)};
  return rewriter.Make(Opcode::kTranspose, rewriter.shapes().Array(from.element_type(), sizes), {array}, attrs);
}

bool IsIota(absl::Span<const int64_t> list, int64_t start) {
  for (size_t k = 0; k < list.size(); ++k) {
    if (list[k] != start + static_cast<int64_t>(k)) return false;
  }
  return true;
}

// Makes the index of batching dimensions components of the index vectors.
bool IndexBatches(PatternRewriter& rewriter, Instruction scatter) {
  const ScatterDims dims = ScatterDims::Of(scatter);
  const int64_t count = (scatter.operand_count() - 1) / 2;
  if (count < 1 || dims.input_batching_dims.empty() || !rewriter.IsReplaceable(scatter)) return false;
  const Instruction given = scatter.operand(count);
  const Shape shape = given.shape();
  const int64_t vector_dim = dims.index_vector_dim;
  if (shape.has_dynamic_dims() || !IsInteger(shape.element_type()) || scatter.operand(0).shape().element_count() == 0) {
    return false;
  }
  // Narrow integers may not hold the index of a batch.
  const ElementType type = BitsOf(shape.element_type()) < 32 ? ElementType::kS32 : shape.element_type();
  std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
  if (vector_dim == shape.rank()) sizes.push_back(1);
  ShapeTable& shapes = rewriter.shapes();
  std::vector<InstructionId> parts = {
      rewriter.MakeReshape(rewriter.MakeConvert(given.id(), type), shapes.Array(type, sizes))};
  const size_t components = static_cast<size_t>(vector_dim);
  int64_t before = sizes[components];
  sizes[components] = 1;
  // The index of a batch goes before a component for the same dimension, which is left out.
  std::vector<int64_t> indexed;
  const auto is_batch = [&](int64_t d) { return absl::c_linear_search(dims.input_batching_dims, d); };
  if (absl::c_any_of(dims.scatter_dims_to_operand_dims, is_batch)) {
    const InstructionId all = parts[0];
    parts.clear();
    for (int64_t k = 0; k < before; ++k) {
      if (is_batch(dims.scatter_dims_to_operand_dims[static_cast<size_t>(k)])) continue;
      std::vector<int64_t> ranges;
      for (size_t n = 0; n < sizes.size(); ++n) {
        const int64_t begin = n == components ? k : 0;
        ranges.insert(ranges.end(), {begin, begin + sizes[n], 1});
      }
      const AttrValue slice[] = {rewriter.List(Attr::kSlice, ranges)};
      parts.push_back(rewriter.Make(Opcode::kSlice, shapes.Array(type, sizes), {all}, slice));
    }
    before = static_cast<int64_t>(parts.size());
  }
  for (int64_t d : dims.scatter_dims_to_operand_dims) {
    if (!is_batch(d)) indexed.push_back(d);
  }
  for (int64_t d : dims.scatter_indices_batching_dims) {
    const AttrValue iota[] = {rewriter.Int(Attr::kIotaDimension, d)};
    parts.push_back(rewriter.Make(Opcode::kIota, shapes.Array(type, sizes), {}, iota));
  }
  sizes[components] = before + static_cast<int64_t>(dims.input_batching_dims.size());
  const AttrValue along[] = {rewriter.List(Attr::kDimensions, {vector_dim})};
  const InstructionId indices = rewriter.Make(Opcode::kConcatenate, shapes.Array(type, sizes), parts, along);
  std::vector<int64_t> inserted(dims.inserted_window_dims.begin(), dims.inserted_window_dims.end());
  for (int64_t d : dims.input_batching_dims) {
    indexed.push_back(d);
    inserted.push_back(d);
  }
  absl::c_sort(inserted);
  std::vector<AttrValue> attrs;
  for (AttrValue value : OwnAttrs(scatter)) {
    // The vectors are sorted no more.
    if (value.attr == Attr::kInputBatchingDims || value.attr == Attr::kScatterIndicesBatchingDims ||
        value.attr == Attr::kIndicesAreSorted) {
      continue;
    }
    if (value.attr == Attr::kInsertedWindowDims) value = rewriter.List(value.attr, inserted);
    if (value.attr == Attr::kScatterDimsToOperandDims) value = rewriter.List(value.attr, indexed);
    attrs.push_back(value);
  }
  std::vector<InstructionId> operands;
  for (Instruction operand : scatter.operands()) operands.push_back(operand.id());
  operands[static_cast<size_t>(count)] = indices;
  return rewriter.ReplaceWithNew(scatter, Opcode::kScatter, operands, attrs);
}

// Gives a scatter one dimension of index vectors, windows of the rank of the array, and indices of its first
// dimensions.
bool SimplifyScatter(PatternRewriter& rewriter, Instruction scatter) {
  const ScatterDims dims = ScatterDims::Of(scatter);
  const int64_t count = (scatter.operand_count() - 1) / 2;
  if (count < 1 || !dims.input_batching_dims.empty() || !rewriter.IsReplaceable(scatter)) return false;
  for (int64_t k = 0; k < scatter.operand_count(); ++k) {
    if (scatter.operand(k).shape().has_dynamic_dims()) return false;
  }
  if (scatter.shape().IsTuple() != (count > 1) || scatter.operand(0).shape().element_count() == 0) return false;
  const Shape indices = scatter.operand(count).shape(), array = scatter.operand(0).shape();
  const int64_t vector_dim = dims.index_vector_dim, rank = array.rank();
  if (indices.rank() == 2 && vector_dim == 1 && dims.inserted_window_dims.empty() &&
      IsIota(dims.update_window_dims, 1) && IsIota(dims.scatter_dims_to_operand_dims, 0)) {
    return false;
  }
  const int64_t components = static_cast<int64_t>(dims.scatter_dims_to_operand_dims.size());
  std::vector<int64_t> index_order;
  int64_t vectors = 1;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d == vector_dim) continue;
    index_order.push_back(d);
    vectors *= indices.dim(d);
  }
  if (vector_dim < indices.rank()) index_order.push_back(vector_dim);
  const InstructionId rows =
      rewriter.MakeReshape(MakeTranspose(rewriter, scatter.operand(count).id(), index_order),
                           rewriter.shapes().Array(indices.element_type(), {vectors, components}));
  // The dimensions that are indexed come first.
  std::vector<int64_t> order(dims.scatter_dims_to_operand_dims.begin(), dims.scatter_dims_to_operand_dims.end());
  for (int64_t d = 0; d < rank; ++d) {
    if (!absl::c_linear_search(dims.scatter_dims_to_operand_dims, d)) order.push_back(d);
  }
  std::vector<int64_t> inverse(order.size()), row_order = {0}, update_order;
  for (size_t k = 0; k < order.size(); ++k) {
    inverse[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
    row_order.push_back(order[k] + 1);
  }
  const Shape updates = scatter.operand(count + 1).shape();
  for (int64_t d = 0; d < updates.rank(); ++d) {
    if (!absl::c_linear_search(dims.update_window_dims, d)) update_order.push_back(d);
  }
  std::vector<int64_t> window = {vectors};
  for (int64_t d = 0, next = 0; d < rank; ++d) {
    const bool inserted = absl::c_linear_search(dims.inserted_window_dims, d);
    window.push_back(inserted ? 1 : updates.dim(dims.update_window_dims[static_cast<size_t>(next)]));
    next += inserted ? 0 : 1;
  }
  update_order.insert(update_order.end(), dims.update_window_dims.begin(), dims.update_window_dims.end());
  std::vector<InstructionId> arrays, windows;
  std::vector<Shape> shapes;
  for (int64_t k = 0; k < count; ++k) {
    arrays.push_back(MakeTranspose(rewriter, scatter.operand(k).id(), order));
    shapes.push_back(rewriter.shape_of(arrays.back()));
    const Instruction update = scatter.operand(count + 1 + k);
    const Shape shape = rewriter.shapes().Array(update.shape().element_type(), window);
    const InstructionId sorted = MakeTranspose(rewriter, update.id(), update_order);
    windows.push_back(MakeTranspose(rewriter, rewriter.MakeReshape(sorted, shape), row_order));
  }
  std::vector<InstructionId> operands = arrays;
  operands.push_back(rows);
  operands.insert(operands.end(), windows.begin(), windows.end());
  std::vector<int64_t> window_dims(static_cast<size_t>(rank)), indexed(static_cast<size_t>(components));
  std::iota(window_dims.begin(), window_dims.end(), 1);
  std::iota(indexed.begin(), indexed.end(), 0);
  std::vector<AttrValue> attrs;
  for (AttrValue value : OwnAttrs(scatter)) {
    if (value.attr == Attr::kUpdateWindowDims) value = rewriter.List(value.attr, window_dims);
    if (value.attr == Attr::kInsertedWindowDims) value = rewriter.List(value.attr, {});
    if (value.attr == Attr::kScatterDimsToOperandDims) value = rewriter.List(value.attr, indexed);
    if (value.attr == Attr::kIndexVectorDim) value = rewriter.Int(value.attr, 1);
    attrs.push_back(value);
  }
  const Shape result = count == 1 ? shapes[0] : rewriter.shapes().Tuple(shapes);
  const InstructionId simple = rewriter.Make(Opcode::kScatter, result, operands, attrs);
  if (count == 1) return rewriter.Replace(scatter, MakeTranspose(rewriter, simple, inverse));
  std::vector<InstructionId> elements;
  for (int64_t k = 0; k < count; ++k) {
    elements.push_back(MakeTranspose(rewriter, rewriter.MakeElement(simple, k), inverse));
  }
  return rewriter.Replace(scatter, rewriter.MakeTuple(elements));
}

// Removes batch dimensions of size 1 from a dot.
bool DropUnitBatch(PatternRewriter& rewriter, Instruction dot) {
  const DotDims dims = DotDims::Of(dot);
  if (dot.operand_count() != 2 || !rewriter.IsReplaceable(dot) || dot.shape().has_dynamic_dims()) return false;
  std::vector<int64_t> gone[2], kept[2];
  for (size_t k = 0; k < dims.lhs_batch.size(); ++k) {
    const bool unit = dot.operand(0).shape().dim(dims.lhs_batch[k]) == 1;
    (unit ? gone : kept)[0].push_back(dims.lhs_batch[k]);
    (unit ? gone : kept)[1].push_back(dims.rhs_batch[k]);
  }
  if (gone[0].empty()) return false;
  const absl::Span<const int64_t> contracting[] = {dims.lhs_contracting, dims.rhs_contracting};
  InstructionId operands[2];
  std::vector<int64_t> batch[2], contracted[2];
  for (size_t side = 0; side < 2; ++side) {
    const Instruction operand = dot.operand(static_cast<int64_t>(side));
    std::vector<int64_t> sizes, number;
    for (int64_t d = 0; d < operand.shape().rank(); ++d) {
      number.push_back(static_cast<int64_t>(sizes.size()));
      if (!absl::c_linear_search(gone[side], d)) sizes.push_back(operand.shape().dim(d));
    }
    for (int64_t d : kept[side]) batch[side].push_back(number[static_cast<size_t>(d)]);
    for (int64_t d : contracting[side]) contracted[side].push_back(number[static_cast<size_t>(d)]);
    operands[side] = rewriter.MakeReshape(operand.id(), rewriter.shapes().Array(operand.shape().element_type(), sizes));
  }
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < dot.shape().rank(); ++d) {
    const bool is_batch = d < static_cast<int64_t>(dims.lhs_batch.size());
    if (!is_batch || dot.shape().dim(d) != 1) sizes.push_back(dot.shape().dim(d));
  }
  std::vector<AttrValue> attrs;
  for (AttrValue value : OwnAttrs(dot)) {
    if (value.attr == Attr::kLhsBatchDims || value.attr == Attr::kRhsBatchDims) {
      const std::vector<int64_t>& list = batch[value.attr == Attr::kLhsBatchDims ? 0 : 1];
      if (!list.empty()) attrs.push_back(rewriter.List(value.attr, list));
      continue;
    }
    if (value.attr == Attr::kLhsContractingDims) value = rewriter.List(value.attr, contracted[0]);
    if (value.attr == Attr::kRhsContractingDims) value = rewriter.List(value.attr, contracted[1]);
    attrs.push_back(value);
  }
  const InstructionId smaller =
      rewriter.Make(Opcode::kDot, rewriter.shapes().Array(dot.shape().element_type(), sizes), operands, attrs);
  return rewriter.Replace(dot, rewriter.MakeReshape(smaller, dot.shape()));
}

}  // namespace

void AddDynamicIndexSplitterRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDynamicSlice, Opcode::kDynamicUpdateSlice}, "arrays of start indices split", SplitIndex);
}

void AddScatterSimplifierRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kScatter}, "batches of scatters indexed", IndexBatches);
  rules->Add({Opcode::kScatter}, "scatters brought into form", SimplifyScatter);
}

void AddBatchDotSimplificationRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDot}, "unit batch dimensions removed", DropUnitBatch);
}

HLOKIT_PASS(DynamicIndexSplitter) {
  return {.name = "dynamic-index-splitter",
          .category = "simplify",
          .summary = "split arrays of start indices into scalars",
          .doc = "As XLA's, for dynamic-slice and dynamic-update-slice; those of scalars are removed.",
          .example = R"(ENTRY e {
  p = f32[5,3] parameter(0)
  i = s32[2] parameter(1)
  u = f32[1,3] parameter(2)
  s = f32[2,2] dynamic-slice(p, i), dynamic_slice_sizes={2,2}, metadata={op_name="f/slice"}
  v = f32[5,3] dynamic-update-slice(p, u, i), metadata={op_name="f/update"}
  ROOT t = (f32[2,2], f32[5,3]) tuple(s, v)
})",
          .create = MakePass<RulesOf<AddDynamicIndexSplitterRules>>};
}

HLOKIT_PASS(ScatterSimplifier) {
  return {.name = "scatter-simplifier",
          .category = "simplify",
          .summary = "bring scatters into a simple form",
          .doc =
              "No batching dimensions, one dimension of index vectors, windows of the rank of the array, and "
              "indices of its first dimensions, with transposes and reshapes around the scatter. XLA's now "
              "moves the indexed dimensions first only on request, applies the combiner of a scatter into "
              "scalars, and leaves batching dimensions to another pass.",
          .example = R"(sub {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  d = f32[] subtract(x, y)
  two = f32[] constant(2)
  ROOT m = f32[] multiply(d, two), metadata={op_name="f/combine"}
}
ENTRY e {
  p = f32[3,4,2] parameter(0)
  i = s32[2,2,3] constant({{{1,2,3},{0,1,2}},{{2,1,0},{2,1,1}}})
  u = f32[2,2,3] parameter(1)
  ROOT s = f32[3,4,2] scatter(p, i, u), update_window_dims={0}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=sub, metadata={op_name="f/scatter"}
})",
          .create = MakePass<RulesOf<AddScatterSimplifierRules, RewriteScope::kSequential>>};
}

HLOKIT_PASS(BatchDotSimplification) {
  return {.name = "batch-dot-simplification",
          .category = "simplify",
          .summary = "remove batch dimensions of size 1 from dots",
          .doc =
              "Operands and result are reshaped. XLA's requires batch dimensions to come first, in order, and "
              "one contracting dimension.",
          .example = R"(ENTRY e {
  a = f32[1,2,3,4] parameter(0)
  b = f32[2,1,4,5] parameter(1)
  c = f32[1,3] parameter(2)
  d = f32[3,1] parameter(3)
  x = f32[1,2,3,5] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={1,0}, lhs_contracting_dims={3}, rhs_contracting_dims={2}, metadata={op_name="f/dot"}
  y = f32[1] dot(c, d), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}, metadata={op_name="f/inner"}
  ROOT t = (f32[1,2,3,5], f32[1]) tuple(x, y)
})",
          .create = MakePass<RulesOf<AddBatchDotSimplificationRules>>};
}

}  // namespace hlokit
