// SPDX-License-Identifier: Apache-2.0
// Operations of the sdy dialect, as XLA exports them from Shardy: a manual computation is called, between custom calls
// that take values apart and together; what moves data between shardings is a copy.
#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"
#include "parser/stablehlo/import/converter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;

namespace {

// Returns a sharding of one value in the form that shardings of the results of an operation have.
std::string PerValue(std::string_view sharding) {
  const size_t bracket = std::min(sharding.find('<'), sharding.size());
  return StrCat("#sdy.sharding_per_value<[", sharding.substr(bracket), "]>");
}

// Returns the directions that a barrier lets pass, as XLA writes them; "" for an unknown word.
std::string_view DirectionText(std::string_view direction) {
  if (direction == "NONE") return "0 : i32";
  if (direction == "FORWARD") return "1 : i32";
  if (direction == "BACKWARD") return "2 : i32";
  return direction == "BOTH" ? "3 : i32" : "";
}

}  // namespace

absl::Status Converter::ConvertInlined(const Op& op) {
  const mlir::BlockId id = program_.block(program_.regions_of(op)[0]);
  if (!id.valid()) return Error(op, "has an empty region");
  const mlir::Block& block = program_.blocks[id.value];
  if (block.argument_count != op.operand_count) return Error(op, "has another number of arguments than operands");
  std::vector<InstructionId> values = operands(op);
  if (absl::Status status = ConstrainAll(op, "in_shardings", &values); !status.ok()) return status;
  for (size_t i = 0; i < values.size(); ++i) Bind(program_.argument(block, i), values[i]);
  frame().inlined.push_back(frame().op);
  frame().op = block.first;
  return absl::OkStatus();
}

absl::Status Converter::ConvertInlinedReturn(const Op& op) {
  if (frame().inlined.empty()) return ConvertReturn(op);  // of a manual computation
  const Op& owner = program_.op(frame().inlined.back());
  frame().inlined.pop_back();
  std::vector<InstructionId> values = operands(op);
  if (values.size() != owner.result_count) return Error(op, "has another number of operands than results");
  if (absl::Status status = ConstrainAll(owner, "out_shardings", &values); !status.ok()) return status;
  for (size_t i = 0; i < values.size(); ++i) Bind(program_.result(owner, i), values[i]);
  frame().op = owner.next;
  return absl::OkStatus();
}

absl::Status Converter::ConvertManualComputation(const Op& op) {
  const NodeId in = Attribute(op, "in_shardings"), out = Attribute(op, "out_shardings"),
               axes = Attribute(op, "manual_axes");
  if (!in.valid() || !out.valid() || !axes.valid()) {
    return Error(op, "requires attributes 'in_shardings', 'out_shardings' and 'manual_axes'");
  }
  const mlir::Block& block = program_.blocks[program_.block(program_.regions_of(op)[0]).value];
  if (block.argument_count != op.operand_count) return Error(op, "has another number of arguments than operands");
  for (const auto& [name, shardings, count] :
       {std::tuple("in_shardings", in, op.operand_count), std::tuple("out_shardings", out, op.result_count)}) {
    const absl::StatusOr<std::vector<std::string>> list =
        HloShardingsOf(mlir::ToText(nodes(), shardings), meshes_, &device_budget_);
    if (!list.ok()) return Error(op, std::string(list.status().message()));
    if (list->size() != count) return Error(op, StrCat("has another number of ", name, " than values"));
  }
  const auto frontend = [&](std::string_view key, NodeId shardings) {
    std::vector<FrontendAttribute> entries = {
        {context().strings.Intern("xla.sdy.manual_axes"), context().strings.Intern(mlir::ToText(nodes(), axes))},
        {context().strings.Intern(key), context().strings.Intern(mlir::ToText(nodes(), shardings))}};
    return AttrValue{Attr::kFrontendAttributes, EncodeFrontendAttributes(&context(), std::move(entries)).value};
  };
  const auto call = [&](std::string_view target, const std::vector<InstructionId>& values, AttrValue attributes,
                        Shape shape) {
    return b().Add(Opcode::kCustomCall, values,
                   {String(Attr::kCustomCallTarget, target), {Attr::kCustomCallHasSideEffect, 1}, attributes}, shape);
  };
  // One value is the result itself, several are in a tuple.
  const auto elements = [&](InstructionId tuple, size_t count) {
    std::vector<InstructionId> values;
    for (size_t i = 0; i < count; ++i) {
      values.push_back(count == 1 ? tuple : b().MakeElement(tuple, static_cast<int64_t>(i)));
    }
    return values;
  };
  const Computation body = module_->computation(callee(0));
  std::vector<InstructionId> values = operands(op);
  if (!values.empty()) {
    std::vector<Shape> local;
    for (int64_t i = 0; i < body.parameter_count(); ++i) local.push_back(body.parameter(i).shape());
    const Result made = call("xla.sdy.GlobalToLocalShape", values, frontend("xla.sdy.in_shardings", in),
                             local.size() == 1 ? local[0] : shapes().Tuple(local));
    if (!made.ok()) return made.status();
    values = elements(*made, values.size());
  }
  std::vector<FrontendAttribute> inlineable = {
      {context().strings.Intern("inlineable"), context().strings.Intern("xla_late")}};
  const Result called =
      b().Add(Opcode::kCall, values,
              {Builder::Calls(Attr::kToApply, callee(0)),
               {Attr::kFrontendAttributes, EncodeFrontendAttributes(&context(), std::move(inlineable)).value}},
              body.root().shape());
  if (!called.ok() || op.result_count == 0) return called.status();
  absl::StatusOr<Shape> global = ResultsShape(op);
  if (!global.ok()) return global.status();
  return SetResults(op, call("xla.sdy.LocalToGlobalShape", elements(*called, op.result_count),
                             frontend("xla.sdy.out_shardings", out), *global));
}

