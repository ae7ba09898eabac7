// SPDX-License-Identifier: Apache-2.0
// Custom forms: prints the directives of operations.def.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "parser/mlir/operation_printer.h"

namespace hlokit::mlir {

size_t OperationPrinter::OperandCount(const Operation& op, size_t index) const {
  const std::vector<ValueDefinition>& operands = op.definition->operands;
  if (!operands[index].variadic) return 1;
  // With one name for any number, the others are one operand each.
  return op.operand_count + 1 >= operands.size() ? op.operand_count + 1 - operands.size() : 0;
}

bool OperationPrinter::RunFormat(const Operation& op) {
  const OpDefinition& d = *op.definition;
  while (frames_.back().directive < d.format.size()) {
    const Directive& directive = d.format[frames_.back().directive];
    // A space before all but punctuation and what follows an opening bracket.
    const char last = out_.empty() ? ' ' : out_.back();
    // The operations of sdy have none around `=`.
    const bool tight = d.dialect == "sdy";
    const auto space = [&] {
      if (last != '(' && last != '[' && last != ' ' && last != '{' && (last != '=' || !tight)) out_ += " ";
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
        if ((!bracket && (directive.text != "=" || !tight)) || directive.text == "{") space();
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
  switch (SyntaxOf(attribute.kind)) {
    case AttributeSyntax::kKeyword:
    case AttributeSyntax::kComparisonType:
      out_ += n.str(StringId(static_cast<uint32_t>(n.ints(value)[0])));
      return;
    case AttributeSyntax::kNumber64:
    case AttributeSyntax::kNumber32:
      StrAppend(&out_, n.ints(value)[0]);
      return;
    case AttributeSyntax::kIntegers:
      IntegerList(*n.Integers(value));
      return;
    case AttributeSyntax::kBooleans:
      IntegerList(*n.Integers(value), /*booleans=*/true);
      return;
    case AttributeSyntax::kPrecisions: {
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
    case AttributeSyntax::kDotAlgorithm: {
      const std::string text = ToText(n, value);
      out_ += text.substr(text.find('<'));
      return;
    }
    case AttributeSyntax::kConvolution: {
      const std::string_view text = n.text(value);
      const size_t open = text.find('<');
      out_ += text.substr(open + 1, text.size() - open - 2);
      return;
    }
    case AttributeSyntax::kAxes:
      Axes(value);
      return;
    case AttributeSyntax::kFull:
    case AttributeSyntax::kBool:
    case AttributeSyntax::kString:
      AppendText(n, value, &out_);
  }
}

// Tolerances that are missing are zero.
static bool IsDefaultAccuracy(const NodeTable& nodes, NodeId value) {
  if (nodes.kind(value) != NodeKind::kFields) return false;
  for (NodeId child : nodes.children(value)) {
    const NodeKind kind = nodes.kind(child);
    const bool number = kind == NodeKind::kInteger || kind == NodeKind::kFloat;
    if (number ? nodes.ints(child)[0] != 0 : kind != NodeKind::kEnum || !ToText(nodes, child).ends_with("<DEFAULT>")) {
      return false;
    }
  }
  return true;
}

bool OperationPrinter::IsDefault(const AttributeDefinition& attribute, NodeId value) const {
  if (!m_.nodes.IsShort(value)) return false;
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
      if (definition->kind == AttributeKind::kAccuracy && IsDefaultAccuracy(m_.nodes, a.value)) continue;
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
          case Custom::kNone:
          case Custom::kValueType:
          case Custom::kTo:
          case Custom::kExtractType:
          case Custom::kInsertType:
          case Custom::kOperandTypes:
          case Custom::kSelect:
          case Custom::kComplex:
          case Custom::kTuple:
          case Custom::kSameTypes:
          case Custom::kUi32:
          case Custom::kBarrier:
          case Custom::kWhile:
          case Custom::kRegions:
          case Custom::kFor:
          case Custom::kIndirect:
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

}  // namespace hlokit::mlir
