// SPDX-License-Identifier: Apache-2.0
// Custom forms: prints the directives of operations.def.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "parser/mlir/operation_printer.h"

namespace hlokit::mlir {
namespace {

bool IsKeywordKind(AttributeKind kind) {
  return kind == AttributeKind::kEnum || kind == AttributeKind::kComparisonType;
}

}  // namespace

size_t OperationPrinter::OperandCount(const Operation& op, size_t index) const {
  const std::vector<ValueDefinition>& operands = op.definition->operands;
  if (!operands[index].variadic) return 1;
  // With one name for any number, the others are one operand each.
  return op.operand_count + 1 >= operands.size() ? op.operand_count + 1 - operands.size() : 0;
}

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
  if (d.variadic_regions && op.region_count != 0) return false;
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
          const BlockId block = m_.block(m_.regions_of(op)[0]);
          if (block.valid() && m_.blocks[block.value].argument_count != static_cast<uint32_t>(n.ints(type)[0]))
            return false;
          break;
        }
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
        default:
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
        if (kind != NodeKind::kVerbatim || n.text(value).starts_with("#")) return false;
        break;
      default:
        break;
    }
  }
  return true;
}

bool OperationPrinter::RunFormat(const Operation& op) {
  const OpDefinition& d = *op.definition;
  while (frames_.back().directive < d.format.size()) {
    const Directive& directive = d.format[frames_.back().directive];
    // A space before all but punctuation and what follows an opening bracket.
    const char last = out_.empty() ? ' ' : out_.back();
    const auto space = [&] {
      if (last != '(' && last != '[' && last != ' ' && last != '{') out_ += " ";
    };
    switch (directive.kind) {
      case Directive::Kind::kLiteral: {
        // The comma before operands of which there are none.
        const bool before_list = frames_.back().directive + 1 < d.format.size() &&
                                 d.format[frames_.back().directive + 1].kind == Directive::Kind::kOperand;
        if (before_list && directive.text == "," &&
            OperandCount(op, d.format[frames_.back().directive + 1].index) == 0) {
          frames_.back().directive += 2;
          continue;
        }
        const std::string_view punctuation = ",()[]{}";
        const bool bracket =
            directive.text.size() == 1 && punctuation.find(directive.text[0]) != std::string_view::npos;
        if (!bracket || directive.text == "{") space();
        out_ += directive.text;
        break;
      }
      case Directive::Kind::kOperand: {
        const size_t count = OperandCount(op, directive.index);
        if (count != 0) {
          space();
          Operands(m_.operands_of(op).subspan(frames_.back().operand, count));
          frames_.back().operand += count;
        }
        break;
      }
      case Directive::Kind::kAttribute:
        space();
        AttributeValue(op, d.attributes[directive.index]);
        break;
      case Directive::Kind::kDict:
        AttributeDictionary(op);
        break;
      case Directive::Kind::kOptional: {
        const AttributeDefinition& attribute = d.attributes[directive.index];
        const NodeId value = m_.attribute(op, attribute.name);
        if (!value.valid() || (attribute.has_default && IsDefault(attribute, value))) {
          frames_.back().directive = directive.end + 1;
          continue;
        }
        break;
      }
      case Directive::Kind::kEnd:
        break;
      case Directive::Kind::kSame:
        SameTypes(op);
        break;
      case Directive::Kind::kFunction:
        out_ += " : ";
        FunctionType(op);
        break;
      case Directive::Kind::kResults:
        out_ += " : ";
        Types(ResultsOf(op));
        break;
      case Directive::Kind::kOperands:
        if (op.operand_count != 0) {
          out_ += " : ";
          Types(m_.operands_of(op));
        }
        break;
      case Directive::Kind::kFirstOperand:
        out_ += " : ";
        Types(m_.operands_of(op).subspan(0, 1));
        break;
      case Directive::Kind::kArrow: {
        out_ += " : ";
        Types(m_.operands_of(op));
        out_ += " -> ";
        const bool list = op.result_count != 1;
        if (list) out_ += "(";
        Types(ResultsOf(op));
        if (list) out_ += ")";
        break;
      }
      case Directive::Kind::kCustom:
        if (!RunCustom(op, directive.custom)) return false;
        break;
    }
    ++frames_.back().directive;
  }
  return true;
}