absl::Status Converter::ConvertShardingConstraint(const Op& op) {
  const NodeId sharding = Attribute(op, "sharding");
  if (!sharding.valid()) return Error(op, "requires attribute 'sharding'");
  return SetResult(op, Constrained(operand(op, 0), mlir::ToText(nodes(), sharding)));
}

Converter::Result Converter::Constrained(InstructionId value, std::string_view sharding) {
  const Result made =
      b().Add(Opcode::kCustomCall, {value}, {String(Attr::kCustomCallTarget, "Sharding")}, shape_of(value));
  if (!made.ok()) return made;
  if (absl::Status status = SetSdySharding(*made, PerValue(sharding)); !status.ok()) return status;
  return made;
}

absl::Status Converter::ConstrainAll(const Op& op, std::string_view attribute, std::vector<InstructionId>* values) {
  const NodeId node = Attribute(op, attribute);
  if (!node.valid()) return absl::OkStatus();
  const std::vector<std::string> shardings = PartsOfShardings(mlir::ToText(nodes(), node));
  if (shardings.size() != values->size()) {
    return Error(op, StrCat("has another number of ", attribute, " than values"));
  }
  for (size_t i = 0; i < shardings.size(); ++i) {
    if (shardings[i].find('"') == std::string::npos && shardings[i].find('?') != std::string::npos)
      continue;  // says nothing
    const Result made = Constrained((*values)[i], shardings[i]);
    if (!made.ok()) return Error(op, std::string(made.status().message()));
    (*values)[i] = *made;
  }
  return absl::OkStatus();
}

absl::Status Converter::ConvertDataFlowEdge(const Op& op) {
  const NodeId sharding = Attribute(op, "sharding");
  if (!sharding.valid()) return ConvertNothing(op);
  return SetResult(op, Constrained(operand(op, 0), mlir::ToText(nodes(), sharding)));
}

absl::Status Converter::ConvertPropagationBarrier(const Op& op) {
  const std::string_view text = DirectionText(EnumOf(op, "allowed_direction"));
  if (text.empty()) return Error(op, "requires attribute 'allowed_direction': NONE, FORWARD, BACKWARD or BOTH");
  const Result made =
      b().Add(Opcode::kCustomCall, operands(op), {String(Attr::kCustomCallTarget, "xla.sdy.PropagationBarrier")},
              shape_of(operand(op, 0)));
  if (made.ok()) AddFrontend(*made, "xla.sdy.allowed_direction", text);
  return SetResult(op, made);
}

absl::Status Converter::ConvertShardingGroup(const Op& op) {
  const NodeId group = Attribute(op, "group_id");
  if (!group.valid()) return Error(op, "requires attribute 'group_id'");
  const Result made =
      b().Add(Opcode::kCustomCall, operands(op),
              {String(Attr::kCustomCallTarget, "xla.sdy.ShardingGroup"), {Attr::kCustomCallHasSideEffect, 1}},
              shapes().Tuple({}));
  if (!made.ok()) return made.status();
  AddFrontend(*made, "xla.sdy.sharding_group_id", mlir::ToText(nodes(), group));
  return absl::OkStatus();
}

absl::Status Converter::ConvertResharding(const Op& op) {
  NodeId sharding = Attribute(op, "out_sharding");
  if (!sharding.valid()) sharding = Attribute(op, "sharding");
  if (!sharding.valid()) return Error(op, "requires attribute 'out_sharding'");
  const Result made = b().Add(Opcode::kCopy, operands(op), {}, shape_of(operand(op, 0)));
  if (!made.ok()) return SetResult(op, made);
  if (absl::Status status = SetSdySharding(*made, mlir::ToText(nodes(), sharding)); !status.ok()) {
    return Error(op, std::string(status.message()));
  }
  return SetResult(op, made);
}

}  // namespace hlokit::stablehlo
