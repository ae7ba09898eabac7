// SPDX-License-Identifier: Apache-2.0
// Parts of custom forms with a syntax of their own (custom_syntax.def).
#include <algorithm>

#include "ir/core/str_cat.h"
#include "parser/mlir/operation_printer.h"

namespace hlokit::mlir {

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

void OperationPrinter::Axes(NodeId value) {
  const std::string text = ToText(m_.nodes, value);
  const bool keep = text.starts_with("#sdy.mesh<") || text.starts_with("#sdy.sharding<");
  const size_t open = text.find_first_of(keep ? "<" : "[{");
  if (!text.starts_with("#sdy") || open == std::string::npos) {
    out_ += text;
    return;
  }
  out_ += keep ? text.substr(open) : text.substr(open, text.size() - open - 1);
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
  switch (custom) {
    case Custom::kNone:
    case Custom::kValueType:
      return true;
    case Custom::kModule:
      return CustomModule(op);
    case Custom::kFunc:
      return CustomFunc(op);
    case Custom::kManual:
      return CustomManual(op, /*named=*/false);
    case Custom::kNamed:
      return CustomManual(op, /*named=*/true);
    case Custom::kReduce:
      return CustomReduce(op);
    case Custom::kRegions:
      return CustomRegions(op);
    case Custom::kWhile:
      return CustomWhile(op);
    case Custom::kScan:
      return CustomScan(op);
    case Custom::kFor:
      return true;  // printed in the generic form
    case Custom::kUi32:
      out_ += " : ";
      Types(ResultsOf(op));
      return true;
    case Custom::kTo:
      CustomTo(op);
      return true;
    case Custom::kExtractType:
    case Custom::kIndirect:
      out_ += " : ";
      Types(m_.operands_of(op).subspan(0, 1));
      return true;
    case Custom::kInsertType:
      out_ += " : ";
      Types(ResultsOf(op));
      return true;
    case Custom::kOperandTypes:
      out_ += " : ";
      Types(m_.operands_of(op));
      return true;
    case Custom::kMesh:
      CustomMesh(op);
      return true;
    case Custom::kDirection:
      CustomDirection(op);
      return true;
    case Custom::kBits:
      CustomBits(op);
      return true;
    case Custom::kRanges:
      CustomRanges(op);
      return true;
    case Custom::kSelect:
      CustomSelect(op);
      return true;
    case Custom::kComplex:
      CustomComplex(op);
      return true;
    case Custom::kDotDims:
      CustomDotDims(op);
      return true;
    case Custom::kWindow:
      CustomWindow(op);
      return true;
    case Custom::kTuple:
      CustomTuple(op);
      return true;
    case Custom::kSameTypes:
      SameTypes(op);
      return true;
    case Custom::kBarrier:
      CustomBarrier(op);
      return true;
    case Custom::kCustomCall:
      CustomCallTarget(op);
      return true;
  }
  return true;
}

void OperationPrinter::SymbolName(const Operation& op) {
  const NodeId name = m_.attribute(op, "sym_name");
  if (!name.valid()) return;
  out_ += " ";
  AppendSymbol(m_.nodes.text(name), &out_);
}

// ---- without regions ----

void OperationPrinter::CustomTo(const Operation& op) {
  out_ += " : ";
  if (out_.ends_with(": : ")) out_.resize(out_.size() - 2);
  Types(m_.operands_of(op));
  out_ += " to ";
  Types(ResultsOf(op));
}

void OperationPrinter::CustomMesh(const Operation& op) {
  SymbolName(op);
  out_ += " = ";
  Axes(m_.attribute(op, "mesh"));
}

void OperationPrinter::CustomDirection(const Operation& op) {
  const NodeTable& n = m_.nodes;
  const NodeId value = m_.attribute(op, "allowed_direction");
  out_ += " allowed_direction=";
  if (n.kind(value) == NodeKind::kEnum) out_ += n.str(StringId(static_cast<uint32_t>(n.ints(value)[0])));
}

void OperationPrinter::CustomBits(const Operation& op) {
  const auto bits = [&](std::string_view name) { return m_.nodes.IntegerValue(m_.attribute(op, name)).value_or(0); };
  StrAppend(&out_, " e", bits("exponent_bits"), "m", bits("mantissa_bits"));
}

void OperationPrinter::CustomRanges(const Operation& op) {
  const auto list = [&](std::string_view name) { return *m_.nodes.Integers(m_.attribute(op, name)); };
  const std::vector<int64_t> starts = list("start_indices"), limits = list("limit_indices"), strides = list("strides");
  out_ += " [";
  for (size_t i = 0; i < starts.size(); ++i) {
    StrAppend(&out_, i == 0 ? "" : ", ", starts[i], ":", limits[i]);
    if (strides[i] != 1) StrAppend(&out_, ":", strides[i]);
  }
  out_ += "]";
}

void OperationPrinter::CustomSelect(const Operation& op) {
  const absl::Span<const ValueId> in = m_.operands_of(op);
  out_ += " : ";
  if (m_.type(in[1]) == m_.type(in[2]) && m_.type(in[1]) == m_.type(m_.result(op))) {
    Types(in.subspan(0, 2));
  } else {
    FunctionType(op);
  }
}

void OperationPrinter::CustomComplex(const Operation& op) {
  // The parts have the type of the parts of the result.
  const NodeTable& n = m_.nodes;
  const NodeId type = m_.type(m_.result(op));
  out_ += " : ";
  bool same = n.kind(type) == NodeKind::kTensorType && n.kind(n.child(type, 0)) == NodeKind::kComplexType;
  for (ValueId value : m_.operands_of(op)) {
    const NodeId part = m_.type(value);
    same = same && n.kind(part) == NodeKind::kTensorType && n.ints(part) == n.ints(type) &&
           n.child_count(part) == n.child_count(type) &&
           (n.child_count(part) < 2 || n.child(part, 1) == n.child(type, 1)) &&
           n.child(part, 0) == n.child(n.child(type, 0), 0);
  }
  if (same) {
    Type(type);
  } else {
    FunctionType(op);
  }
}

void OperationPrinter::CustomTuple(const Operation& op) {
  const NodeTable& n = m_.nodes;
  const NodeId type = m_.type(m_.result(op));
  bool same = n.kind(type) == NodeKind::kTupleType && n.child_count(type) == op.operand_count;
  for (size_t i = 0; same && i < op.operand_count; ++i) same = n.child(type, i) == m_.type(m_.operands_of(op)[i]);
  out_ += " : ";
  if (same) {
    Type(type);
  } else {
    FunctionType(op);
  }
}

void OperationPrinter::CustomBarrier(const Operation& op) {
  if (op.operand_count == 0) {
    out_ += "()";
    AttributeDictionary(op);
    return;
  }
  out_ += " ";
  Operands(m_.operands_of(op));
  AttributeDictionary(op);
  out_ += " : ";
  Types(m_.operands_of(op));
}

void OperationPrinter::CustomCallTarget(const Operation& op) {
  out_ += " ";
  AppendSymbol(m_.nodes.text(m_.attribute(op, "call_target_name")), &out_);
  out_ += "(";
  Operands(m_.operands_of(op));
  out_ += ")";
}

// ---- with regions ----

bool OperationPrinter::CustomModule(const Operation& op) {
  if (frames_.back().region != 0) {
    CloseRegion();
    return true;
  }
  ++frames_.back().region;
  SymbolName(op);
  AttributeDictionary(op, "attributes");
  out_ += " ";
  OpenRegion(m_.regions_of(op)[0], false);
  return false;
}

bool OperationPrinter::CustomManual(const Operation& op, bool named) {
  if (frames_.back().region != 0) {
    CloseRegion();
    AttributeDictionary(op);
    out_ += " : ";
    FunctionType(op);
    return true;
  }
  ++frames_.back().region;
  if (named) {
    out_ += "<";
    AppendText(m_.nodes, m_.attribute(op, "name"), &out_);
    out_ += ">";
  }
  out_ += "(";
  Operands(m_.operands_of(op));
  out_ += ")";
  for (std::string_view name : {"in_shardings", "out_shardings", "manual_axes"}) {
    if (!m_.attribute(op, name).valid()) continue;
    StrAppend(&out_, " ", name, "=");
    Axes(m_.attribute(op, name));
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

bool OperationPrinter::CustomRegions(const Operation& op) {
  Frame& frame = frames_.back();
  if (frame.region != 0) CloseRegion();
  if (frame.region == op.region_count) {
    if (op.region_count != 0) out_ += ")";
    return true;
  }
  out_ += frame.region == 0 ? " (" : ", ";
  OpenRegion(m_.regions_of(op)[frame.region++], /*labels=*/true);
  return false;
}

bool OperationPrinter::CustomWhile(const Operation& op) {
  Frame& frame = frames_.back();
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

bool OperationPrinter::CustomScan(const Operation& op) {
  if (frames_.back().region != 0) {
    CloseRegion();
    out_ += " : ";
    FunctionType(op);
    return true;
  }
  ++frames_.back().region;
  const std::vector<int64_t> segments = *m_.nodes.Integers(m_.attribute(op, "operandSegmentSizes"));
  const auto inputs = static_cast<size_t>(segments[0]);
  out_ += "(";
  Operands(m_.operands_of(op).subspan(0, inputs));
  out_ += ") inits (";
  Operands(m_.operands_of(op).subspan(inputs));
  StrAppend(&out_, ") dimension=", m_.nodes.IntegerValue(m_.attribute(op, "dimension")).value_or(0));
  AttributeDictionary(op, "attributes");
  out_ += " ";
  OpenRegion(m_.regions_of(op)[0], true);
  return false;
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
      locations_.AppendUse(m_.values[value.value].location, &out_);
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
  // The short form has one location, of all of them.
  if (options_.locations && applied.location != op.location) return false;
  *inner = n.str(applied.name);
  if (!IsCommutativeReducer(applied.kind())) return false;
  if (applied.attribute_count != 0 || applied.operand_count != 2 || applied.result_count != 1) return false;
  if (returned.kind() != OpKind::kStablehloReturn || returned.operand_count != 1 || returned.attribute_count != 0)
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
