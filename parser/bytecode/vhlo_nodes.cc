// SPDX-License-Identifier: Apache-2.0
// Attributes and types of VHLO, whose codes never change. They become what StableHLO has for them; those of one
// version are the same in all later ones.
#include <bit>

#include "ir/core/str_cat.h"
#include "parser/bytecode/node_reader.h"
#include "parser/bytecode/vhlo_codes.h"

namespace hlokit::bytecode {

using mlir::NodeKind;

mlir::NodeId NodeReader::VhloAttribute(ByteCursor* in) {
  using enum vhlo::AttributeCode;
  const uint64_t code = in->VarInt();
  if (!in->ok()) return {};
  for (const vhlo::Enumeration& enumeration : vhlo::kEnumerations) {
    if (code == enumeration.code && code != kApiVersion) return EnumOf(in, enumeration.name, enumeration.values);
  }
  switch (code) {
    case kArray: {
      const std::vector<NodeId> elements = GetList(in, false);
      return Ready(*in) ? nodes_.Make(NodeKind::kArray, "", {}, elements) : NodeId();
    }
    case kBool: {
      const uint64_t value = in->VarInt();
      if (value > 1) return Fail(in, "a truth value that is neither 0 nor 1");
      return nodes_.Bool(value != 0);
    }
    case kApiVersion: {
      const uint64_t value = in->VarInt();
      if (value >= vhlo::kApiVersions)
        return Fail(in, StrCat("the API version ", value, " of custom calls is unknown"));
      return nodes_.Integer(static_cast<int64_t>(value), nodes_.IntegerType(32));
    }
    case kDictionary:
      return Dictionary(in);
    case kFloat:
      return Float(in);
    case kInteger:
      return Integer(in);
    case kOutputOperandAlias:
      return OutputOperandAlias(in);
    case kString: {
      const std::string_view text = String(in);
      return in->ok() ? nodes_.String(text) : NodeId();
    }
    case kTensor:
      return Dense(in);
    case kType:
      return GetType(in);
    case kTypeExtensions:
      return TypeExtensions(in);
    case kAccuracy:
      return Accuracy(in);
    case kSubAxis: {
      const int64_t before = in->SignedVarInt(), size = in->SignedVarInt();
      return in->ok() ? nodes_.Make(NodeKind::kVerbatim, StrCat("(", before, ")", size), {}, {}) : NodeId();
    }
    case kAxis:
      return Axis(in);
    case kMeshAxes:
      return MeshAxes(in);
    default:
      return Fail(in, StrCat("the attribute ", code, " of VHLO is unknown"));
  }
}

mlir::NodeId NodeReader::OutputOperandAlias(ByteCursor* in) {
  const std::vector<int64_t> output = Integers(in);
  const int64_t operand = in->SignedVarInt();
  const std::vector<int64_t> operand_indices = Integers(in);
  if (!in->ok()) return {};
  static constexpr std::string_view kNames[] = {"output_tuple_indices", "operand_index", "operand_tuple_indices"};
  const NodeId values[] = {IntegerArray(output), nodes_.Integer(operand, nodes_.IntegerType(64)),
                           IntegerArray(operand_indices)};
  return Fields("stablehlo.output_operand_alias", kNames, values);
}

mlir::NodeId NodeReader::TypeExtensions(ByteCursor* in) {
  const std::vector<int64_t> bounds = Integers(in);
  std::string text = "#stablehlo.bounds<";
  for (size_t i = 0; i < bounds.size(); ++i) {
    StrAppend(&text, i == 0 ? "" : ", ");
    if (bounds[i] == mlir::kDynamicSize) {
      text += "?";
    } else {
      StrAppend(&text, bounds[i]);
    }
  }
  return in->ok() ? nodes_.Make(NodeKind::kVerbatim, text + ">", {}, {}) : NodeId();
}

mlir::NodeId NodeReader::Accuracy(ByteCursor* in) {
  const double absolute = Double(in), relative = Double(in);
  const int64_t ulps = in->SignedVarInt();
  const NodeId mode = GetAttribute(in);
  if (!Ready(*in)) return {};
  if (nodes_.kind(mode) != NodeKind::kEnum) return Fail(in, "an accuracy without a mode");
  const NodeId type = nodes_.Make(NodeKind::kFloatType, "f64", {}, {});
  const auto number = [&](double value) {
    const int64_t bits = std::bit_cast<int64_t>(value);
    return nodes_.Make(NodeKind::kFloat, "", {&bits, 1}, {&type, 1});
  };
  static constexpr std::string_view kNames[] = {"atol", "rtol", "ulps", "mode"};
  const NodeId values[] = {number(absolute), number(relative), nodes_.Integer(ulps, nodes_.IntegerType(64)), mode};
  return Fields("stablehlo.result_accuracy", kNames, values);
}

mlir::NodeId NodeReader::Axis(ByteCursor* in) {
  const NodeId name = GetAttribute(in);
  const uint64_t has_sub_axis = in->VarInt();
  if (has_sub_axis > 1) return Fail(in, "an axis of an unknown form");
  const NodeId sub_axis = has_sub_axis != 0 ? GetAttribute(in) : NodeId();
  if (!Ready(*in)) return {};
  static constexpr std::string_view kNames[] = {"name", "sub_axis_info"};
  const NodeId values[] = {name, sub_axis};
  const size_t count = 1 + static_cast<size_t>(has_sub_axis);
  return Fields("stablehlo.axis_ref", absl::MakeConstSpan(kNames, count), absl::MakeConstSpan(values, count));
}

mlir::NodeId NodeReader::MeshAxes(ByteCursor* in) {
  const NodeId mesh = GetAttribute(in), axes = GetAttribute(in);
  if (!Ready(*in)) return {};
  if (nodes_.kind(mesh) != NodeKind::kString) return Fail(in, "axes of a mesh without a name");
  if (nodes_.kind(axes) != NodeKind::kArray) return Fail(in, "axes of a mesh that are no list");
  static constexpr std::string_view kNames[] = {"mesh", "axes"};
  const NodeId values[] = {nodes_.Make(NodeKind::kSymbol, nodes_.text(mesh), {}, {}), axes};
  return Fields("stablehlo.replica_group_mesh_axes", kNames, values);
}

mlir::NodeId NodeReader::VhloType(ByteCursor* in) {
  using enum vhlo::TypeCode;
  const uint64_t code = in->VarInt();
  if (!in->ok()) return {};
  if (code < std::size(vhlo::kFloatTypes) && !vhlo::kFloatTypes[code].empty()) {
    return nodes_.Make(NodeKind::kFloatType, vhlo::kFloatTypes[code], {}, {});
  }
  // Signed integers of VHLO are signless ones of StableHLO: i4, i8, ..., i64.
  if (code >= kFirstSigned && code < kFirstUnsigned) return nodes_.IntegerType(int64_t{4} << (code - kFirstSigned));
  if (code >= kFirstUnsigned && code < kTensorType) {
    return nodes_.IntegerType(int64_t{4} << (code - kFirstUnsigned), mlir::Signedness::kUnsigned);
  }
  switch (code) {
    case kBoolType:
      return nodes_.IntegerType(1);
    case kSigned2Type:
      return nodes_.IntegerType(2);
    case kUnsigned2Type:
      return nodes_.IntegerType(2, mlir::Signedness::kUnsigned);
    case kIndexType:
      return nodes_.Make(NodeKind::kIndexType);
    case kNoneType:
      return nodes_.Make(NodeKind::kNoneType);
    case kTokenType:
      return nodes_.Make(NodeKind::kDialectType, "stablehlo.token", {}, {});
    case kWitnessType:
      return nodes_.Make(NodeKind::kDialectType, "shape.witness", {}, {});
    case kComplexType:
    case kUnrankedTensorType: {
      const NodeId element = GetType(in);
      const NodeKind kind = code == kComplexType ? NodeKind::kComplexType : NodeKind::kUnrankedTensorType;
      return Ready(*in) ? nodes_.Make(kind, "", {}, {&element, 1}) : NodeId();
    }
    case kFunctionType:
      return Function(in);
    case kTensorType:
      return Shaped(in, NodeKind::kTensorType, NodeId());
    case kBufferType:
      return Shaped(in, NodeKind::kMemRefType, NodeId());
    case kTensorWithEncodingType: {
      const NodeId encoding = GetAttribute(in);
      return Shaped(in, NodeKind::kTensorType, encoding);
    }
    case kTupleType:
    case kFutureType: {
      const std::vector<NodeId> elements = GetList(in, true);
      const NodeKind kind = code == kTupleType ? NodeKind::kTupleType : NodeKind::kFutureType;
      return Ready(*in) ? nodes_.Make(kind, "", {}, elements) : NodeId();
    }
    case kQuantizedType:
    case kQuantizedPerAxisType:
      return QuantizedType(in, code == kQuantizedPerAxisType);
    default:
      return Fail(in, StrCat("the type ", code, " of VHLO is unknown"));
  }
}

// !quant.uniform<i8<-127:127>:f32:1, {0.5:3, ...}>, as MLIR prints it.
mlir::NodeId NodeReader::QuantizedType(ByteCursor* in, bool per_axis) {
  constexpr uint64_t kSigned = 1;
  const uint64_t flags = in->VarInt();
  const NodeId storage = GetType(in), expressed = GetType(in);
  uint64_t dimension = 0;
  std::vector<double> scales;
  std::vector<int64_t> zero_points;
  int64_t low = 0, high = 0;
  if (per_axis) {
    dimension = in->VarInt();
    low = in->SignedVarInt();
    high = in->SignedVarInt();
    const size_t count = in->Count();
    for (size_t i = 0; i < count && in->ok(); ++i) scales.push_back(Double(in));
    zero_points = Integers(in);
  } else {
    scales.push_back(Double(in));
    zero_points.push_back(in->SignedVarInt());
    low = in->SignedVarInt();
    high = in->SignedVarInt();
  }
  if (!Ready(*in)) return {};
  if (nodes_.kind(expressed) != NodeKind::kFloatType)
    return Fail(in, "a quantized type whose expressed type is no floating-point type");
  if (scales.size() != zero_points.size())
    return Fail(in, "a quantized type whose scales and zero points differ in number");
  const int64_t width = nodes_.kind(storage) == NodeKind::kIntegerType ? nodes_.ints(storage)[0] : 0;
  if (flags > kSigned || width < 1 || width > 32) return Fail(in, "a quantized type with an unknown storage");
  const bool is_signed = flags == kSigned;
  const int64_t lowest = is_signed ? -(int64_t{1} << (width - 1)) : 0;
  const int64_t highest = (int64_t{1} << (is_signed ? width - 1 : width)) - 1;
  std::string text = StrCat("quant.uniform<", is_signed ? "i" : "u", width);
  if (low != lowest || high != highest) StrAppend(&text, "<", low, ":", high, ">");
  StrAppend(&text, ":", mlir::ToText(nodes_, expressed));
  if (per_axis) StrAppend(&text, ":", dimension);
  text += per_axis ? ", {" : ", ";
  for (size_t i = 0; i < scales.size(); ++i) {
    if (i != 0) text += ", ";
    mlir::AppendFloat(scales[i], "f64", &text);
    if (zero_points[i] != 0) StrAppend(&text, ":", zero_points[i]);
  }
  text += per_axis ? "}>" : ">";
  return nodes_.Make(NodeKind::kDialectType, text, {}, {});
}

}  // namespace hlokit::bytecode
