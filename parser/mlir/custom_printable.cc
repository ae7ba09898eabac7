// SPDX-License-Identifier: Apache-2.0
// Whether an operation has a custom form.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "parser/mlir/operation_printer.h"

namespace hlokit::mlir {

bool OperationPrinter::HasCountsOfFormat(const Operation& op) const {
  const OpDefinition& d = *op.definition;
  const auto variadic = [](const std::vector<ValueDefinition>& values) {
    return std::any_of(values.begin(), values.end(), [](const ValueDefinition& v) { return v.variadic; });
  };
  if (variadic(d.operands) ? op.operand_count + 1 < d.operands.size() : op.operand_count != d.operands.size())
    return false;
  if (!variadic(d.results) && op.result_count != d.results.size()) return false;
  return d.variadic_regions || op.region_count == d.regions.size();
}

bool OperationPrinter::CanPrintRanges(const Operation& op) const {
  const auto starts = m_.nodes.Integers(m_.attribute(op, "start_indices"));
  const auto limits = m_.nodes.Integers(m_.attribute(op, "limit_indices"));
  const auto strides = m_.nodes.Integers(m_.attribute(op, "strides"));
  return starts && limits && strides && starts->size() == limits->size() && starts->size() == strides->size();
}

bool OperationPrinter::CanPrintFunc(const Operation& op) const {
  const NodeTable& n = m_.nodes;
  const NodeId type = m_.attribute(op, "function_type");
  if (!type.valid() || n.kind(type) != NodeKind::kFunctionType || !m_.attribute(op, "sym_name").valid()) return false;
  const NodeId visibility = m_.attribute(op, "sym_visibility");
  if (visibility.valid() && n.text(visibility) != "public" && n.text(visibility) != "private" &&
      n.text(visibility) != "nested") {
    return false;
  }
  const BlockId block = m_.block(m_.regions_of(op)[0]);
  return !block.valid() || m_.blocks[block.value].argument_count == static_cast<uint32_t>(n.ints(type)[0]);
}

bool OperationPrinter::CanPrintReduce(const Operation& op) const {
  if (op.operand_count == 0 || op.operand_count % 2 != 0 || !m_.nodes.Integers(m_.attribute(op, "dimensions")))
    return false;
  const BlockId block = m_.block(m_.regions_of(op)[0]);
  if (!block.valid() || m_.blocks[block.value].argument_count != op.operand_count) return false;
  return !m_.blocks[block.value].next.valid();
}

bool OperationPrinter::CanPrintWhile(const Operation& op) const {
  if (op.operand_count != op.result_count) return false;
  for (RegionId region : m_.regions_of(op)) {
    const BlockId block = m_.block(region);
    if (!block.valid()) return false;
    const Block& b = m_.blocks[block.value];
    if (b.argument_count != op.operand_count || b.next.valid()) return false;
    for (uint32_t i = 0; i < op.operand_count; ++i) {
      const NodeId type = m_.type(m_.operands_of(op)[i]);
      if (m_.type(m_.argument(b, i)) != type || m_.type(m_.result(op, i)) != type) return false;
    }
  }
  return true;
}

bool OperationPrinter::CanPrintBarrier(const Operation& op) const {
  if (op.operand_count != op.result_count) return false;
  for (uint32_t i = 0; i < op.operand_count; ++i) {
    if (m_.type(m_.operands_of(op)[i]) != m_.type(m_.result(op, i))) return false;
  }
  return true;
}

bool OperationPrinter::CanPrintScan(const Operation& op) const {
  const auto segments = m_.nodes.Integers(m_.attribute(op, "operandSegmentSizes"));
  if (!segments || segments->size() != 2 || (*segments)[0] + (*segments)[1] != op.operand_count) return false;
  const auto results = m_.nodes.Integers(m_.attribute(op, "resultSegmentSizes"));
  return results && results->size() == 2 && (*results)[1] == (*segments)[1];
}

bool OperationPrinter::CanPrintSyntax(const Operation& op, Custom custom) const {
  const NodeTable& n = m_.nodes;
  switch (custom) {
    case Custom::kValueType: {
      const NodeId value = m_.attribute(op, "value");
      return value.valid() && n.child_count(value) != 0 && n.child(value, 0) == m_.type(m_.result(op));
    }
    case Custom::kRanges:
      return CanPrintRanges(op);
    case Custom::kBits:
      return m_.attribute(op, "exponent_bits").valid() && m_.attribute(op, "mantissa_bits").valid();
    case Custom::kDotDims: {
      const NodeId numbers = m_.attribute(op, "dot_dimension_numbers");
      return numbers.valid() && n.kind(numbers) == NodeKind::kFields;
    }
    case Custom::kWindow: {
      const NodeId padding = m_.attribute(op, "padding");
      return !padding.valid() || n.Integers(padding);
    }
    case Custom::kReduce:
      return CanPrintReduce(op);
    case Custom::kWhile:
      return CanPrintWhile(op);
    case Custom::kBarrier:
      return CanPrintBarrier(op);
    case Custom::kFunc:
      return CanPrintFunc(op);
    case Custom::kFor:
      return false;  // the generic form says the same
    case Custom::kScan:
      return CanPrintScan(op);
    case Custom::kCustomCall: {
      const NodeId name = m_.attribute(op, "call_target_name");
      return name.valid() && n.kind(name) == NodeKind::kString;
    }
    case Custom::kNone:
    case Custom::kModule:
    case Custom::kTo:
    case Custom::kExtractType:
    case Custom::kInsertType:
    case Custom::kOperandTypes:
    case Custom::kMesh:
    case Custom::kDirection:
    case Custom::kManual:
    case Custom::kNamed:
    case Custom::kSelect:
    case Custom::kComplex:
    case Custom::kTuple:
    case Custom::kSameTypes:
    case Custom::kUi32:
    case Custom::kRegions:
    case Custom::kIndirect:
      return true;
  }
  return true;
}

bool OperationPrinter::CanPrintAttribute(AttributeKind kind, NodeId value) const {
  const NodeTable& n = m_.nodes;
  const NodeKind node = n.kind(value);
  switch (SyntaxOf(kind)) {
    case AttributeSyntax::kNumber64:
    case AttributeSyntax::kNumber32:
    case AttributeSyntax::kBool:
      return node == NodeKind::kInteger;
    case AttributeSyntax::kIntegers:
    case AttributeSyntax::kBooleans:
      return node == NodeKind::kDenseArray;
    case AttributeSyntax::kKeyword:
    case AttributeSyntax::kComparisonType:
      return node == NodeKind::kEnum;
    case AttributeSyntax::kPrecisions: {
      const auto is_enum = [&](NodeId item) { return n.kind(item) == NodeKind::kEnum; };
      const std::vector<NodeId> items = n.children(value);
      return node == NodeKind::kArray && std::all_of(items.begin(), items.end(), is_enum);
    }
    case AttributeSyntax::kDotAlgorithm:
      return node == NodeKind::kFields;
    case AttributeSyntax::kConvolution:
      return node == NodeKind::kVerbatim && n.text(value).starts_with("#stablehlo.conv<[");
    case AttributeSyntax::kAxes:
      return node == NodeKind::kVerbatim && n.text(value).starts_with("#sdy");
    case AttributeSyntax::kFull:
    case AttributeSyntax::kString:
      return true;
  }
  return true;
}

bool OperationPrinter::CanPrintCustom(const Operation& op) const {
  if (op.definition == nullptr || op.definition->format.empty() || op.successor_count != 0) return false;
  const absl::Span<const ValueId> operands = m_.operands_of(op);
  if (std::any_of(operands.begin(), operands.end(), [](ValueId v) { return !v.valid(); })) return false;
  if (!HasCountsOfFormat(op)) return false;
  bool in_group = false;
  for (const Directive& directive : op.definition->format) {
    in_group = directive.kind == Directive::Kind::kOptional || (in_group && directive.kind != Directive::Kind::kEnd);
    if (directive.kind == Directive::Kind::kCustom && !CanPrintSyntax(op, directive.custom)) return false;
    if (directive.kind != Directive::Kind::kAttribute) continue;
    const AttributeDefinition& attribute = op.definition->attributes[directive.index];
    const NodeId value = m_.attribute(op, attribute.name);
    if (value.valid() ? !CanPrintAttribute(attribute.kind, value) : !in_group) return false;
  }
  return true;
}

}  // namespace hlokit::mlir