void OperationPrinter::SameTypes(const Operation& op) {
  out_ += " : ";
  const NodeId type = op.result_count != 0 ? m_.type(m_.result(op)) : NodeId();
  bool same = op.result_count == 1;
  for (ValueId value : m_.operands_of(op)) same = same && m_.type(value) == type;
  if (same) {
    Type(type);
  } else {
    FunctionType(op);
  }
}

// ---- attributes ----

void OperationPrinter::IntegerList(const std::vector<int64_t>& values, bool booleans) {
  out_ += "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out_ += ", ";
    if (booleans) {
      out_ += values[i] != 0 ? "true" : "false";
    } else {
      StrAppend(&out_, values[i]);
    }
  }
  out_ += "]";
}

void OperationPrinter::AttributeValue(const Operation& op, const AttributeDefinition& attribute) {
  const NodeTable& n = m_.nodes;
  const NodeId value = m_.attribute(op, attribute.name);
  if (IsKeywordKind(attribute.kind)) {
    out_ += n.str(StringId(static_cast<uint32_t>(n.ints(value)[0])));
    return;
  }
  switch (attribute.kind) {
    case AttributeKind::kI64:
    case AttributeKind::kI32:
    case AttributeKind::kDimension:
    case AttributeKind::kPositive:
    case AttributeKind::kIndex32:
      StrAppend(&out_, n.ints(value)[0]);
      return;
    case AttributeKind::kDims:
    case AttributeKind::kBools:
      IntegerList(*n.Integers(value), attribute.kind == AttributeKind::kBools);
      return;
    case AttributeKind::kPrecisions: {
      out_ += "[";
      bool first = true;
      for (NodeId item : n.children(value)) {
        if (!first) out_ += ", ";
        first = false;
        out_ += n.str(StringId(static_cast<uint32_t>(n.ints(item)[0])));
      }
      out_ += "]";
      return;
    }
    case AttributeKind::kDotAlgorithm: {
      const std::string text = ToText(n, value);
      out_ += text.substr(text.find('<'));
      return;
    }
    case AttributeKind::kConvolution: {
      const std::string_view text = n.text(value);
      const size_t open = text.find('<');
      out_ += text.substr(open + 1, text.size() - open - 2);
      return;
    }
    default:
      AppendText(n, value, &out_);
  }
}

bool OperationPrinter::IsDefault(const AttributeDefinition& attribute, NodeId value) const {
  const std::string text = ToText(m_.nodes, value);
  return text == attribute.default_text || text == StrCat(attribute.default_text, " : i64") ||
         text == StrCat(attribute.default_text, " : i32");
}

void OperationPrinter::AttributeDictionary(const Operation& op, std::string_view keyword) {
  std::vector<Attribute> rest;
  for (const Attribute& a : m_.attributes_of(op)) {
    const std::string_view name = m_.nodes.str(a.name);
    const AttributeDefinition* const definition = op.definition->FindAttribute(name);
    if (definition != nullptr) {
      if (definition->has_default && IsDefault(*definition, a.value)) continue;
      if (definition->kind == AttributeKind::kAccuracy &&
          ToText(m_.nodes, a.value) == "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>") {
        continue;
      }
      bool placed = false;
      for (const Directive& d : op.definition->format) {
        if (d.kind == Directive::Kind::kAttribute) placed = placed || op.definition->attributes[d.index].name == name;
        if (d.kind != Directive::Kind::kCustom) continue;
        switch (d.custom) {
          case Custom::kModule:
            placed = placed || name == "sym_name";
            break;
          case Custom::kFunc:
            placed = placed || name != "no_inline";
            break;
          case Custom::kMesh:
          case Custom::kDirection:
          case Custom::kManual:
          case Custom::kNamed:
          case Custom::kBits:
          case Custom::kRanges:
          case Custom::kReduce:
            placed = true;
            break;
          case Custom::kDotDims:
            placed = placed || name == "dot_dimension_numbers";
            break;
          case Custom::kWindow:
            placed = placed || (name.starts_with("window_") || name == "padding" || name.ends_with("_dilation"));
            break;
          case Custom::kCustomCall:
            placed = placed || name == "call_target_name";
            break;
          case Custom::kScan:
            placed = placed || name == "dimension" || name.ends_with("SegmentSizes");
            break;
          default:
            break;
        }
      }
      if (placed) continue;
    }
    rest.push_back(a);
  }
  if (rest.empty()) return;
  StrAppend(&out_, " ", keyword, keyword.empty() ? "" : " ");
  Dictionary(rest);
}

