// SPDX-License-Identifier: Apache-2.0
// Control flow, calls, tuples, tokens.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "ir/ops/opcode_set.h"
#include "ir/text/frontend_attributes.h"
#include "parser/stablehlo/import/converter.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

absl::Status Converter::ConvertConditional(const Op& op) {
  std::vector<InstructionId> inputs = {operand(op, 0)};
  const size_t branches = op.region_count;
  for (size_t i = 0; i < branches; ++i) {
    std::vector<InstructionId> captured;
    for (mlir::ValueId value : frame().captures[i]) captured.push_back(values_[value.value]);
    inputs.push_back(captured.size() == 1 ? captured[0] : b().MakeTuple(captured));
    std::vector<ListId> leaves;
    for (InstructionId value : captured) leaves.push_back(ShardingOf(value));
    if (captured.size() > 1) ShardTuple(inputs.back(), leaves);
  }
  Attrs attrs;
  if (op.kind() == OpKind::kStablehloIf && branches == 2) {
    attrs = {Builder::Calls(Attr::kTrueComputation, callee(0)), Builder::Calls(Attr::kFalseComputation, callee(1))};
  } else {
    attrs = {b().CallsEach(Attr::kBranchComputations, frame().computations)};
  }
  return EmitTuple(op, Opcode::kConditional, inputs, attrs);
}

absl::Status Converter::ConvertWhile(const Op& op) {
  const InstructionId whole = frame().captures[0].empty() ? WholeOf(op) : InstructionId();
  if (!whole.valid()) {
    for (mlir::ValueId value : program_.operands_of(op)) Materialize(value);
  }
  std::vector<InstructionId> state = whole.valid() ? std::vector<InstructionId>(op.operand_count, whole) : operands(op);
  for (mlir::ValueId value : frame().captures[0]) state.push_back(values_[value.value]);
  const InstructionId init = whole.valid() ? whole : state.size() == 1 ? state[0] : b().MakeTuple(state);
  const Result loop = b().Add(Opcode::kWhile, {init},
                              {Builder::Calls(Attr::kCondition, callee(1)), Builder::Calls(Attr::kBody, callee(0))});
  const ListId sharding = ShardingOf(module_->computation(callee(0)).parameter(0).id());
  if (loop.ok() && sharding.valid()) {
    module_->SetAttr(*loop, Attr::kSharding, sharding.value);
    if (state.size() != 1) module_->SetAttr(init, Attr::kSharding, sharding.value);
  }
  return state.size() == 1 ? op.result_count == 0 ? absl::OkStatus() : SetResult(op, loop)
                           : SetResults(op, loop, /*always_tuple=*/true);
}

absl::Status Converter::ConvertCall(const Op& op) {
  const NodeId symbol = Attribute(op, "callee");
  if (!symbol.valid()) return Error(op, "requires attribute 'callee'");
  const ComputationId called = computations_.at(functions_.at(std::string(nodes().text(symbol))).value);
  Attrs attrs = {Builder::Calls(Attr::kToApply, called)};
  // A frontend attribute of this name is the call's own configuration.
  const NodeId frontend = Attribute(op, "mhlo.frontend_attributes");
  if (frontend.valid() && nodes().kind(frontend) == NodeKind::kDictionary) {
    const NodeId config = nodes().Entry(frontend, "backend_config");
    if (config.valid() && nodes().kind(config) == NodeKind::kString) {
      attrs.push_back(String(Attr::kBackendConfig, nodes().text(config)));
    }
  }
  if (KeptOpcode(op) == Opcode::kFusion) {
    // Each fusion has a computation of its own.
    const bool first = fused_.insert(called.value).second;
    attrs[0] = Builder::Calls(Attr::kCalls, first ? called : module_->CloneComputation(called));
    // Its kind is among the attributes that are read later, and required.
    attrs.push_back({Attr::kFusionKind, 0});
    return EmitTuple(op, Opcode::kFusion, operands(op), attrs);
  }
  return EmitTuple(op, Opcode::kCall, operands(op), attrs);
}

