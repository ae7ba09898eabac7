// SPDX-License-Identifier: Apache-2.0
// Control flow, calls, tuples, tokens, the host.
#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"
#include "parser/stablehlo/converter.h"

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
  }
  Attrs attrs;
  if (nodes().str(op.name) == "stablehlo.if" && branches == 2) {
    attrs = {Builder::Calls(Attr::kTrueComputation, callee(0)), Builder::Calls(Attr::kFalseComputation, callee(1))};
  } else {
    attrs = {b().CallsEach(Attr::kBranchComputations, frame().computations)};
  }
  return EmitTuple(op, Opcode::kConditional, inputs, attrs);
}

absl::Status Converter::ConvertWhile(const Op& op) {
  std::vector<InstructionId> state = operands(op);
  for (mlir::ValueId value : frame().captures[0]) state.push_back(values_[value.value]);
  const InstructionId init = state.size() == 1 ? state[0] : b().MakeTuple(state);
  const Result loop = b().Add(Opcode::kWhile, {init},
                              {Builder::Calls(Attr::kCondition, callee(0)), Builder::Calls(Attr::kBody, callee(1))});
  return state.size() == 1 ? op.result_count == 0 ? absl::OkStatus() : SetResult(op, loop)
                           : SetResults(op, loop, /*always_tuple=*/true);
}