// ---- syntaxes of their own ----

void OperationPrinter::CustomDotDims(const Operation& op) {
  const NodeId numbers = m_.attribute(op, "dot_dimension_numbers");
  const auto list = [&](std::string_view name) {
    return m_.nodes.Integers(m_.nodes.Entry(numbers, name)).value_or(std::vector<int64_t>());
  };
  const std::vector<int64_t> lhs = list("lhs_batching_dimensions"), rhs = list("rhs_batching_dimensions");
  if (!lhs.empty() || !rhs.empty()) {
    out_ += " batching_dims = ";
    IntegerList(lhs);
    out_ += " x ";
    IntegerList(rhs);
    out_ += ",";
  }
  out_ += " contracting_dims = ";
  IntegerList(list("lhs_contracting_dimensions"));
  out_ += " x ";
  IntegerList(list("rhs_contracting_dimensions"));
}

void OperationPrinter::CustomWindow(const Operation& op) {
  bool first = true;
  const auto key = [&](std::string_view name) {
    StrAppend(&out_, first ? "" : ", ", name, " = ");
    first = false;
  };
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {{"window_strides", "stride"},
                                                                      {"padding", "pad"},
                                                                      {"lhs_dilation", "lhs_dilate"},
                                                                      {"rhs_dilation", "rhs_dilate"},
                                                                      {"window_reversal", "reverse"}};
  for (const auto& [name, text] : kParts) {
    const NodeId value = m_.attribute(op, name);
    if (!value.valid()) continue;
    const std::vector<int64_t> list = m_.nodes.Integers(value).value_or(std::vector<int64_t>());
    key(text);
    if (name != "padding") {
      IntegerList(list, name == "window_reversal");
      continue;
    }
    out_ += "[";
    for (size_t i = 0; i + 1 < list.size(); i += 2) {
      StrAppend(&out_, i == 0 ? "" : ", ", "[", list[i], ", ", list[i + 1], "]");
    }
    out_ += "]";
  }
}

