// SPDX-License-Identifier: Apache-2.0
// Custom forms: runs the directives of operations.def.
#include "parser/mlir/operation_parser.h"

namespace hlokit::mlir {

OperationParser::Flow OperationParser::RunFormat() {
  const OpDefinition& definition = *op().definition;
  while (op().directive < definition.format.size()) {
    if (op().directive == definition.tail && TakeKnownTail()) break;
    const Directive& directive = definition.format[op().directive];
    switch (directive.kind) {
      case Directive::Kind::kOptional:
        if (!SkipOptional(definition, &op().directive)) ++op().directive;
        continue;
      case Directive::Kind::kEnd:
        break;
      case Directive::Kind::kLiteral: {
        // The comma before operands of which there may be none.
        const bool before_list = op().directive + 1 < definition.format.size() &&
                                 definition.format[op().directive + 1].kind == Directive::Kind::kOperand &&
                                 definition.operands[definition.format[op().directive + 1].index].variadic;
        if (before_list && directive.text == ",") {
          const char* const before = in_.at();
          if (!in_.TryConsume(',') || in_.Peek() != '%') {
            in_.set_at(before);
            op().directive += 2;
            continue;
          }
          break;
        }
        const char first = directive.text[0];
        const bool word = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
        if (word ? !in_.TryConsumeWord(directive.text) : !in_.TryConsume(directive.text)) {
          ErrorCustom(StrCat("expected '", directive.text, "', found ", in_.DescribeNext()));
          return Flow::kError;
        }
        break;
      }
      case Directive::Kind::kCustom: {
        const Flow flow = RunCustom(directive.custom);
        if (flow != Flow::kDone) return flow;
        break;
      }
      case Directive::Kind::kOperand:
      case Directive::Kind::kAttribute:
      case Directive::Kind::kDict:
      case Directive::Kind::kSame:
      case Directive::Kind::kFunction:
      case Directive::Kind::kResults:
      case Directive::Kind::kOperands:
      case Directive::Kind::kFirstOperand:
      case Directive::Kind::kArrow:
        if (!RunDirective(directive)) return Flow::kError;
    }
    ++op().directive;
  }
  return Flow::kDone;
}

// Skips a group that is absent, as the next words show.
bool OperationParser::SkipOptional(const OpDefinition& definition, size_t* directive) {
  const size_t begin = *directive;
  const char* const before = in_.at();
  bool present = true;
  for (size_t i = begin + 1; i < definition.format[begin].end && present; ++i) {
    const Directive& d = definition.format[i];
    if (d.kind != Directive::Kind::kLiteral) break;
    const char first = d.text[0];
    present = (first >= 'a' && first <= 'z') ? in_.TryConsumeWord(d.text) : in_.TryConsume(d.text);
  }
  in_.set_at(before);
  if (present) return false;
  *directive = definition.format[begin].end + 1;
  return true;
}

bool OperationParser::RunDirective(const Directive& directive) {
  const OpDefinition& definition = *op().definition;
  switch (directive.kind) {
    case Directive::Kind::kOperand:
      return definition.operands[directive.index].variadic ? ParseOperands(false) : ParseOperand();
    case Directive::Kind::kAttribute:
      return ParseAttributeValue(definition.attributes[directive.index]);
    case Directive::Kind::kDict:
      return in_.Peek() != '{' || ParseAttributeDictionary();
    case Directive::Kind::kSame:
      return ParseSameTypes();
    case Directive::Kind::kFunction:
      return in_.Expect(':', "and a function type") && ParseFunctionType();
    case Directive::Kind::kResults:
      return in_.Expect(':', "and a type") && ParseTypeList(&result_types_);
    case Directive::Kind::kOperands: {
      // `return` alone has no types.
      if (in_.Peek() != ':') {
        op().has_types = true;
        return true;
      }
      op().has_types = true;
      return in_.Expect(':') && ParseTypeList(&operand_types_);
    }
    case Directive::Kind::kFirstOperand: {
      if (!in_.Expect(':', "and a type")) return false;
      const NodeId type = nodes_.ParseType();
      result_types_.push_back(m_.nodes.Make(NodeKind::kIndexType));
      return type.valid();
    }
    case Directive::Kind::kArrow:
      return ParseArrowTypes();
    case Directive::Kind::kLiteral:
    case Directive::Kind::kOptional:
    case Directive::Kind::kEnd:
    case Directive::Kind::kCustom:
      break;
  }
  return in_.ErrorHere("malformed operation");
}

// ---- types ----

bool OperationParser::ParseSameTypes() {
  if (!in_.Expect(':', "and a type")) return false;
  const NodeId type = nodes_.ParseType();
  if (!type.valid()) return false;
  if (m_.nodes.kind(type) == NodeKind::kFunctionType) return SetFunctionType(type);
  op().has_types = true;
  for (size_t i = operand_count(); i > 0; --i) operand_types_.push_back(type);
  result_types_.push_back(type);
  return true;
}

bool OperationParser::ParseArrowTypes() {
  if (!in_.Expect(':', "and types")) return false;
  const bool list = in_.TryConsume('(');
  if (!list || in_.Peek() != ')') {
    if (!ParseTypeList(&operand_types_)) return false;
  }
  if (list && !in_.Expect(')', "after types")) return false;
  op().has_types = true;
  if (!in_.Expect("->", "before the types of results")) return false;
  if (!in_.TryConsume('(')) return ParseTypeList(&result_types_);
  return ParseTypeList(&result_types_) && in_.Expect(')', "after types");
}

// ---- values of attributes ----

bool OperationParser::IntegerList(std::vector<int64_t>* values) {
  if (!in_.Expect('[', "before a list of integers")) return false;
  if (in_.TryConsume(']')) return true;
  do {
    const std::string_view word = in_.PeekWord();
    if (word == "true" || word == "false") {
      values->push_back(word == "true");
      in_.Word();
      continue;
    }
    int64_t value = 0;
    if (!in_.Integer(&value)) return false;
    values->push_back(value);
  } while (in_.TryConsume(','));
  return in_.Expect(']', "after a list of integers");
}

NodeId OperationParser::ParseKeywordEnum(std::string_view mnemonic) {
  const std::string_view word = in_.Word();
  if (word.empty()) {
    ErrorCustom(StrCat("expected a keyword of ", mnemonic, ", found ", in_.DescribeNext()));
    return {};
  }
  return m_.nodes.Enum(StrCat(op().definition->dialect, ".", mnemonic), word);
}

// The value of an attribute: `max {"x"}`, `[{"x"}, {}]`, `<@mesh, [{"x"}]>`
NodeId OperationParser::ParseVerbatimAxes(std::string_view name) {
  in_.Skip();
  const char* const begin = in_.at();
  in_.Word();
  const char open = in_.Peek();
  const char close = open == '[' ? ']' : open == '{' ? '}' : open == '<' ? '>' : '\0';
  std::string_view body;
  if (close == '\0') {
    in_.ErrorHere(StrCat("expected axes or a sharding, found ", in_.DescribeNext()));
    return {};
  }
  in_.TryConsume(open);
  if (!in_.Balanced(close, &body)) return {};
  // As in the generic form: #sdy.sharding<@mesh, ...>, #sdy<list_of_axis_ref_lists[{"x"}]>.
  const std::string text = OnOneLine(in_.TextSince(begin));
  if (name == "mesh" || name.ends_with("sharding")) {
    return m_.nodes.Make(NodeKind::kVerbatim, StrCat("#sdy.", name == "mesh" ? "mesh" : "sharding", text), {}, {});
  }
  if (name.ends_with("_shardings")) {
    return m_.nodes.Make(NodeKind::kVerbatim, StrCat("#sdy.sharding_per_value<", text, ">"), {}, {});
  }
  const std::string_view mnemonic = name == "manual_axes" ? "manual_axes"
                                    : name == "params"    ? "all_to_all_param_list"
                                    : open == '['         ? "list_of_axis_ref_lists"
                                                          : "axis_ref_list";
  return m_.nodes.Make(NodeKind::kVerbatim, StrCat("#sdy<", mnemonic, text, ">"), {}, {});
}

NodeId OperationParser::ParseBool() {
  const std::string_view word = in_.Word();
  if (word == "true" || word == "false") return m_.nodes.Bool(word == "true");
  ErrorCustom("expected true or false");
  return {};
}

// `[0, 1]`, or the attribute in full.
NodeId OperationParser::ParseIntegers(int64_t bits) {
  if (in_.PeekWord() == "array" || in_.PeekWord() == "dense") return nodes_.ParseAttribute();
  std::vector<int64_t> list;
  return IntegerList(&list) ? m_.nodes.DenseArray(list, bits) : NodeId();
}

NodeId OperationParser::ParsePrecisions() {
  NodeTable& nodes = m_.nodes;
  if (!in_.Expect('[', "before a precision config")) return {};
  std::vector<NodeId> list;
  if (!in_.TryConsume(']')) {
    do {
      list.push_back(ParseKeywordEnum("precision"));
      if (!list.back().valid()) return {};
      const std::string_view word = nodes.str(StringId(static_cast<uint32_t>(nodes.ints(list.back())[0])));
      if (!IsPrecision(word)) {
        ErrorCustom(
            "failed to parse StableHLO_PrecisionAttr parameter 'value' which is to be a "
            "`::mlir::stablehlo::Precision`");
        return {};
      }
    } while (in_.TryConsume(','));
    if (!in_.Expect(']', "after a precision config")) return {};
  }
  return nodes.Make(NodeKind::kArray, "", {}, list);
}

// [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
NodeId OperationParser::ParseConvolutionNumbers() {
  std::string text;
  std::string_view part;
  for (int i = 0; i < 3; ++i) {
    if (i == 1 && !in_.TryConsume('x')) {
      in_.ErrorHere("expected 'x' in dimension numbers");
      return {};
    }
    if (i == 2 && !in_.Expect("->", "in dimension numbers")) return {};
    if (!in_.Expect('[', "in dimension numbers") || !in_.Balanced(']', &part)) return {};
    StrAppend(&text, i == 1 ? "x" : i == 2 ? "->" : "", "[", OnOneLine(part), "]");
  }
  return m_.nodes.Make(NodeKind::kVerbatim, StrCat("#stablehlo.conv<", text, ">"), {}, {});
}

bool OperationParser::ParseAttributeValue(const AttributeDefinition& attribute) {
  NodeTable& nodes = m_.nodes;
  NodeId value;
  switch (SyntaxOf(attribute.kind)) {
    case AttributeSyntax::kNumber64:
      value = nodes_.ParseNumber(nodes.IntegerType(64));
      break;
    case AttributeSyntax::kNumber32:
      value = nodes_.ParseNumber(nodes.IntegerType(32));
      break;
    case AttributeSyntax::kBool:
      value = ParseBool();
      break;
    case AttributeSyntax::kIntegers:
      value = ParseIntegers(64);
      break;
    case AttributeSyntax::kBooleans:
      value = ParseIntegers(1);
      break;
    case AttributeSyntax::kString: {
      std::string text;
      if (!in_.String(&text)) return false;
      value = nodes.String(text);
      break;
    }
    case AttributeSyntax::kKeyword:
      value = ParseKeywordEnum(attribute.name);
      break;
    case AttributeSyntax::kComparisonType:
      value = ParseKeywordEnum("comparison_type");
      break;
    case AttributeSyntax::kPrecisions:
      value = ParsePrecisions();
      break;
    case AttributeSyntax::kDotAlgorithm:
      if (!in_.Expect('<', "before a dot algorithm")) return false;
      value = nodes_.ParseFields(StrCat(op().definition->dialect, ".dot_algorithm"));
      break;
    case AttributeSyntax::kConvolution:
      value = ParseConvolutionNumbers();
      break;
    case AttributeSyntax::kAxes:
      value = ParseVerbatimAxes(attribute.name);
      break;
    case AttributeSyntax::kFull:
      value = nodes_.ParseAttribute();
      break;
  }
  return AddAttribute(attribute.name, value, true);
}

}  // namespace hlokit::mlir
