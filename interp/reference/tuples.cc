// SPDX-License-Identifier: Apache-2.0
// Instructions that forward values unchanged, and custom calls.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interp/custom_calls/custom_call_device.h"
#include "interp/custom_calls/custom_calls.h"
#include "interp/custom_calls/layout_constraints.h"
#include "interp/custom_calls/matrix_calls.h"
#include "interp/custom_calls/operand_aliases.h"
#include "interp/custom_calls/process_calls.h"
#include "interp/reference/ops.h"

namespace hlokit::reference {
namespace {

// Returns element `index` of the tuple that is operand 0. Empty after an error.
SlotValue ElementOfTuple(const Op& op, int64_t index) {
  const Shape tuple = op.instruction.operand(0).shape();
  if (!op.Require(tuple.IsTuple() && index >= 0 && index < tuple.tuple_size(), "the tuple has no such element"))
    return {};
  const auto [begin, end] = op.run.program.ElementLeaves(tuple, index);
  const SlotValue& from = op.operands[0];
  return SlotValue(from.begin() + static_cast<int64_t>(begin), from.begin() + static_cast<int64_t>(end));
}

// Calls a registered function, or else one of matrices.
SlotValue CallFunction(Op& op, const interp::CustomCallFunction* registered, interp::MatrixCall matrix) {
  std::vector<interp::CustomCallOperand> operands;
  const SlotValue leaves = op.OperandLeaves();
  std::vector<Shape> shapes;
  for (const Leaf& leaf : leaves) shapes.push_back(leaf->shape());
  interp::SetLayoutConstraints(op.instruction, &shapes);
  for (size_t i = 0; i < leaves.size(); ++i) operands.push_back({shapes[i], leaves[i]->data()});
  std::vector<std::shared_ptr<Array>> arrays = op.run.AllocateLeaves(op.shape);
  if (op.run.failed()) return {};
  std::vector<interp::CustomCallResult> results;
  const std::vector<Shape> result_shapes = LeafShapes(op.shape);
  for (size_t i = 0; i < arrays.size(); ++i) results.push_back({result_shapes[i], arrays[i]->mutable_data()});
  if (registered != nullptr) {
    interp::MakeAliases(interp::OperandAliasesOf(op.instruction), absl::MakeSpan(operands), results);
  }
  const std::string_view config = op.instruction.string_attr(Attr::kBackendConfig);
  std::shared_ptr<Array> memory;
  const auto allocate = [&](int64_t count) {
    memory = op.run.Allocate(op.run.program.module->context().shapes.Array(ElementType::kF64, {count}));
    return memory == nullptr ? nullptr : reinterpret_cast<double*>(memory->mutable_data());
  };
  const interp::MatrixCallRun run = {[&] { return !op.run.CheckTime(); }, allocate};
  const interp::CustomCallStop stop(&run.should_stop);
  const absl::Status status =
      registered != nullptr ? (*registered)(operands, results, config) : matrix(operands, results, config, run);
  if (!status.ok()) op.Fail(std::string(status.message()));
  return SlotValue(arrays.begin(), arrays.end());
}

}  // namespace

SlotValue Op::OperandLeaves() const {
  SlotValue leaves;
  for (size_t i = 0; i < operands.size(); ++i) {
    leaves.insert(leaves.end(), operands[i].begin(), operands[i].end());
  }
  return leaves;
}

namespace ops {

SlotValue Parameter(Op& op) {
  op.Fail("the parameter has no value");
  return {};
}

// `constant`
SlotValue Constant(Op& op) { return op.run.program.constants.at(op.instruction.id().value); }

// `add-dependency`, `all-reduce-done`, `copy`, `domain`, `opt-barrier`
SlotValue FirstOperand(Op& op) { return op.operands[0]; }
SlotValue AllReduceDone(Op& op) { return op.operands[0]; }

// `after-all`
SlotValue Token(Op& op) { return {op.run.Allocate(op.run.program.module->context().shapes.Token())}; }

// `tuple`
SlotValue Tuple(Op& op) { return op.OperandLeaves(); }

// `get-tuple-element`
SlotValue GetTupleElement(Op& op) { return ElementOfTuple(op, op.instruction.int_attr(Attr::kIndex)); }

// `all-gather-done`, `collective-permute-done`: the result part of the start's value.
SlotValue CollectiveDone(Op& op) { return ElementOfTuple(op, 1); }

// `copy-start`: destination, source and context.
SlotValue CopyStart(Op& op) {
  SlotValue value = op.operands[0];
  value.insert(value.end(), op.operands[0].begin(), op.operands[0].end());
  const std::vector<Shape> shapes = LeafShapes(op.shape);
  if (!op.Require(value.size() <= shapes.size(), "the result does not fit the operand")) return {};
  for (size_t i = value.size(); i < shapes.size() && !op.run.failed(); ++i) value.push_back(op.run.Allocate(shapes[i]));
  return value;
}

// `copy-done`
SlotValue CopyDone(Op& op) { return ElementOfTuple(op, 0); }

// `set-dimension-size` of one instruction alone: the elements within the bound. Programs with dynamic dimensions are
// made static before they run (interp/dynamic).
SlotValue SetDimensionSize(Op& op) { return op.operands[0]; }

// `custom-call`: a registered function, a marker, TopK; zeros if it does nothing or its result has no reader.
SlotValue CustomCall(Op& op) {
  const std::string_view target = op.instruction.string_attr(Attr::kCustomCallTarget);
  const interp::CustomCallRegistry* registry = op.run.options.custom_calls;
  const interp::CustomCallFunction* registered = registry == nullptr ? nullptr : registry->Find(target);
  const interp::MatrixCall matrix = interp::FindMatrixCall(target);
  if (registered != nullptr) return CallFunction(op, registered, nullptr);
  if (const interp::CustomCallFunction function = interp::FunctionFor(op.instruction); function != nullptr) {
    return CallFunction(op, &function, nullptr);
  }
  if (matrix != nullptr) return CallFunction(op, nullptr, matrix);
  if (interp::IsMarkerTarget(target) && !op.operands.empty() &&
      SameShape(op.instruction.operand(0).shape(), op.shape, true)) {
    return op.operands[0];
  }
  const bool is_top_k = target == "TopK" && op.operands.size() == 1 && op.operands[0].size() == 1;
  const bool is_unused = !op.instruction.has_users() && !op.instruction.is_root();
  const bool is_nop = interp::IsNopTarget(target);
  if (is_top_k || is_unused || is_nop) {
    op.results = op.run.AllocateLeaves(op.shape);
    if (is_top_k && !op.run.failed()) TopK(op);
    return SlotValue(op.results.begin(), op.results.end());
  }
  op.Fail(interp::UnknownTargetMessage(target, registry));
  return {};
}

}  // namespace ops

namespace fill_ops {

// `get-dimension-size` of a static dimension.
void GetDimensionSize(Op& op) {
  const Dims dimensions = op.instruction.list_attr(Attr::kDimensions);
  if (!op.Require(dimensions.size() == 1 && dimensions[0] >= 0 && dimensions[0] < op.in(0).rank(),
                  "the dimension is none of the operand's")) {
    return;
  }
  op.out().SetInteger(0, op.in(0).dim(dimensions[0]));
}

}  // namespace fill_ops
}  // namespace hlokit::reference