bool OperationPrinter::RunCustom(const Operation& op, Custom custom) {
  const NodeTable& n = m_.nodes;
  Frame& frame = frames_.back();
  const auto symbol = [&] {
    const NodeId name = m_.attribute(op, "sym_name");
    if (!name.valid()) return;
    out_ += " ";
    AppendSymbol(n.text(name), &out_);
  };
  switch (custom) {
    case Custom::kNone:
    case Custom::kValueType:
    case Custom::kUi32:
      if (custom == Custom::kUi32) {
        out_ += " : ";
        Types(ResultsOf(op));
      }
      return true;
    case Custom::kModule:
      if (frame.region == 0) {
        ++frame.region;
        symbol();
        AttributeDictionary(op, "attributes");
        out_ += " ";
        OpenRegion(m_.regions_of(op)[0], false);
        return false;
      }
      CloseRegion();
      return true;
    case Custom::kFunc:
      return CustomFunc(op);
    case Custom::kTo:
      out_ += " : ";
      if (out_.ends_with(": : ")) out_.resize(out_.size() - 2);
      Types(m_.operands_of(op));
      out_ += " to ";
      Types(ResultsOf(op));
      return true;
    case Custom::kExtractType:
    case Custom::kInsertType:
      out_ += " : ";
      Types(custom == Custom::kInsertType ? absl::Span<const ValueId>(ResultsOf(op))
                                          : m_.operands_of(op).subspan(0, 1));
      return true;
    case Custom::kOperandTypes:
      out_ += " : ";
      Types(m_.operands_of(op));
      return true;
    case Custom::kMesh:
      symbol();
      out_ += " = ";
      AppendText(n, m_.attribute(op, "mesh"), &out_);
      return true;
    case Custom::kDirection: {
      const NodeId value = m_.attribute(op, "allowed_direction");
      out_ += " allowed_direction=";
      if (n.kind(value) == NodeKind::kEnum) out_ += n.str(StringId(static_cast<uint32_t>(n.ints(value)[0])));
      return true;
    }
    case Custom::kManual:
    case Custom::kNamed: {
      if (frame.region == 0) {
        ++frame.region;
        if (custom == Custom::kNamed) {
          out_ += "<";
          AppendText(n, m_.attribute(op, "name"), &out_);
          out_ += ">";
        }
        out_ += "(";
        Operands(m_.operands_of(op));
        out_ += ")";
        for (std::string_view name : {"in_shardings", "out_shardings", "manual_axes"}) {
          if (!m_.attribute(op, name).valid()) continue;
          StrAppend(&out_, " ", name, "=");
          AppendText(n, m_.attribute(op, name), &out_);
        }
        out_ += " (";
        const BlockId block = m_.block(m_.regions_of(op)[0]);
        for (uint32_t i = 0; block.valid() && i < m_.blocks[block.value].argument_count; ++i) {
          if (i != 0) out_ += ", ";
          Argument(m_.argument(m_.blocks[block.value], i));
        }
        out_ += ") ";
        OpenRegion(m_.regions_of(op)[0], false);
        return false;
      }
      CloseRegion();
      AttributeDictionary(op);
      out_ += " : ";
      FunctionType(op);
      return true;
    }
    case Custom::kBits:
      StrAppend(&out_, " e", n.IntegerValue(m_.attribute(op, "exponent_bits")).value_or(0), "m",
                n.IntegerValue(m_.attribute(op, "mantissa_bits")).value_or(0));
      return true;
    case Custom::kRanges: {
      const std::vector<int64_t> starts = *n.Integers(m_.attribute(op, "start_indices")),
                                 limits = *n.Integers(m_.attribute(op, "limit_indices")),
                                 strides = *n.Integers(m_.attribute(op, "strides"));
      out_ += " [";
      for (size_t i = 0; i < starts.size(); ++i) {
        StrAppend(&out_, i == 0 ? "" : ", ", starts[i], ":", limits[i]);
        if (strides[i] != 1) StrAppend(&out_, ":", strides[i]);
      }
      out_ += "]";
      return true;
    }
    case Custom::kSelect: {
      const absl::Span<const ValueId> in = m_.operands_of(op);
      out_ += " : ";
      if (m_.type(in[1]) == m_.type(in[2]) && m_.type(in[1]) == m_.type(m_.result(op))) {
        Types(in.subspan(0, 2));
      } else {
        FunctionType(op);
      }
      return true;
    }
    case Custom::kComplex: {
      // The parts have the type of the parts of the result.
      const NodeId type = m_.type(m_.result(op));
      out_ += " : ";
      bool same = n.kind(type) == NodeKind::kTensorType && n.kind(n.child(type, 0)) == NodeKind::kComplexType;
      for (ValueId value : m_.operands_of(op)) {
        const NodeId part = m_.type(value);
        same = same && n.kind(part) == NodeKind::kTensorType && n.ints(part) == n.ints(type) &&
               n.child(part, 0) == n.child(n.child(type, 0), 0);
      }
      if (same) {
        Type(type);
      } else {
        FunctionType(op);
      }
      return true;
    }
    case Custom::kDotDims:
      CustomDotDims(op);
      return true;
    case Custom::kWindow:
      CustomWindow(op);
      return true;
    case Custom::kReduce:
      return CustomReduce(op);
    case Custom::kTuple: {
      const NodeId type = m_.type(m_.result(op));
      bool same = n.kind(type) == NodeKind::kTupleType && n.child_count(type) == op.operand_count;
      for (size_t i = 0; same && i < op.operand_count; ++i) same = n.child(type, i) == m_.type(m_.operands_of(op)[i]);
      out_ += " : ";
      if (same) {
        Type(type);
      } else {
        FunctionType(op);
      }
      return true;
    }
    case Custom::kSameTypes:
      SameTypes(op);
      return true;
    case Custom::kBarrier:
      if (op.operand_count == 0) {
        out_ += "()";
        AttributeDictionary(op);
        return true;
      }
      out_ += " ";
      Operands(m_.operands_of(op));
      AttributeDictionary(op);
      out_ += " : ";
      Types(m_.operands_of(op));
      return true;
    case Custom::kCustomCall:
      out_ += " ";
      AppendSymbol(n.text(m_.attribute(op, "call_target_name")), &out_);
      out_ += "(";
      Operands(m_.operands_of(op));
      out_ += ")";
      return true;
    case Custom::kWhile: {
      if (frame.region == 0) {
        const Block& block = m_.blocks[m_.block(m_.regions_of(op)[0]).value];
        out_ += "(";
        for (uint32_t i = 0; i < op.operand_count; ++i) {
          if (i != 0) out_ += ", ";
          StrAppend(&out_, names_.Use(m_.argument(block, i)), " = ", names_.Use(m_.operands_of(op)[i]));
        }
        out_ += ")";
        if (op.operand_count != 0) {
          out_ += " : ";
          Types(m_.operands_of(op));
        }
        AttributeDictionary(op, "attributes");
        out_ += "\n";
        out_.append(static_cast<size_t>(indent_), ' ');
        out_ += "cond ";
      } else {
        CloseRegion();
        if (frame.region == 2) return true;
        out_ += " do ";
      }
      OpenRegion(m_.regions_of(op)[frame.region++], false);
      return false;
    }
    case Custom::kScan: {
      if (frame.region == 0) {
        const std::vector<int64_t> segments = *n.Integers(m_.attribute(op, "operandSegmentSizes"));
        const auto inputs = static_cast<size_t>(segments[0]);
        ++frame.region;
        out_ += "(";
        Operands(m_.operands_of(op).subspan(0, inputs));
        out_ += ") inits (";
        Operands(m_.operands_of(op).subspan(inputs));
        StrAppend(&out_, ") dimension=", n.IntegerValue(m_.attribute(op, "dimension")).value_or(0));
        AttributeDictionary(op, "attributes");
        out_ += " ";
        OpenRegion(m_.regions_of(op)[0], true);
        return false;
      }
      CloseRegion();
      out_ += " : ";
      FunctionType(op);
      return true;
    }
  }
  return true;
}