absl::Status Converter::ConvertComposite(const Op& op) {
  if (op.region_count != 0) return Error(op, "has regions, which HLO has no place for");
  const NodeId symbol = Attribute(op, "decomposition");
  if (!symbol.valid()) return Error(op, "requires attribute 'decomposition'");
  const ComputationId called = computations_.at(functions_.at(std::string(nodes().text(symbol))).value);
  const NodeId attributes = Attribute(op, "composite_attributes");
  std::vector<FrontendAttribute> frontend;
  const auto add = [&](std::string_view key, std::string_view value) {
    frontend.push_back({context().strings.Intern(key), context().strings.Intern(value)});
  };
  add("composite.attributes", attributes.valid() ? mlir::ToText(nodes(), attributes) : "{}");
  add("composite.name", StringOf(op, "name"));
  add("composite.version", StrCat(IntOf(op, "version")));
  const ListId list = EncodeFrontendAttributes(&context(), std::move(frontend));
  return EmitTuple(
      op, Opcode::kCall, operands(op),
      {Builder::Calls(Attr::kToApply, called), {Attr::kIsComposite, 1}, {Attr::kFrontendAttributes, list.value}});
}

absl::Status Converter::ConvertTuple(const Op& op) {
  if (Attribute(op, kOperand).valid()) return absl::OkStatus();
  const InstructionId whole = WholeOf(op);
  if (whole.valid()) {
    Bind(program_.result(op), whole);
    return absl::OkStatus();
  }
  return SetResult(op, b().MakeTuple(operands(op)));
}

absl::Status Converter::ConvertGetTupleElement(const Op& op) {
  if (Attribute(op, kWhole).valid()) {
    BindElement(program_.result(op), operand(op, 0), IntOf(op, "index"));
    return absl::OkStatus();
  }
  return Emit(op, Opcode::kGetTupleElement, operands(op), {Int(Attr::kIndex, IntOf(op, "index"))});
}

absl::Status Converter::ConvertToken(const Op& op) { return Emit(op, Opcode::kAfterAll, operands(op)); }

absl::Status Converter::ConvertOptimizationBarrier(const Op& op) {
  if (op.operand_count == 0) return absl::OkStatus();
  if (op.operand_count == 1) return Emit(op, Opcode::kOptimizationBarrier, operands(op));
  return EmitTuple(op, Opcode::kOptimizationBarrier, {MakeShardedTuple(operands(op))});
}

// ---- asynchronous operations ----

// The operation whose results a region returns: its root, or what all elements of a tuple there are from, in order.
static Instruction WorkOf(const Computation& body) {
  const Instruction root = body.root();
  if (!root.valid() || root.opcode() != Opcode::kTuple || root.operand_count() == 0) return root;
  for (int64_t i = 0; i < root.operand_count(); ++i) {
    const Instruction element = root.operand(i);
    if (element.opcode() != Opcode::kGetTupleElement || element.int_attr(Attr::kIndex) != i ||
        element.operand(0).id() != root.operand(0).operand(0).id()) {
      return root;
    }
  }
  const Instruction work = root.operand(0).operand(0);
  return work.shape() == root.shape() ? work : root;
}

// An operand of it: collective operations take elements of a tuple of their operands.
static Instruction OperandOf(Instruction work, int64_t index) {
  const Instruction value = work.operand(index);
  if (value.opcode() != Opcode::kGetTupleElement || value.operand(0).opcode() != Opcode::kTuple) return value;
  return value.operand(0).operand(value.int_attr(Attr::kIndex));
}

