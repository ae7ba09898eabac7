// SPDX-License-Identifier: Apache-2.0
// Operations of the sdy dialect, as XLA exports them from Shardy: a manual computation becomes part of the computation
// around it, between custom calls that take values apart and together; what moves data between shardings is a copy.
#include "ir/core/str_cat.h"
#include "parser/stablehlo/converter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;

bool Converter::IsInlined(std::string_view name) {
  return name == "sdy.manual_computation" || name == "sdy.named_computation";
}

absl::StatusOr<std::vector<std::string>> Converter::ShardingsOf(const Op& op, std::string_view name, bool manual) {
  const NodeId shardings = Attribute(op, name), axes = Attribute(op, "manual_axes");
  if (!shardings.valid() || !axes.valid())
    return Error(op, StrCat("requires attributes '", name, "' and 'manual_axes'"));
  return HloShardingsOf(mlir::ToText(nodes(), shardings), manual ? mlir::ToText(nodes(), axes) : "", meshes_,
                        &device_budget_);
}

absl::Status Converter::ConvertInlined(const Op& op) {
  const mlir::BlockId id = program_.block(program_.regions_of(op)[0]);
  if (!id.valid()) return Error(op, "has an empty region");
  const mlir::Block& block = program_.blocks[id.value];
  if (block.argument_count != op.operand_count) return Error(op, "has another number of arguments than operands");
  std::vector<InstructionId> values = operands(op);
  if (nodes().str(op.name) == "sdy.manual_computation") {
    absl::StatusOr<std::vector<std::string>> outer = ShardingsOf(op, "in_shardings", false);
    absl::StatusOr<std::vector<std::string>> inner = ShardingsOf(op, "in_shardings", true);
    for (const auto* list : {&outer, &inner}) {
      if (!list->ok()) return Error(op, std::string(list->status().message()));
      if ((*list)->size() != values.size()) return Error(op, "has another number of in_shardings than operands");
    }
    for (size_t i = 0; i < values.size(); ++i) {
      absl::StatusOr<Shape> shape = ShapeOfType(program_.type(program_.argument(block, i)));
      if (!shape.ok()) return shape.status();
      const Result copy = b().Add(Opcode::kCopy, {values[i]}, {}, shape_of(values[i]));
      if (!copy.ok()) return copy.status();
      if (absl::Status status = SetSharding(*copy, (*outer)[i]); !status.ok()) return status;
      const Result part =
          b().Add(Opcode::kCustomCall, {*copy}, {String(Attr::kCustomCallTarget, "SPMDFullToShardShape")}, *shape);
      if (!part.ok()) return part.status();
      if (absl::Status status = SetSharding(*part, (*inner)[i]); !status.ok()) return status;
      values[i] = *part;
    }
  }
  for (size_t i = 0; i < values.size(); ++i) Bind(program_.argument(block, i), values[i]);
  frame().inlined.push_back(frame().op);
  frame().op = block.first;
  return absl::OkStatus();
}

absl::Status Converter::ConvertInlinedReturn(const Op& op) {
  if (frame().inlined.empty()) return Error(op, "ends no computation of the sdy dialect");
  const Op& owner = program_.op(frame().inlined.back());
  frame().inlined.pop_back();
  std::vector<InstructionId> values = operands(op);
  if (values.size() != owner.result_count) return Error(op, "has another number of operands than results");
  if (nodes().str(owner.name) == "sdy.manual_computation") {
    absl::StatusOr<std::vector<std::string>> outer = ShardingsOf(owner, "out_shardings", false);
    absl::StatusOr<std::vector<std::string>> inner = ShardingsOf(owner, "out_shardings", true);
    for (const auto* list : {&outer, &inner}) {
      if (!list->ok()) return Error(owner, std::string(list->status().message()));
      if ((*list)->size() != values.size()) return Error(owner, "has another number of out_shardings than results");
    }
    for (size_t i = 0; i < values.size(); ++i) {
      absl::StatusOr<Shape> shape = ResultShape(owner, i);
      if (!shape.ok()) return shape.status();
      const Result copy = b().Add(Opcode::kCopy, {values[i]}, {}, shape_of(values[i]));
      if (!copy.ok()) return copy.status();
      if (absl::Status status = SetSharding(*copy, (*inner)[i]); !status.ok()) return status;
      const Result whole =
          b().Add(Opcode::kCustomCall, {*copy}, {String(Attr::kCustomCallTarget, "SPMDShardToFullShape")}, *shape);
      if (!whole.ok()) return whole.status();
      if (absl::Status status = SetSharding(*whole, (*outer)[i]); !status.ok()) return status;
      values[i] = *whole;
    }
  }
  for (size_t i = 0; i < values.size(); ++i) Bind(program_.result(owner, i), values[i]);
  frame().op = owner.next;
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