bool OperationPrinter::CustomFunc(const Operation& op) {
  const NodeTable& n = m_.nodes;
  if (frames_.back().region != 0) {
    CloseRegion();
    return true;
  }
  ++frames_.back().region;
  const NodeId visibility = m_.attribute(op, "sym_visibility");
  if (visibility.valid()) StrAppend(&out_, " ", n.text(visibility));
  out_ += " ";
  AppendSymbol(n.text(m_.attribute(op, "sym_name")), &out_);
  const NodeId type = m_.attribute(op, "function_type");
  const auto inputs = static_cast<size_t>(n.ints(type)[0]);
  const size_t results = n.child_count(type) - inputs;
  const BlockId block = m_.block(m_.regions_of(op)[0]);
  const auto dictionary = [&](std::string_view list, size_t i) {
    const NodeId attributes = m_.attribute(op, list);
    if (!attributes.valid() || i >= n.child_count(attributes)) return false;
    const NodeId entry = n.child(attributes, i);
    if (n.child_count(entry) == 0) return false;
    out_ += " ";
    AppendText(n, entry, &out_);
    return true;
  };
  out_ += "(";
  for (size_t i = 0; i < inputs; ++i) {
    if (i != 0) out_ += ", ";
    const ValueId value = block.valid() ? m_.argument(m_.blocks[block.value], i) : ValueId();
    if (value.valid()) StrAppend(&out_, names_.Use(value), ": ");
    Type(n.child(type, i));
    dictionary("arg_attrs", i);
    if (options_.locations && value.valid() && m_.values[value.value].location.valid()) {
      out_ += " ";
      AppendText(n, m_.values[value.value].location, &out_);
    }
  }
  out_ += ")";
  if (results != 0) {
    out_ += " -> ";
    bool plain = results == 1 && n.kind(n.child(type, inputs)) != NodeKind::kFunctionType;
    const NodeId attributes = m_.attribute(op, "res_attrs");
    plain =
        plain && !(attributes.valid() && n.child_count(attributes) != 0 && n.child_count(n.child(attributes, 0)) != 0);
    if (!plain) out_ += "(";
    for (size_t i = 0; i < results; ++i) {
      if (i != 0) out_ += ", ";
      Type(n.child(type, inputs + i));
      dictionary("res_attrs", i);
    }
    if (!plain) out_ += ")";
  }
  AttributeDictionary(op, "attributes");
  if (!block.valid()) return true;
  out_ += " ";
  OpenRegion(m_.regions_of(op)[0], false);
  return false;
}

