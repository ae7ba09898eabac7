// SPDX-License-Identifier: Apache-2.0
// Constants, elementwise operations, broadcasting.
#include <cstring>

#include "ir/core/str_cat.h"
#include "parser/mlir/dense_parser.h"
#include "parser/stablehlo/import/converter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

// ---- constants ----

absl::StatusOr<LiteralId> Converter::AddLiteral(Shape shape, mlir::Blob blob) {
  if (static_cast<uint64_t>(literal_budget_) < blob.size) {
    return absl::InvalidArgumentError(StrCat("is a constant with which all together have more than ",
                                             options_.max_literal_bytes, " bytes, the limit (--max-literal-bytes)"));
  }
  literal_budget_ -= static_cast<int64_t>(blob.size);
  return context().literals.AddArray(shape, blob.data, blob.size);
}

NodeId Converter::ElementsOfResource(NodeId value, std::string_view data) {
  const auto [known, added] = resources_.try_emplace(value.value);
  if (added) {
    constexpr size_t kAlignment = 4;
    const NodeId type = nodes().child(value, 0);
    known->second = mlir::DenseFromBytes(data.substr(std::min(kAlignment, data.size())), type, &mutable_nodes());
  }
  return known->second;
}

Converter::Result Converter::MakeConstant(NodeId value, Shape shape) {
  if (!value.valid() || !shape.IsArray()) return absl::InvalidArgumentError("has no value that HLO has a place for");
  const mlir::NodeTable& n = nodes();
  const ElementType type = shape.element_type();
  const auto bytes = static_cast<size_t>(BytesOf(type));
  NodeId elements = value;
  if (n.kind(value) == NodeKind::kDenseResource) {
    const auto found = program_.resources.find(std::string(n.text(value)));
    if (found == program_.resources.end()) {
      // `__elided__`: the printer left the value out.
      return b().Make(Opcode::kConstant, shape, {}, {}, context().literals.AddElided(shape).value);
    }
    elements = ElementsOfResource(value, found->second);
    if (!elements.valid()) return absl::InvalidArgumentError("has a resource whose size is not that of its type");
  }
  if (n.kind(elements) == NodeKind::kInteger || n.kind(elements) == NodeKind::kFloat) {
    const double number = n.kind(elements) == NodeKind::kFloat ? std::bit_cast<double>(n.ints(elements)[0])
                                                               : static_cast<double>(n.ints(elements)[0]);
    return b().MakeSplat(shape, b().MakeScalarConstant(type, number));
  }
  if (n.kind(elements) != NodeKind::kDense) {
    return absl::InvalidArgumentError("has a value that HLO has no place for");
  }
  const mlir::Blob blob = n.blob(elements);
  if (n.is_splat(elements) && blob.size == bytes && !shape.IsScalar()) {
    if (shape.element_count() == 1) {
      const absl::StatusOr<LiteralId> literal = AddLiteral(shape, blob);
      if (!literal.ok()) return literal.status();
      return b().Make(Opcode::kConstant, shape, {}, {}, literal->value);
    }
    return b().MakeSplat(shape, b().MakeScalar(type, blob.data));
  }
  if (shape.element_count() < 0 || blob.size != static_cast<size_t>(LiteralBytes(shape))) {
    return absl::InvalidArgumentError("has a value of another type than its result");
  }
  const absl::StatusOr<LiteralId> literal = AddLiteral(shape, blob);
  if (!literal.ok()) return literal.status();
  return b().Make(Opcode::kConstant, shape, {}, {}, literal->value);
}

std::optional<Converter::Ints> Converter::ConstantInts(mlir::ValueId value) const {
  if (!value.valid() || !IsConstant(value)) return std::nullopt;
  return nodes().Integers(Attribute(program_.op(program_.values[value.value].definition), "value"));
}

absl::Status Converter::ConvertConstant(const Op& op) {
  // A constant of a type that only shapes of dynamic operations have is read where it is used.
  const NodeId type = program_.type(program_.result(op));
  const bool tensor = nodes().kind(type) == NodeKind::kTensorType;
  if (!tensor || nodes().kind(nodes().child(type, 0)) == NodeKind::kIndexType) {
    return used_[program_.result(op).value] == 0 ? Error(op, "result #0 type is not supported") : absl::OkStatus();
  }
  absl::StatusOr<Shape> shape = ShapeOfType(type);
  if (!shape.ok()) return shape.status();
  return SetResult(op, MakeConstant(Attribute(op, "value"), LaidOut(op, *shape)));
}

absl::Status Converter::ConvertConstantLike(const Op& op) {
  absl::StatusOr<Shape> shape = ResultShape(op);
  if (!shape.ok()) return shape.status();
  return SetResult(op, MakeConstant(Attribute(op, "value"), *shape));
}

// ---- elementwise ----

absl::Status Converter::ConvertElementwise(const Op& op) {
  Attrs attrs;
  if (absl::Status status = AddAccuracy(op, &attrs); !status.ok()) return status;
  return Emit(op, OpcodeOf(op), operands(op), attrs);
}

