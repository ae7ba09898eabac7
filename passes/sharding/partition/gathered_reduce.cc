// SPDX-License-Identifier: Apache-2.0
// Reductions of several arrays, or by a computation without a known identity, along divided dimensions: each device
// reduces its part, and all reduce the gathered partial results once more. The initial values count once, and padding
// not at all: a further array says which elements count.
#include <algorithm>
#include <utility>

#include "ir/graph/traversal.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {

// Returns the computation on the elements of `reducer` and a pred each, which says whether the element counts.
ComputationId ComputationPartitioner::CountingReducer(Computation reducer) {
  const int64_t arrays = reducer.parameter_count() / 2;
  Builder b(&module_, module_.AddComputation(module_.UniqueComputationName(reducer.name())));
  std::vector<InstructionId> parameters;
  const Shape pred = b.shapes().Scalar(ElementType::kPred);
  for (int64_t side = 0; side < 2; ++side) {
    for (int64_t k = 0; k <= arrays; ++k) {
      const Shape shape = k < arrays ? reducer.parameter(side * arrays + k).shape() : pred;
      parameters.push_back(b.Make(Opcode::kParameter, shape, {}, {}, static_cast<uint32_t>(parameters.size())));
    }
  }
  std::vector<InstructionId> arguments = parameters;
  const InstructionId left = parameters[ToSize(arrays)], right = parameters.back();
  arguments.erase(arguments.begin() + arrays);
  arguments.pop_back();
  const std::vector<InstructionId> combined = InlineBody(&b, reducer, arguments, {});
  std::vector<InstructionId> results;
  for (int64_t k = 0; k < arrays; ++k) {
    const Shape shape = b.shape_of(combined[ToSize(k)]);
    const InstructionId with_right =
        b.Make(Opcode::kSelect, shape, {right, combined[ToSize(k)], parameters[ToSize(k)]});
    results.push_back(b.Make(Opcode::kSelect, shape, {left, with_right, parameters[ToSize(arrays + 1 + k)]}));
  }
  results.push_back(b.Make(Opcode::kOr, pred, {left, right}));
  b.SetRoot(b.MakeTuple(results));
  return b.computation();
}

Value ComputationPartitioner::EmitReduce(const LocalOp& op) {
  const Instruction i = op.whole;
  const int64_t arrays = i.operand_count() / 2;
  AxisList axes;
  bool may_be_empty = false;
  const Shape whole = i.operand(0).shape();
  const std::vector<int64_t> reduced = ToVector(i.list_attr(Attr::kDimensions));
  const Tiling tiling = TilingFor(*op.rule, *op.choice, op.rule->operands[0]);
  for (const int64_t d : reduced) {
    const AxisList& own = op.choice->axes[ToSize(op.rule->operands[0][ToSize(d)][0])];
    const int64_t tiles = SizeOf(own);
    AppendAxes(&axes, own);
    may_be_empty = may_be_empty || (tiles - 1) * CeilOfRatio(whole.dim(d), tiles) >= whole.dim(d);
  }
  if (axes.empty() || !op.choice->partial.empty()) return EmitClone(op);

  const ComputationId counting = CountingReducer(i.computation_attr(Attr::kToApply));
  ShapeTable& shapes = builder().shapes();
  const auto pred = [&](bool value) { return emitter_.Scalar(ElementType::kPred, value ? 1 : 0); };
  const auto reduce = [&](std::vector<InstructionId> elements, std::vector<InstructionId> inits,
                          absl::Span<const int64_t> dims) {
    std::vector<int64_t> kept = ToVector(builder().shape_of(elements[0]).dims());
    for (size_t n = dims.size(); n-- > 0;) kept.erase(kept.begin() + dims[n]);
    std::vector<Shape> results;
    for (const InstructionId element : elements) {
      results.push_back(shapes.Array(builder().shape_of(element).element_type(), kept));
    }
    elements.insert(elements.end(), inits.begin(), inits.end());
    const InstructionId id =
        builder().Make(Opcode::kReduce, shapes.Tuple(results), elements,
                       {builder().List(Attr::kDimensions, dims), Builder::Calls(Attr::kToApply, counting)});
    std::vector<InstructionId> parts;
    for (int64_t k = 0; k <= arrays; ++k) parts.push_back(builder().MakeElement(id, k));
    return parts;
  };
  std::vector<int64_t> sorted = reduced;
  std::sort(sorted.begin(), sorted.end());
  std::vector<InstructionId> elements(op.operands.begin(), op.operands.begin() + arrays);
  std::vector<InstructionId> inits(op.operands.begin() + arrays, op.operands.end());
  const Shape part = builder().shape_of(elements[0]);
  const Shape as_pred = shapes.Array(ElementType::kPred, part.dims());
  const Shape whole_pred = shapes.WithElementType(whole, ElementType::kPred);
  elements.push_back(
      emitter_.MaskPadding(emitter_.Splat(as_pred, pred(true)), whole_pred, tiling, sorted, pred(false)));
  const InstructionId tile = emitter_.TileNumber(op.choice->frame, axes);
  inits.push_back(builder().MakeCompare(ComparisonDirection::kEq, tile, emitter_.Constant(0)));
  std::vector<InstructionId> partial = reduce(elements, inits, sorted);

  std::vector<InstructionId> gathered;
  const int64_t last = part.rank() - static_cast<int64_t>(sorted.size());
  for (int64_t k = 0; k <= arrays; ++k) {
    std::vector<int64_t> column = ToVector(builder().shape_of(partial[ToSize(k)]).dims());
    column.push_back(1);
    if (k == arrays && !may_be_empty) {
      column.back() = SizeOf(axes);
      gathered.push_back(emitter_.Splat(shapes.Array(ElementType::kPred, column), pred(true)));
      continue;
    }
    const InstructionId reshaped = emitter_.Reshape(partial[ToSize(k)], column);
    gathered.push_back(emitter_.AllGather(reshaped, op.choice->frame, axes, last));
  }
  // No initial value again.
  inits.back() = pred(false);
  const std::vector<InstructionId> results = reduce(gathered, inits, {last});
  Value leaves;
  const std::vector<Shape> leaf_shapes = Leaves(i.shape());
  for (size_t k = 0; k < leaf_shapes.size(); ++k) leaves.push_back({results[k], leaf_shapes[k], op.results[k]});
  return leaves;
}

}  // namespace hlokit::spmd