// One commutative operation of the two arguments, in order, whose result is returned.
bool OperationPrinter::IsShortReducer(const Operation& op, std::string_view* inner) const {
  if (op.operand_count != 2) return false;
  const NodeTable& n = m_.nodes;
  const Block& block = m_.blocks[m_.block(m_.regions_of(op)[0]).value];
  if (!block.first.valid()) return false;
  const Operation& applied = m_.op(block.first);
  if (!applied.next.valid() || m_.op(applied.next).next.valid()) return false;
  const Operation& returned = m_.op(applied.next);
  *inner = n.str(applied.name);
  static constexpr std::string_view kCommutative[] = {"stablehlo.add",     "stablehlo.multiply", "stablehlo.maximum",
                                                      "stablehlo.minimum", "stablehlo.and",      "stablehlo.or",
                                                      "stablehlo.xor"};
  if (std::find(std::begin(kCommutative), std::end(kCommutative), *inner) == std::end(kCommutative)) return false;
  if (applied.attribute_count != 0 || applied.operand_count != 2 || applied.result_count != 1) return false;
  if (n.str(returned.name) != "stablehlo.return" || returned.operand_count != 1 || returned.attribute_count != 0)
    return false;
  if (m_.operands_of(returned)[0] != m_.result(applied)) return false;
  const NodeId input = m_.type(m_.operands_of(op)[0]);
  if (n.kind(input) != NodeKind::kTensorType) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (m_.operands_of(applied)[i] != m_.argument(block, i)) return false;
    const NodeId type = m_.type(m_.argument(block, i));
    if (n.kind(type) != NodeKind::kTensorType || !n.ints(type).empty() || n.child_count(type) != 1 ||
        n.child(type, 0) != n.child(input, 0)) {
      return false;
    }
  }
  return m_.type(m_.result(applied)) == m_.type(m_.argument(block, 0));
}

bool OperationPrinter::CustomReduce(const Operation& op) {
  if (frames_.back().region != 0) {
    CloseRegion();
    return true;
  }
  ++frames_.back().region;
  const size_t pairs = op.operand_count / 2;
  for (size_t i = 0; i < pairs; ++i) {
    StrAppend(&out_, i == 0 ? "(" : ", (", names_.Use(m_.operands_of(op)[i]),
              " init: ", names_.Use(m_.operands_of(op)[pairs + i]), ")");
  }
  std::string_view inner;
  const bool is_short = IsShortReducer(op, &inner);
  if (is_short) StrAppend(&out_, " applies ", inner);
  out_ += " across dimensions = ";
  IntegerList(*m_.nodes.Integers(m_.attribute(op, "dimensions")));
  AttributeDictionary(op);
  out_ += " : ";
  FunctionType(op);
  if (is_short) return true;
  out_ += "\n";
  out_.append(static_cast<size_t>(indent_) + 1, ' ');
  out_ += "reducer";
  const Block& block = m_.blocks[m_.block(m_.regions_of(op)[0]).value];
  for (size_t i = 0; i < pairs; ++i) {
    out_ += i == 0 ? "(" : " (";
    Argument(m_.argument(block, i));
    out_ += ", ";
    Argument(m_.argument(block, pairs + i));
    out_ += ")";
  }
  out_ += "  ";
  OpenRegion(m_.regions_of(op)[0], false);
  return false;
}

}  // namespace hlokit::mlir
