// SPDX-License-Identifier: Apache-2.0
// Ragged dots whose groups are along a batch dimension: elements behind the last group are zero, and each device needs
// to know only how many of its own are before it.
#include <algorithm>
#include <vector>

#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {

Value ComputationPartitioner::EmitRaggedDot(const LocalOp& op) {
  const Instruction i = op.whole;
  const absl::Span<const int64_t> ragged = i.list_attr(Attr::kLhsRaggedDims), batch = i.list_attr(Attr::kLhsBatchDims);
  if (ragged.empty() || std::find(batch.begin(), batch.end(), ragged[0]) == batch.end()) return EmitClone(op);
  const AxisList& axes = AxesOf(op, 0, ragged[0]);
  if (axes.empty()) return EmitClone(op);
  LocalOp local = op;
  MaskOperands(i, *op.rule, *op.choice, &local.operands);
  // The sum of the sizes, in their type, which the groups together reach.
  const Shape sizes = builder().shape_of(op.operands[2]);
  ShapeTable& shapes = builder().shapes();
  std::vector<int64_t> dims = ToVector(sizes.dims());
  const std::vector<int64_t> last = {sizes.rank() - 1};
  dims.pop_back();
  const ComputationId sum = state_.Reducer(Opcode::kAdd, sizes.element_type());
  InstructionId total = builder().Make(Opcode::kReduce, shapes.Array(sizes.element_type(), dims),
                                       {op.operands[2], emitter_.Scalar(sizes.element_type(), 0)},
                                       {builder().List(Attr::kDimensions, last), Builder::Calls(Attr::kToApply, sum)});
  total = NarrowStart(total, i.operand(0).shape().dim(ragged[0]));
  // Those of this device's part.
  const int64_t part = builder().shape_of(op.operands[0]).dim(ragged[0]);
  const Shape narrow = builder().shape_of(total);
  const InstructionId first = emitter_.Times(emitter_.TileNumber(op.choice->frame, axes), part);
  total = builder().Make(Opcode::kSubtract, narrow, {total, emitter_.Splat(narrow, first)});
  total = builder().Make(Opcode::kClamp, narrow, {emitter_.Constant(0), total, emitter_.Constant(part)});
  dims.push_back(1);
  local.operands[2] = emitter_.Reshape(total, dims);
  const InstructionId id = Clone(i, local.operands, LocalShapeOf(i.shape(), op.results));
  LocalizeAttributes(i, *op.choice, id);
  return {{id, i.shape(), op.results[0]}};
}

}  // namespace hlokit::spmd
