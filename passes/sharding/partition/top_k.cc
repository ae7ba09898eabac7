// SPDX-License-Identifier: Apache-2.0
// Selections of the first elements in an order, along a divided dimension: each device selects from its part, and from
// what all have selected the first are taken once more. A sort of which only the first elements are used is one.
#include <algorithm>
#include <utility>

#include "ir/graph/attribute_views.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

// Returns how many elements along the sorted dimension are used of a sort of values and their indices; nullopt if all,
// or if the second operand is another one.
std::optional<int64_t> UsedOfSort(Instruction i) {
  const int64_t dim = i.list_attr(Attr::kDimensions)[0];
  if (i.operand_count() != 2 || i.is_root() || !i.has_users()) return std::nullopt;
  const Instruction index = i.operand(1);
  if (index.opcode() != Opcode::kIota || index.int_attr(Attr::kIotaDimension) != dim) return std::nullopt;
  int64_t used = 0;
  for (const Instruction element : i.users()) {
    if (element.opcode() != Opcode::kGetTupleElement || element.is_root()) return std::nullopt;
    for (const Instruction slice : element.users()) {
      if (slice.opcode() != Opcode::kSlice) return std::nullopt;
      used = std::max(used, SliceView::Of(slice).limit(dim));
    }
  }
  if (used == 0 || used >= i.operand(0).shape().dim(dim)) return std::nullopt;
  return used;
}

}  // namespace

bool ComputationPartitioner::DivideSort(Instruction i, DividedOp* op) {
  if (!UsedOfSort(i)) return true;
  const size_t dim = ToSize(i.list_attr(Attr::kDimensions)[0]);
  const size_t f = ToSize(op->rule->operands[0][dim][0]);
  op->divisible[f] = op->exact[f] = true;
  // Every device has the selected elements.
  const auto whole = static_cast<int32_t>(op->rule->factors.size());
  op->rule->factors.push_back({op->rule->factors[f].size, FactorKind::kWhole});
  for (std::vector<bool>* list : {&op->divisible, &op->exact, &op->combined, &op->gathered}) list->push_back(false);
  for (ArrayFactors& result : op->rule->results) result[dim] = {whole};
  return true;
}

InstructionId ComputationPartitioner::FirstAlong(InstructionId array, int64_t dim, int64_t count) {
  std::vector<int64_t> limits = ToVector(builder().shape_of(array).dims());
  limits[ToSize(dim)] = std::min(count, limits[ToSize(dim)]);
  return emitter_.SliceTo(array, limits);
}

Value ComputationPartitioner::EmitSort(const LocalOp& op) {
  const Instruction i = op.whole;
  const int64_t dim = i.list_attr(Attr::kDimensions)[0];
  const AxisList& axes = op.choice->axes[ToSize(op.rule->operands[0][ToSize(dim)][0])];
  if (axes.empty()) return EmitClone(op);
  const int64_t used = *UsedOfSort(i);
  std::vector<Shape> shapes;
  for (const InstructionId operand : op.operands) shapes.push_back(builder().shape_of(operand));
  const InstructionId sorted = Clone(i, op.operands, builder().shapes().Tuple(shapes));
  std::vector<InstructionId> candidates;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const InstructionId first = FirstAlong(builder().MakeElement(sorted, k), dim, used);
    candidates.push_back(emitter_.AllGather(first, op.choice->frame, axes, dim));
    shapes[ToSize(k)] = builder().shape_of(candidates.back());
  }
  const InstructionId again = Clone(i, candidates, builder().shapes().Tuple(shapes));
  Value leaves(ToSize(i.operand_count()));
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    // What is behind them is not used.
    const Shape whole = i.operand(k).shape();
    std::vector<int64_t> sizes = ToVector(shapes[ToSize(k)].dims());
    sizes[ToSize(dim)] = whole.dim(dim);
    const InstructionId padded = emitter_.PadTo(FirstAlong(builder().MakeElement(again, k), dim, used), sizes);
    leaves[ToSize(k)] = {padded, whole, op.results[ToSize(k)]};
  }
  return leaves;
}