absl::Status Converter::ConvertAsyncStart(const Op& op) {
  const Computation body = module_->computation(callee(0));
  const Instruction work = WorkOf(body);
  const auto count = static_cast<int64_t>(op.operand_count);
  const Shape known = ReadShape(StringOf(op, "xla_shape"));
  const Opcode opcode = KeptOpcode(op);
  if (opcode == Opcode::kCopyStart) {
    module_->EraseComputation(callee(0));
    return SetResult(op, b().Add(Opcode::kCopyStart, operands(op), {}, known));
  }
  if (opcode == Opcode::kAsyncStart) {
    std::vector<Shape> inputs;
    for (InstructionId id : operands(op)) inputs.push_back(shape_of(id));
    const Shape whole[] = {shapes().Tuple(inputs), body.root().shape()};
    return SetResult(op, b().Add(Opcode::kAsyncStart, operands(op), {Builder::Calls(Attr::kCalls, callee(0))},
                                 known.valid() ? known : shapes().Tuple(whole)));
  }
  if (!work.valid() || work.operand_count() != count || body.parameter_count() != count) {
    return Error(op, "has a region that is not one operation on its arguments");
  }
  std::vector<InstructionId> inputs;  // in the order of the operation in the region
  for (int64_t i = 0; i < count; ++i) {
    const Instruction argument = OperandOf(work, i);
    if (argument.opcode() != Opcode::kParameter) {
      return Error(op, "has a region that is not one operation on its arguments");
    }
    inputs.push_back(operand(op, static_cast<size_t>(argument.parameter_number())));
  }
  std::vector<Shape> shapes_in;
  for (InstructionId id : inputs) shapes_in.push_back(shape_of(id));
  const Shape in = shapes_in.size() == 1 ? shapes_in[0] : shapes().Tuple(shapes_in);
  const Shape pair[] = {in, work.shape()};
  Attrs attrs;
  for (const AttrValue& value : work.attrs()) attrs.push_back(value);
  if (work.opcode() == Opcode::kAllReduce) {
    const Shape shape = known.valid() ? known : work.shape();
    module_->EraseComputation(callee(0));
    return SetResult(op, b().Add(Opcode::kAllReduceStart, inputs, attrs, shape));
  }
  if (OpcodeSet{Opcode::kAllGather, Opcode::kCollectivePermute}.Contains(work.opcode())) {
    const Opcode start =
        work.opcode() == Opcode::kAllGather ? Opcode::kAllGatherStart : Opcode::kCollectivePermuteStart;
    module_->EraseComputation(callee(0));
    return SetResult(op, b().Add(start, inputs, attrs, known.valid() ? known : shapes().Tuple(pair)));
  }
  // Any other one keeps its computation, whose parameters are the operands as they are given.
  shapes_in.clear();
  for (InstructionId id : operands(op)) shapes_in.push_back(shape_of(id));
  const Shape whole[] = {shapes().Tuple(shapes_in), work.shape()};
  return SetResult(
      op, b().Add(Opcode::kAsyncStart, operands(op), {Builder::Calls(Attr::kCalls, callee(0))}, shapes().Tuple(whole)));
}

absl::Status Converter::ConvertAsyncDone(const Op& op) {
  const Instruction start = module_->instruction(operand(op, 0));
  static constexpr std::pair<Opcode, Opcode> kDone[] = {
      {Opcode::kAllGatherStart, Opcode::kAllGatherDone},
      {Opcode::kAllReduceStart, Opcode::kAllReduceDone},
      {Opcode::kCollectivePermuteStart, Opcode::kCollectivePermuteDone},
      {Opcode::kAsyncStart, Opcode::kAsyncDone},
      {Opcode::kCopyStart, Opcode::kCopyDone}};
  std::vector<InstructionId> inputs = operands(op);
  const NodeId updates = Attribute(op, kAsyncUpdates);
  if (start.opcode() == Opcode::kAsyncStart && updates.valid() && nodes().kind(updates) == NodeKind::kArray) {
    for (NodeId text : nodes().children(updates)) {
      const Shape shape = nodes().kind(text) == NodeKind::kString ? ReadShape(nodes().text(text)) : Shape();
      const Result update = b().Add(Opcode::kAsyncUpdate, inputs, {}, shape.valid() ? shape : shape_of(inputs[0]));
      if (!update.ok()) return SetResult(op, update);
      inputs = {*update};
    }
  }
  for (const auto& [from, to] : kDone) {
    if (start.opcode() == from) return EmitTuple(op, to, inputs);
  }
  return Error(op, "has an operand that is not started by an asynchronous operation of its function");
}

}  // namespace hlokit::stablehlo
