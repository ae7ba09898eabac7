// SPDX-License-Identifier: Apache-2.0
// Whether an operation has a custom form.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "parser/mlir/operation_printer.h"

namespace hlokit::mlir {

// Returns true if the custom form can say all of the operation: the attributes that it needs are there, in the form it
// has for them, and the types are those that it leaves out.
bool OperationPrinter::CanPrintCustom(const Operation& op) const {
  if (op.definition == nullptr || op.definition->format.empty() || op.successor_count != 0) return false;
  const OpDefinition& d = *op.definition;
  const NodeTable& n = m_.nodes;
  if (std::any_of(m_.operands_of(op).begin(), m_.operands_of(op).end(), [](ValueId v) { return !v.valid(); })) {
    return false;
  }
  const bool variadic_operands =
      std::any_of(d.operands.begin(), d.operands.end(), [](const ValueDefinition& v) { return v.variadic; });
  if (variadic_operands ? op.operand_count + 1 < d.operands.size() : op.operand_count != d.operands.size())
    return false;
  const bool variadic_results =
      std::any_of(d.results.begin(), d.results.end(), [](const ValueDefinition& v) { return v.variadic; });
  if (!variadic_results && op.result_count != d.results.size()) return false;
  if (!d.variadic_regions && op.region_count != d.regions.size()) return false;
  bool in_group = false;
  for (const Directive& directive : d.format) {
    in_group = directive.kind == Directive::Kind::kOptional || (in_group && directive.kind != Directive::Kind::kEnd);
    if (directive.kind == Directive::Kind::kCustom) {
      switch (directive.custom) {
        case Custom::kValueType: {
          const NodeId value = m_.attribute(op, "value");
          if (!value.valid() || n.child_count(value) == 0 || n.child(value, 0) != m_.type(m_.result(op))) return false;
          break;
        }
        case Custom::kRanges: {
          const auto starts = n.Integers(m_.attribute(op, "start_indices"));
          const auto limits = n.Integers(m_.attribute(op, "limit_indices"));
          const auto strides = n.Integers(m_.attribute(op, "strides"));
          if (!starts || !limits || !strides || starts->size() != limits->size() || starts->size() != strides->size()) {
            return false;
          }
          break;
        }
        case Custom::kBits:
          if (!m_.attribute(op, "exponent_bits").valid() || !m_.attribute(op, "mantissa_bits").valid()) return false;
          break;
        case Custom::kDotDims: {
          const NodeId numbers = m_.attribute(op, "dot_dimension_numbers");
          if (!numbers.valid() || n.kind(numbers) != NodeKind::kFields) return false;
          break;
        }
        case Custom::kWindow: {
          const NodeId padding = m_.attribute(op, "padding");
          if (padding.valid() && !n.Integers(padding)) return false;
          break;
        }
        case Custom::kReduce: {
          if (op.operand_count == 0 || op.operand_count % 2 != 0 || !n.Integers(m_.attribute(op, "dimensions")))
            return false;
          const BlockId block = m_.block(m_.regions_of(op)[0]);
          if (!block.valid() || m_.blocks[block.value].argument_count != op.operand_count) return false;
          if (m_.blocks[block.value].next.valid()) return false;
          break;
        }
        case Custom::kWhile: {
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
          break;
        }
        case Custom::kBarrier:
          if (op.operand_count != op.result_count) return false;
          for (uint32_t i = 0; i < op.operand_count; ++i) {
            if (m_.type(m_.operands_of(op)[i]) != m_.type(m_.result(op, i))) return false;
          }
          break;
        case Custom::kFunc: {
          const NodeId type = m_.attribute(op, "function_type");
          if (!type.valid() || n.kind(type) != NodeKind::kFunctionType || !m_.attribute(op, "sym_name").valid()) {
            return false;
          }
          const NodeId visibility = m_.attribute(op, "sym_visibility");
          if (visibility.valid() && n.text(visibility) != "public" && n.text(visibility) != "private" &&
              n.text(visibility) != "nested") {
            return false;
          }
          const BlockId block = m_.block(m_.regions_of(op)[0]);
          if (block.valid() && m_.blocks[block.value].argument_count != static_cast<uint32_t>(n.ints(type)[0]))
            return false;
          break;
        }
        case Custom::kFor:
          return false;  // the generic form says the same
        case Custom::kScan: {
          const auto segments = n.Integers(m_.attribute(op, "operandSegmentSizes"));
          if (!segments || segments->size() != 2 || (*segments)[0] + (*segments)[1] != op.operand_count) return false;
          const auto results = n.Integers(m_.attribute(op, "resultSegmentSizes"));
          if (!results || results->size() != 2 || (*results)[1] != (*segments)[1]) return false;
          break;
        }
        case Custom::kCustomCall: {
          const NodeId name = m_.attribute(op, "call_target_name");
          if (!name.valid() || n.kind(name) != NodeKind::kString) return false;
          break;
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
          break;
      }
    }
    if (directive.kind != Directive::Kind::kAttribute) continue;
    const AttributeDefinition& attribute = d.attributes[directive.index];
    const NodeId value = m_.attribute(op, attribute.name);
    if (!value.valid()) {
      if (in_group) continue;
      return false;
    }
    const NodeKind kind = n.kind(value);
    switch (attribute.kind) {
      case AttributeKind::kI64:
      case AttributeKind::kI32:
      case AttributeKind::kDimension:
      case AttributeKind::kPositive:
      case AttributeKind::kPositive32:
      case AttributeKind::kIndex32:
      case AttributeKind::kBool:
        if (kind != NodeKind::kInteger) return false;
        break;
      case AttributeKind::kDims:
      case AttributeKind::kBools:
        if (kind != NodeKind::kDenseArray) return false;
        break;
      case AttributeKind::kEnum:
      case AttributeKind::kComparisonType:
        if (kind != NodeKind::kEnum) return false;
        break;
      case AttributeKind::kPrecisions:
        if (kind != NodeKind::kArray) return false;
        for (NodeId item : n.children(value)) {
          if (n.kind(item) != NodeKind::kEnum) return false;
        }
        break;
      case AttributeKind::kDotAlgorithm:
        if (kind != NodeKind::kFields) return false;
        break;
      case AttributeKind::kConvolution:
        if (kind != NodeKind::kVerbatim || !n.text(value).starts_with("#stablehlo.conv<[")) return false;
        break;
      case AttributeKind::kAxes:
        if (kind != NodeKind::kVerbatim || !n.text(value).starts_with("#sdy")) return false;
        break;
      case AttributeKind::kAny:
      case AttributeKind::kString:
      case AttributeKind::kSymbol:
      case AttributeKind::kF32:
      case AttributeKind::kUnit:
      case AttributeKind::kArray:
      case AttributeKind::kDictionary:
      case AttributeKind::kElements:
      case AttributeKind::kType:
      case AttributeKind::kTranspose:
      case AttributeKind::kAccuracy:
      case AttributeKind::kDot:
      case AttributeKind::kRaggedDot:
      case AttributeKind::kGather:
      case AttributeKind::kScatter:
      case AttributeKind::kChannel:
      case AttributeKind::kGroups:
        break;
    }
  }
  return true;
}

}  // namespace hlokit::mlir
