// SPDX-License-Identifier: Apache-2.0
// Parts of custom forms with a syntax of their own (custom_syntax.def).
#include <charconv>

#include "parser/mlir/operation_parser.h"

namespace hlokit::mlir {

OperationParser::Flow OperationParser::RunCustom(Custom custom) {
  const auto flow = [](bool good) { return good ? Flow::kDone : Flow::kError; };
  switch (custom) {
    case Custom::kNone:
      return Flow::kDone;
    case Custom::kModule:
      return CustomModule();
    case Custom::kFunc:
      return CustomFunc();
    case Custom::kValueType:
      return flow(CustomValueType());
    case Custom::kTo:
      return flow(CustomTo());
    case Custom::kExtractType:
      return flow(CustomTensorType(/*of_result=*/false));
    case Custom::kInsertType:
      return flow(CustomTensorType(/*of_result=*/true));
    case Custom::kOperandTypes:
      return flow(CustomOperandTypes());
    case Custom::kMesh:
      return flow(CustomMesh());
    case Custom::kDirection:
      return flow(CustomDirection());
    case Custom::kManual:
      return CustomManual(false);
    case Custom::kNamed:
      return CustomManual(true);
    case Custom::kBits:
      return flow(CustomBits());
    case Custom::kRanges:
      return flow(CustomRanges());
    case Custom::kSelect:
      return flow(CustomSelect());
    case Custom::kComplex:
      return flow(CustomComplex());
    case Custom::kDotDims:
      return flow(CustomDotDims());
    case Custom::kWindow:
      return flow(CustomWindow());
    case Custom::kReduce:
      return CustomReduce();
    case Custom::kTuple:
      return flow(CustomTuple());
    case Custom::kSameTypes:
      return flow(ParseSameTypes());
    case Custom::kUi32:
      return flow(CustomUi32());
    case Custom::kBarrier:
      return flow(CustomBarrier());
    case Custom::kCustomCall:
      return flow(CustomCallTarget());
    case Custom::kWhile:
      return CustomWhile();
    case Custom::kScan:
      return CustomScan();
    case Custom::kFor:
      return CustomFor();
    case Custom::kIndirect:
      return flow(CustomIndirect());
    case Custom::kRegions:
      return CustomRegions();
  }
  return Flow::kError;
}

// ---- types ----

bool OperationParser::CustomValueType() {
  const NodeId value = attributes_.back().value;  // in front of the type only the value stands
  const NodeKind kind = m_.nodes.kind(value);
  if (kind != NodeKind::kDense && kind != NodeKind::kDenseText && kind != NodeKind::kDenseResource &&
      kind != NodeKind::kInteger && kind != NodeKind::kFloat) {
    return ErrorCustom("expected a value with a type");
  }
  result_types_.push_back(m_.nodes.child(value, 0));
  op().has_types = true;
  return true;
}

bool OperationParser::CustomTo() {
  if (!ParseTypeList(&operand_types_)) return false;
  if (!in_.TryConsumeWord("to")) return in_.ErrorHere("expected 'to'");
  op().has_types = true;
  return ParseTypeList(&result_types_);
}

bool OperationParser::CustomTensorType(bool of_result) {
  if (!in_.Expect(':', "and a type")) return false;
  const NodeId type = nodes_.ParseType();
  if (!type.valid()) return false;
  if (m_.nodes.kind(type) != NodeKind::kTensorType) return ErrorCustom("expected a tensor type");
  result_types_.push_back(of_result ? type : m_.nodes.child(type, 0));
  return true;
}

bool OperationParser::CustomOperandTypes() {
  if (!in_.Expect(':', "and types") || !ParseTypeList(&operand_types_)) return false;
  op().has_types = true;
  result_types_.push_back(m_.nodes.Make(NodeKind::kDialectType, "shape.witness", {}, {}));
  return true;
}

bool OperationParser::CustomTuple() {
  if (!in_.Expect(':', "and a type")) return false;
  const NodeId type = nodes_.ParseType();
  if (!type.valid()) return false;
  if (m_.nodes.kind(type) == NodeKind::kFunctionType) return SetFunctionType(type);
  if (m_.nodes.kind(type) != NodeKind::kTupleType) return ErrorCustom("expected tuple type");
  for (NodeId element : m_.nodes.children(type)) operand_types_.push_back(element);
  op().has_types = true;
  result_types_.push_back(type);
  return true;
}

bool OperationParser::CustomUi32() {
  NodeId type = m_.nodes.Tensor({}, m_.nodes.IntegerType(32, Signedness::kUnsigned));
  if (in_.TryConsume(':')) {
    type = nodes_.ParseType();
    if (!type.valid()) return false;
  }
  result_types_.push_back(type);
  return true;
}

bool OperationParser::CustomIndirect() {
  if (!in_.Expect(':', "and a function type")) return false;
  const NodeId type = nodes_.ParseType();
  if (!type.valid()) return false;
  if (m_.nodes.kind(type) != NodeKind::kFunctionType) return ErrorCustom("expected function type");
  operand_types_.push_back(type);
  return SetFunctionType(type);
}

bool OperationParser::CustomBarrier() {
  op().has_types = true;
  if (in_.TryConsume('(')) return in_.Expect(')') && (in_.Peek() != '{' || ParseAttributeDictionary());
  if (!ParseOperands(true) || (in_.Peek() == '{' && !ParseAttributeDictionary())) return false;
  if (!in_.Expect(':', "and types")) return false;
  const size_t first = operand_types_.size();
  if (!ParseTypeList(&operand_types_)) return false;
  for (size_t i = first; i < operand_types_.size(); ++i) result_types_.push_back(operand_types_[i]);
  return true;
}

// ---- Shardy ----

bool OperationParser::CustomMesh() {
  std::string name;
  if (!SymbolName(&name) || !AddAttribute("sym_name", m_.nodes.String(name), true)) return false;
  if (!in_.Expect('=', "before a mesh")) return false;
  return AddAttribute("mesh", ParseVerbatimAxes("mesh"), true);
}

bool OperationParser::CustomDirection() {
  if (!in_.TryConsumeWord("allowed_direction") || !in_.Expect('=')) {
    return in_.ErrorHere("expected 'allowed_direction='");
  }
  const std::string_view word = in_.Word();
  return AddAttribute("allowed_direction", m_.nodes.Enum("sdy.propagation_direction", word), true);
}

// ---- module and func ----

bool OperationParser::SymbolName(std::string* name) {
  if (!in_.TryConsume('@'))
    return in_.ErrorHere(StrCat("expected valid '@'-identifier for symbol name, found ", in_.DescribeNext()));
  if (*in_.at() == '"') return in_.String(name);
  name->assign(in_.SuffixName());
  return !name->empty() || in_.ErrorHere("expected symbol name after '@'");
}

OperationParser::Flow OperationParser::CustomModule() {
  if (op().state == 1) {
    return Flow::kDone;
  }
  if (in_.Peek() == '@') {
    std::string name;
    if (!SymbolName(&name) || !AddAttribute("sym_name", m_.nodes.String(name), true)) return Flow::kError;
  }
  if (in_.TryConsumeWord("attributes") && !ParseAttributeDictionary()) return Flow::kError;
  if (!in_.Expect('{', "to begin a module")) return Flow::kError;
  op().state = 1;
  op().has_types = true;
  return OpenedRegion();
}

bool OperationParser::FuncSignature() {
  NodeTable& nodes = m_.nodes;
  std::vector<NodeId> types, argument_attributes, result_attributes;
  bool any_argument = false, any_result = false;
  const auto dictionary = [&](std::vector<NodeId>* list, bool* any) {
    if (in_.Peek() == '{') {
      list->push_back(nodes_.ParseAttribute());
      *any = true;
      return list->back().valid();
    }
    list->push_back(nodes.Make(NodeKind::kDictionary));
    return true;
  };
  if (!in_.Expect('(', "before the arguments of a function")) return false;
  if (!in_.TryConsume(')')) {
    do {
      PendingArgument argument{};
      if (in_.Peek() == '%') {
        if (!ParseArgument(&argument)) return false;
      } else {
        argument.type = nodes_.ParseType();
        if (!argument.type.valid()) return false;
      }
      if (!dictionary(&argument_attributes, &any_argument)) return false;
      if (in_.PeekWord() == "loc" && !ParseLocation(&argument.location)) return false;
      types.push_back(argument.type);
      arguments_.push_back(argument);
    } while (in_.TryConsume(','));
    if (!in_.Expect(')', "after the arguments of a function")) return false;
  }
  const auto inputs = static_cast<int64_t>(types.size());
  if (in_.TryConsume("->")) {
    if (in_.TryConsume('(')) {
      if (!in_.TryConsume(')')) {
        do {
          types.push_back(nodes_.ParseType());
          if (!types.back().valid() || !dictionary(&result_attributes, &any_result)) return false;
        } while (in_.TryConsume(','));
        if (!in_.Expect(')', "after the results of a function")) return false;
      }
    } else {
      types.push_back(nodes_.ParseType());
      if (!types.back().valid()) return false;
    }
  }
  const NodeId type = nodes.Make(NodeKind::kFunctionType, "", {&inputs, 1}, types);
  if (!AddAttribute("function_type", type, true)) return false;
  if (any_argument && !AddAttribute("arg_attrs", nodes.Make(NodeKind::kArray, "", {}, argument_attributes), true)) {
    return false;
  }
  return !any_result || AddAttribute("res_attrs", nodes.Make(NodeKind::kArray, "", {}, result_attributes), true);
}

OperationParser::Flow OperationParser::CustomFunc() {
  if (op().state == 1) return Flow::kDone;
  const std::string_view word = in_.PeekWord();
  if (word == "public" || word == "private" || word == "nested") {
    in_.Word();
    if (!AddAttribute("sym_visibility", m_.nodes.String(word), true)) return Flow::kError;
  }
  std::string name;
  if (!SymbolName(&name) || !AddAttribute("sym_name", m_.nodes.String(name), true) || !FuncSignature()) {
    return Flow::kError;
  }
  if (in_.TryConsumeWord("attributes") && !ParseAttributeDictionary()) return Flow::kError;
  op().has_types = true;
  op().state = 1;
  if (in_.Peek() != '{') {  // a declaration
    arguments_.clear();
    has_arguments_ = false;
    region_list_.push_back(RegionId(static_cast<uint32_t>(m_.regions.size())));
    m_.regions.push_back({});
    return Flow::kDone;
  }
  in_.TryConsume('{');
  has_arguments_ = in_.Peek() != '^';  // else the label of the block has the arguments
  if (!has_arguments_) arguments_.clear();
  return OpenedRegion();
}

// ---- StableHLO ----

bool OperationParser::CustomBits() {
  const std::string_view word = in_.Word();
  int64_t exponent = 0, mantissa = 0;
  const size_t m = word.find('m');
  const char* const end = word.data() + word.size();
  if (!word.starts_with('e') || m == std::string_view::npos ||
      std::from_chars(word.data() + 1, word.data() + m, exponent).ptr != word.data() + m ||
      std::from_chars(word.data() + m + 1, end, mantissa).ptr != end) {
    return ErrorCustom("expected exponent mantissa in format e#m#");
  }
  const NodeId type = m_.nodes.IntegerType(32);
  return AddAttribute("exponent_bits", m_.nodes.Integer(exponent, type), true) &&
         AddAttribute("mantissa_bits", m_.nodes.Integer(mantissa, type), true);
}

bool OperationParser::CustomRanges() {
  std::vector<int64_t> starts, limits, strides;
  if (!in_.Expect('[', "before the ranges of a slice")) return false;
  if (!in_.TryConsume(']')) {
    do {
      int64_t start = 0, limit = 0, stride = 1;
      if (!in_.Integer(&start) || !in_.Expect(':', "in a range") || !in_.Integer(&limit)) return false;
      if (in_.TryConsume(':') && !in_.Integer(&stride)) return false;
      starts.push_back(start);
      limits.push_back(limit);
      strides.push_back(stride);
    } while (in_.TryConsume(','));
    if (!in_.Expect(']', "after the ranges of a slice")) return false;
  }
  return AddAttribute("start_indices", m_.nodes.DenseArray(starts, 64), true) &&
         AddAttribute("limit_indices", m_.nodes.DenseArray(limits, 64), true) &&
         AddAttribute("strides", m_.nodes.DenseArray(strides, 64), true);
}

bool OperationParser::CustomSelect() {
  if (!in_.Expect(':', "and types")) return false;
  std::vector<NodeId> types;
  if (!ParseTypeList(&types)) return false;
  if (types.size() == 1 && m_.nodes.kind(types[0]) == NodeKind::kFunctionType) return SetFunctionType(types[0]);
  if (types.size() != 2) return ErrorCustom("expected functional type or list of two types");
  operand_types_.insert(operand_types_.end(), {types[0], types[1], types[1]});
  result_types_.push_back(types[1]);
  op().has_types = true;
  return true;
}

bool OperationParser::CustomComplex() {
  if (!in_.Expect(':', "and a type")) return false;
  const NodeId type = nodes_.ParseType();
  if (!type.valid()) return false;
  NodeTable& nodes = m_.nodes;
  if (nodes.kind(type) == NodeKind::kFunctionType) return SetFunctionType(type);
  if (nodes.kind(type) != NodeKind::kTensorType || nodes.kind(nodes.child(type, 0)) != NodeKind::kComplexType) {
    return ErrorCustom("expected tensor with complex element type");
  }
  std::vector<NodeId> children = nodes.children(type);
  children[0] = nodes.child(children[0], 0);
  const std::vector<int64_t> sizes(nodes.ints(type).begin(), nodes.ints(type).end());
  const NodeId part = nodes.Make(NodeKind::kTensorType, "", sizes, children);
  operand_types_.insert(operand_types_.end(), {part, part});
  result_types_.push_back(type);
  op().has_types = true;
  return true;
}

bool OperationParser::CustomDotDims() {
  NodeTable& nodes = m_.nodes;
  std::vector<int64_t> lists[4];  // lhs and rhs batching, lhs and rhs contracting
  bool batching = false;
  if (in_.TryConsumeWord("batching_dims")) {
    batching = true;
    if (!in_.Expect('=') || !IntegerList(&lists[0]) || !in_.TryConsume('x') || !IntegerList(&lists[1])) {
      return in_.ErrorHere("failed parsing dot dimension numbers");
    }
    if (in_.Peek() == ',') {
      const char* const before = in_.at();
      in_.TryConsume(',');
      if (in_.PeekWord() != "contracting_dims") in_.set_at(before);
    }
  }
  if (in_.TryConsumeWord("contracting_dims")) {
    if (!in_.Expect('=') || !IntegerList(&lists[2]) || !in_.TryConsume('x') || !IntegerList(&lists[3])) {
      return in_.ErrorHere("failed parsing dot dimension numbers");
    }
  } else if (!batching) {
    return ErrorCustom(StrCat("expected 'contracting_dims', found ", in_.DescribeNext()));
  }
  constexpr std::string_view kNames[] = {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                         "lhs_contracting_dimensions", "rhs_contracting_dimensions"};
  std::vector<int64_t> names;
  std::vector<NodeId> values;
  for (size_t i = 0; i < 4; ++i) {
    if (lists[i].empty()) continue;
    std::vector<NodeId> numbers;
    for (int64_t number : lists[i]) numbers.push_back(nodes.Integer(number, nodes.IntegerType(64)));
    names.push_back(nodes.strings().Intern(kNames[i]).value);
    values.push_back(nodes.Make(NodeKind::kArray, "", {}, numbers));
  }
  return AddAttribute("dot_dimension_numbers",
                      nodes.Make(NodeKind::kFields, StrCat(op().definition->dialect, ".dot"), names, values), true);
}

bool OperationParser::CustomWindow() {
  NodeTable& nodes = m_.nodes;
  if (in_.Peek() == '}') return true;
  do {
    const std::string_view word = in_.Word();
    if (!in_.Expect('=', "in a window")) return false;
    if (word == "pad") {
      // [[low, high], ...]
      std::vector<int64_t> values;
      if (!in_.Expect('[', "before padding")) return false;
      if (!in_.TryConsume(']')) {
        do {
          const size_t before = values.size();
          if (!IntegerList(&values)) return false;
          if (values.size() != before + 2) return in_.ErrorHere("expected padding of two numbers");
        } while (in_.TryConsume(','));
        if (!in_.Expect(']', "after padding")) return false;
      }
      const int64_t sizes[] = {static_cast<int64_t>(values.size() / 2), 2};
      const NodeId type = nodes.Tensor(sizes, nodes.IntegerType(64));
      const auto* bytes = reinterpret_cast<const std::byte*>(nodes.arena().CopyArray(values.data(), values.size()));
      if (!AddAttribute("padding", nodes.MakeBlob(type, bytes, values.size() * sizeof(int64_t), false), true)) {
        return false;
      }
      continue;
    }
    const std::string_view name = word == "stride"       ? "window_strides"
                                  : word == "lhs_dilate" ? "lhs_dilation"
                                  : word == "rhs_dilate" ? "rhs_dilation"
                                  : word == "reverse"    ? "window_reversal"
                                                         : "";
    if (name.empty() || HasPropertyOrAttribute(name)) {
      return in_.ErrorHere(StrCat("Unexpected keyword ", word, " in window attributes"));
    }
    std::vector<int64_t> values;
    if (!IntegerList(&values)) return false;
    if (!AddAttribute(name, nodes.DenseArray(values, word == "reverse" ? 1 : 64), true)) return false;
  } while (in_.TryConsume(','));
  return true;
}

bool OperationParser::CustomCallTarget() {
  std::string name;
  if (!SymbolName(&name) || !AddAttribute("call_target_name", m_.nodes.String(name), true)) return false;
  return in_.Expect('(', "before operands") && ParseOperands(false) && in_.Expect(')', "after operands");
}

}  // namespace hlokit::mlir