absl::Status Converter::ConvertExplicit(const Op& op) { return Emit(op, OpcodeOf(op), operands(op)); }

absl::Status Converter::ConvertConvert(const Op& op) {
  absl::StatusOr<Shape> shape = ResultShape(op);
  if (!shape.ok()) return shape.status();
  const Shape from = shape_of(operand(op, 0));
  if (!from.IsArray() || !IsComplex(from.element_type()) || IsComplex(shape->element_type()))
    return ConvertExplicit(op);
  // Of a complex number the real part is converted.
  const Result real = b().Unary(Opcode::kReal, operand(op, 0));
  if (!real.ok() || shape_of(*real).element_type() == shape->element_type()) return SetResult(op, real);
  return Emit(op, Opcode::kConvert, {*real});
}

absl::Status Converter::ConvertMinMax(const Op& op) {
  const Opcode opcode = OpcodeOf(op);
  if (op.operand_count != 2 || !IsComplex(shape_of(operand(op, 0)).element_type())) return ConvertElementwise(op);
  // Complex numbers are ordered by their real parts, then by the imaginary ones.
  const InstructionId lhs = operand(op, 0), rhs = operand(op, 1);
  const ComparisonDirection direction =
      opcode == Opcode::kMaximum ? ComparisonDirection::kGt : ComparisonDirection::kLt;
  Builder builder = b();
  const Result lhs_real = builder.Unary(Opcode::kReal, lhs), rhs_real = builder.Unary(Opcode::kReal, rhs);
  const Result lhs_imag = builder.Unary(Opcode::kImag, lhs), rhs_imag = builder.Unary(Opcode::kImag, rhs);
  for (const Result* part : {&lhs_real, &rhs_real, &lhs_imag, &rhs_imag}) {
    if (!part->ok()) return SetResult(op, *part);
  }
  const InstructionId equal = builder.MakeCompare(ComparisonDirection::kEq, *lhs_real, *rhs_real);
  const InstructionId real = builder.MakeCompare(direction, *lhs_real, *rhs_real);
  const InstructionId imaginary = builder.MakeCompare(direction, *lhs_imag, *rhs_imag);
  const Result first = builder.Select(equal, imaginary, real);
  if (!first.ok()) return SetResult(op, first);
  return SetResult(op, builder.Select(*first, lhs, rhs));
}

absl::Status Converter::ConvertCompare(const Op& op) {
  absl::StatusOr<AttrValue> direction = EnumAttr(op, "comparison_direction", Attr::kDirection);
  if (!direction.ok()) return direction.status();
  Attrs attrs = {*direction};
  const std::string_view type = EnumOf(op, "compare_type");
  if (!type.empty() && type != "NOTYPE") {
    absl::StatusOr<AttrValue> value = EnumAttr(op, "compare_type", Attr::kCompareType);
    if (!value.ok()) return value.status();
    attrs.push_back(*value);
  }
  return Emit(op, Opcode::kCompare, operands(op), attrs);
}

absl::Status Converter::ConvertSelect(const Op& op) {
  std::vector<InstructionId> inputs = operands(op);
  absl::StatusOr<Shape> shape = ResultShape(op);
  if (!shape.ok()) return shape.status();
  if (shape_of(inputs[0]).IsScalar() && !shape->IsScalar() && KeptOpcode(op) != Opcode::kSelect) {
    inputs[0] = b().MakeSplat(shapes().WithElementType(*shape, ElementType::kPred), inputs[0]);
  }
  return Emit(op, Opcode::kSelect, inputs);
}

absl::Status Converter::ConvertClamp(const Op& op) {
  std::vector<InstructionId> inputs = operands(op);
  for (size_t i : {size_t{0}, size_t{2}}) {
    if (shape_of(inputs[i]).IsScalar() && !shape_of(inputs[1]).IsScalar()) {
      inputs[i] = b().MakeSplat(shape_of(inputs[1]), inputs[i]);
    }
  }
  return Emit(op, Opcode::kClamp, inputs);
}

absl::Status Converter::ConvertReducePrecision(const Op& op) {
  return Emit(
      op, Opcode::kReducePrecision, operands(op),
      {Int(Attr::kExponentBits, IntOf(op, "exponent_bits")), Int(Attr::kMantissaBits, IntOf(op, "mantissa_bits"))});
}