bool ComputationPartitioner::DivideTopK(Instruction i, DividedOp* op) {
  const std::vector<Shape> results = Leaves(i.shape());
  const Shape input = i.operand(0).shape();
  if (i.operand_count() != 1 || input.rank() == 0 || results.size() != 2 || IsComplex(input.element_type()) ||
      results[1].element_type() != ElementType::kS32 || results[0].rank() != input.rank()) {
    return true;
  }
  const int64_t dim = input.rank() - 1;
  if (input.dim(dim) == 0 || results[0].dim(dim) == input.dim(dim)) return true;
  const size_t f = ToSize(op->rule->operands[0][ToSize(dim)][0]);
  op->divisible[f] = op->exact[f] = true;
  return true;
}

Value ComputationPartitioner::EmitTopK(const LocalOp& op) {
  const Instruction i = op.whole;
  const Shape input = builder().shape_of(op.operands[0]);
  const int64_t dim = input.rank() - 1;
  const AxisList& axes = op.choice->axes[ToSize(op.rule->operands[0][ToSize(dim)][0])];
  if (axes.empty()) return EmitClone(op);
  const std::vector<Shape> whole = Leaves(i.shape());
  const int64_t wanted = whole[0].dim(dim), local = std::min(wanted, input.dim(dim));
  std::vector<int64_t> sizes = ToVector(input.dims());
  sizes[ToSize(dim)] = local;
  ShapeTable& shapes = builder().shapes();
  const Shape values = shapes.Array(input.element_type(), sizes), indices = shapes.Array(ElementType::kS32, sizes);
  const InstructionId selected = Clone(i, op.operands, shapes.Tuple({values, indices}));
  if (i.has(Attr::kK)) module_.SetAttr(selected, Attr::kK, module_.EncodeInt64(local));
  if (module_.instruction(selected).has(Attr::kOperandLayoutConstraints)) LocalizeAttributes(i, *op.choice, selected);
  // Indices of the whole array, of which equal elements are in order.
  const InstructionId first =
      emitter_.Times(emitter_.TileNumber(op.choice->frame, axes), builder().shape_of(op.operands[0]).dim(dim));
  const InstructionId begin = emitter_.Splat(indices, first);
  const InstructionId index = emitter_.Plus(builder().MakeElement(selected, 1), begin);
  const InstructionId candidates[] = {
      emitter_.AllGather(builder().MakeElement(selected, 0), op.choice->frame, axes, dim),
      emitter_.AllGather(index, op.choice->frame, axes, dim)};
  const ElementType type = input.element_type();
  Builder b(&module_, module_.AddComputation(module_.UniqueComputationName("compare")));
  std::vector<InstructionId> parameters;
  for (uint32_t k = 0; k < 4; ++k) {
    parameters.push_back(b.Make(Opcode::kParameter, shapes.Scalar(k < 2 ? type : ElementType::kS32), {}, {}, k));
  }
  const bool largest = i.bool_attr(Attr::kLargest, true);
  std::vector<AttrValue> attrs = {
      Builder::Enum(Attr::kDirection, largest ? ComparisonDirection::kGt : ComparisonDirection::kLt)};
  if (IsFloat(type)) attrs.push_back(Builder::Enum(Attr::kCompareType, ComparisonType::kTotalOrder));
  b.SetRoot(b.Make(Opcode::kCompare, shapes.Scalar(ElementType::kPred), {parameters[0], parameters[1]}, attrs));
  const Shape both = shapes.Tuple({builder().shape_of(candidates[0]), builder().shape_of(candidates[1])});
  const InstructionId sorted =
      builder().Make(Opcode::kSort, both, candidates,
                     {builder().List(Attr::kDimensions, {dim}), Builder::Bool(Attr::kIsStable, true),
                      Builder::Calls(Attr::kToApply, b.computation())});
  Value leaves;
  for (int64_t k = 0; k < 2; ++k) {
    leaves.push_back(
        {FirstAlong(builder().MakeElement(sorted, k), dim, wanted), whole[ToSize(k)], op.results[ToSize(k)]});
  }
  return leaves;
}

}  // namespace hlokit::spmd