absl::Status Converter::ConvertCall(const Op& op) {
  const NodeId symbol = Attribute(op, "callee");
  if (!symbol.valid()) return Error(op, "requires attribute 'callee'");
  const ComputationId called = computations_.at(functions_.at(std::string(nodes().text(symbol))).value);
  return EmitTuple(op, Opcode::kCall, operands(op), {Builder::Calls(Attr::kToApply, called)});
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

absl::Status Converter::ConvertTuple(const Op& op) { return SetResult(op, b().MakeTuple(operands(op))); }

absl::Status Converter::ConvertGetTupleElement(const Op& op) {
  return Emit(op, Opcode::kGetTupleElement, operands(op), {Int(Attr::kIndex, IntOf(op, "index"))});
}

absl::Status Converter::ConvertToken(const Op& op) { return Emit(op, Opcode::kAfterAll, operands(op)); }

absl::Status Converter::ConvertOptimizationBarrier(const Op& op) {
  if (op.operand_count == 0) return absl::OkStatus();
  if (op.operand_count == 1) return Emit(op, Opcode::kOptimizationBarrier, operands(op));
  const InstructionId tuple = b().MakeTuple(operands(op));
  return EmitTuple(op, Opcode::kOptimizationBarrier, {tuple});
}

// ---- the host ----

absl::Status Converter::ConvertInfeed(const Op& op) {
  if (op.result_count == 0) return Error(op, "has no token among its results");
  std::vector<Shape> data;
  for (size_t i = 0; i + 1 < op.result_count; ++i) {
    absl::StatusOr<Shape> shape = ResultShape(op, i);
    if (!shape.ok()) return shape.status();
    data.push_back(*shape);
  }
  const Shape elements[] = {shapes().Tuple(data), shapes().Token()};
  const Result infeed = b().Add(Opcode::kInfeed, operands(op),
                                {String(Attr::kInfeedConfig, StringOf(op, "infeed_config"))}, shapes().Tuple(elements));
  if (!infeed.ok()) return SetResult(op, infeed);
  if (absl::Status status = Annotate(op, *infeed); !status.ok()) return status;
  const InstructionId tuple = data.empty() ? InstructionId() : b().MakeElement(*infeed, 0);
  for (size_t i = 0; i < data.size(); ++i) {
    Bind(program_.result(op, i), b().MakeElement(tuple, static_cast<int64_t>(i)));
  }
  Bind(program_.result(op, data.size()), b().MakeElement(*infeed, 1));
  return absl::OkStatus();
}

absl::Status Converter::ConvertOutfeed(const Op& op) {
  if (op.operand_count == 0) return Error(op, "has no token");
  const std::vector<InstructionId> data = operands(op, 0, op.operand_count - 1);
  const InstructionId tuple = data.size() == 1 ? data[0] : b().MakeTuple(data);
  return Emit(op, Opcode::kOutfeed, {tuple, operand(op, op.operand_count - 1)},
              {{Attr::kOutfeedShape, shape_of(tuple).id().value},
               String(Attr::kOutfeedConfig, StringOf(op, "outfeed_config"))});
}

absl::Status Converter::ConvertSend(const Op& op) {
  if (op.operand_count == 0) return Error(op, "has no token");
  const std::vector<InstructionId> data = operands(op, 0, op.operand_count - 1);
  const InstructionId value = data.size() == 1 ? data[0] : b().MakeTuple(data);
  const InstructionId token = operand(op, op.operand_count - 1);
  Attrs attrs = {{Attr::kIsHostTransfer, IntOf(op, "is_host_transfer") != 0}};
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  const Shape elements[] = {shape_of(value), shapes().Scalar(ElementType::kU32), shapes().Token()};
  const Result send = b().Add(Opcode::kSend, {value, token}, attrs, shapes().Tuple(elements));
  if (!send.ok()) return SetResult(op, send);
  if (absl::Status status = Annotate(op, *send); !status.ok()) return status;
  return Emit(op, Opcode::kSendDone, {*send}, attrs);
}

absl::Status Converter::ConvertRecv(const Op& op) {
  if (op.result_count == 0) return Error(op, "has no token among its results");
  std::vector<Shape> data;
  for (size_t i = 0; i + 1 < op.result_count; ++i) {
    absl::StatusOr<Shape> shape = ResultShape(op, i);
    if (!shape.ok()) return shape.status();
    data.push_back(*shape);
  }
  const Shape value = data.size() == 1 ? data[0] : shapes().Tuple(data);
  Attrs attrs = {{Attr::kIsHostTransfer, IntOf(op, "is_host_transfer") != 0}};
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  const Shape started[] = {value, shapes().Scalar(ElementType::kU32), shapes().Token()};
  const Shape finished[] = {value, shapes().Token()};
  const Result recv = b().Add(Opcode::kRecv, operands(op), attrs, shapes().Tuple(started));
  if (!recv.ok()) return SetResult(op, recv);
  if (absl::Status status = Annotate(op, *recv); !status.ok()) return status;
  const Result done = b().Add(Opcode::kRecvDone, {*recv}, attrs, shapes().Tuple(finished));
  if (!done.ok()) return SetResult(op, done);
  if (absl::Status status = Annotate(op, *done); !status.ok()) return status;
  if (data.size() == 1) {
    Bind(program_.result(op, 0), b().MakeElement(*done, 0));
  } else if (!data.empty()) {
    const InstructionId tuple = b().MakeElement(*done, 0);
    for (size_t i = 0; i < data.size(); ++i) {
      Bind(program_.result(op, i), b().MakeElement(tuple, static_cast<int64_t>(i)));
    }
  }
  Bind(program_.result(op, data.size()), b().MakeElement(*done, 1));
  return absl::OkStatus();
}

absl::Status Converter::ConvertCustomCall(const Op& op) {
  Attrs attrs = {String(Attr::kCustomCallTarget, StringOf(op, "call_target_name"))};
  if (IntOf(op, "has_side_effect") != 0) attrs.push_back({Attr::kCustomCallHasSideEffect, 1});
  const int64_t version = IntOf(op, "api_version", 1);
  if (version < 0 || version > 4) return Error(op, "has an unknown API version");
  attrs.push_back({Attr::kApiVersion, static_cast<uint32_t>(version)});
  const NodeId config = Attribute(op, "backend_config");
  if (config.valid()) {
    const std::string text =
        nodes().kind(config) == NodeKind::kString ? std::string(nodes().text(config)) : mlir::ToText(nodes(), config);
    if (!text.empty()) attrs.push_back(String(Attr::kBackendConfig, text));
  }
  const NodeId called = Attribute(op, "called_computations");
  if (called.valid() && nodes().kind(called) == NodeKind::kArray && nodes().child_count(called) != 0) {
    std::vector<ComputationId> ids;
    for (NodeId symbol : nodes().children(called)) {
      const auto found = functions_.find(std::string(nodes().text(symbol)));
      if (found == functions_.end() || !computations_.contains(found->second.value)) {
        return Error(op, StrCat("calls @", nodes().text(symbol), ", which is not converted"));
      }
      ids.push_back(computations_.at(found->second.value));
    }
    attrs.push_back(b().CallsEach(Attr::kCalledComputations, ids));
  }
  // Layouts of operands and results, minor to major.
  const NodeId operand_layouts = Attribute(op, "operand_layouts"), result_layouts = Attribute(op, "result_layouts");
  absl::StatusOr<Shape> shape = ResultsShape(op);
  if (!shape.ok()) return shape.status();
  const auto with_layout = [&](Shape array, NodeId layout) {
    const std::optional<Ints> order = nodes().Integers(layout);
    if (!order || !array.IsArray() || static_cast<int64_t>(order->size()) != array.rank()) return array;
    return shapes().WithLayout(array, shapes().Layout(*order));
  };
  if (operand_layouts.valid() && nodes().kind(operand_layouts) == NodeKind::kArray) {
    Ints ids;
    for (size_t i = 0; i < op.operand_count && i < nodes().child_count(operand_layouts); ++i) {
      ids.push_back(with_layout(shape_of(operand(op, i)), nodes().child(operand_layouts, i)).id().value);
    }
    attrs.push_back(List(Attr::kOperandLayoutConstraints, ids));
  }
  if (result_layouts.valid() && nodes().kind(result_layouts) == NodeKind::kArray &&
      nodes().child_count(result_layouts) != 0) {
    if (op.result_count == 1 && shape->IsArray()) {
      *shape = with_layout(*shape, nodes().child(result_layouts, 0));
    } else if (shape->IsTuple()) {
      std::vector<Shape> elements(shape->elements().begin(), shape->elements().end());
      for (size_t i = 0; i < elements.size() && i < nodes().child_count(result_layouts); ++i) {
        elements[i] = with_layout(elements[i], nodes().child(result_layouts, i));
      }
      *shape = shapes().Tuple(elements);
    }
  }
  const NodeId aliases = Attribute(op, "output_operand_aliases");
  if (aliases.valid() && nodes().kind(aliases) == NodeKind::kArray) {
    Ints list;
    for (NodeId alias : nodes().children(aliases)) {
      const Ints output = FieldInts(alias, "output_tuple_indices"), input = FieldInts(alias, "operand_tuple_indices");
      list.push_back(static_cast<int64_t>(output.size()));
      list.insert(list.end(), output.begin(), output.end());
      list.push_back(nodes().IntegerValue(nodes().Entry(alias, "operand_index")).value_or(0));
      list.push_back(static_cast<int64_t>(input.size()));
      list.insert(list.end(), input.begin(), input.end());
    }
    if (!list.empty()) attrs.push_back(List(Attr::kOutputToOperandAliasing, list));
  }
  return SetResults(op, b().Add(Opcode::kCustomCall, operands(op), attrs, *shape));
}

absl::Status Converter::ConvertAsyncStart(const Op& op) { return ConvertNone(op); }
absl::Status Converter::ConvertAsyncDone(const Op& op) { return ConvertNone(op); }

}  // namespace hlokit::stablehlo