absl::Status Converter::ConvertBitcastConvert(const Op& op) {
  absl::StatusOr<Shape> shape = ResultShape(op);
  if (!shape.ok()) return shape.status();
  const Shape from = shape_of(operand(op, 0));
  const bool from_pred = from.element_type() == ElementType::kPred;
  const bool to_pred = shape->element_type() == ElementType::kPred;
  if (from_pred == to_pred || !from.IsArray() || from.has_dynamic_dims()) {
    return Emit(op, Opcode::kBitcastConvert, operands(op));
  }
  // StableHLO counts an i1 as one bit, HLO's pred is a byte: take integers apart by shifts.
  const ElementType wide = from_pred ? shape->element_type() : from.element_type();
  if (!IsArrayType(wide) || BitsOf(wide) > 64) return Error(op, "has no HLO form for these types");
  const ElementType bits = BitsOf(wide) == 64   ? ElementType::kU64
                           : BitsOf(wide) == 32 ? ElementType::kU32
                           : BitsOf(wide) == 16 ? ElementType::kU16
                           : BitsOf(wide) == 8  ? ElementType::kU8
                           : BitsOf(wide) == 4  ? ElementType::kU4
                                                : ElementType::kU2;
  const Shape bit_array = shapes().WithElementType(to_pred ? *shape : from, bits);
  const int64_t last = bit_array.rank() - 1;
  if (last < 0 || bit_array.dim(last) != BitsOf(wide)) return Error(op, "has no HLO form for these types");
  Builder builder = b();
  const InstructionId positions = builder.Make(Opcode::kIota, bit_array, {}, {Int(Attr::kIotaDimension, last)});
  Ints outer;
  for (int64_t i = 0; i < last; ++i) outer.push_back(i);
  if (to_pred) {
    const Result integer = builder.BitcastConvert(operand(op, 0), bits);
    if (!integer.ok()) return SetResult(op, integer);
    const Result spread = builder.Broadcast(*integer, bit_array.dims(), outer);
    if (!spread.ok()) return SetResult(op, spread);
    const InstructionId shifted = builder.MakeLike(Opcode::kShiftRightLogical, {*spread, positions});
    const InstructionId one = builder.MakeSplat(bit_array, builder.MakeScalarConstant(bits, 1));
    const InstructionId masked = builder.MakeLike(Opcode::kAnd, {shifted, one});
    return SetResult(op, builder.MakeConvert(masked, ElementType::kPred));
  }
  const InstructionId numbers = builder.MakeConvert(operand(op, 0), bits);
  const InstructionId shifted = builder.MakeLike(Opcode::kShiftLeft, {numbers, positions});
  const int64_t dimension[] = {last};
  const InstructionId sum = builder.MakeReduce(shifted, builder.MakeScalarConstant(bits, 0), dimension,
                                               builder.MakeReducer(Opcode::kOr, bits));
  return SetResult(op, builder.BitcastConvert(sum, wide));
}

// ---- CHLO's broadcasting forms ----

Converter::Result Converter::BroadcastTo(InstructionId id, absl::Span<const int64_t> sizes,
                                         absl::Span<const int64_t> dimensions) {
  const Shape shape = shape_of(id);
  if (!shape.IsArray() || shape.has_dynamic_dims()) return absl::InvalidArgumentError("has a dynamic operand");
  // Dimensions of size 1 that grow are dropped first.
  Ints kept, kept_sizes;
  bool drop = false;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    const int64_t to = dimensions[static_cast<size_t>(i)];
    if (to < 0 || to >= static_cast<int64_t>(sizes.size())) return absl::InvalidArgumentError("has a bad dimension");
    if (shape.dim(i) == 1 && sizes[static_cast<size_t>(to)] != 1) {
      drop = true;
      continue;
    }
    kept.push_back(to);
    kept_sizes.push_back(shape.dim(i));
  }
  if (drop) {
    const Result reshaped = b().Reshape(id, kept_sizes);
    if (!reshaped.ok()) return reshaped;
    id = *reshaped;
  }
  if (static_cast<int64_t>(kept.size()) == static_cast<int64_t>(sizes.size()) && !drop) return id;
  return b().Broadcast(id, sizes, kept);
}

absl::Status Converter::ConvertBroadcasting(const Op& op) {
  absl::StatusOr<Shape> shape = ResultShape(op);
  if (!shape.ok()) return shape.status();
  if (shape->has_dynamic_dims()) return Error(op, "has a dynamic result, which HLO has no place for");
  std::vector<InstructionId> inputs = operands(op);
  absl::StatusOr<Ints> given = IntsOf(op, "broadcast_dimensions", /*optional=*/true);
  if (!given.ok()) return given.status();
  int64_t rank = 0;
  for (InstructionId id : inputs) rank = std::max(rank, shape_of(id).rank());
  const bool has_dimensions = Attribute(op, "broadcast_dimensions").valid();
  for (InstructionId& input : inputs) {
    const int64_t own = shape_of(input).rank();
    Ints dimensions;
    for (int64_t i = 0; i < own; ++i) {
      dimensions.push_back(has_dimensions && own < rank && static_cast<size_t>(i) < given->size()
                               ? (*given)[static_cast<size_t>(i)]
                               : shape->rank() - own + i);
    }
    const Result wide = BroadcastTo(input, shape->dims(), dimensions);
    if (!wide.ok()) return SetResult(op, wide);
    input = *wide;
  }
  Attrs attrs;
  if (OpcodeOf(op) == Opcode::kCompare) {
    absl::StatusOr<AttrValue> direction = EnumAttr(op, "comparison_direction", Attr::kDirection);
    if (!direction.ok()) return direction.status();
    attrs.push_back(*direction);
  }
  if (OpcodeOf(op) == Opcode::kUnknown) return EmitSpecialFunction(op, inputs);
  return Emit(op, OpcodeOf(op), inputs, attrs);
}

}  // namespace hlokit::stablehlo
