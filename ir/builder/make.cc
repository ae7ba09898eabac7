// SPDX-License-Identifier: Apache-2.0
// Instructions made as given.
#include <complex>
#include <cstring>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "ir/builder/builder.h"
#include "ir/inference/shape_inference.h"
#include "ir/types/float_types.h"

namespace hlokit {

InstructionId Builder::MakeInferred(Opcode opcode, Operands operands, absl::Span<const AttrValue> attrs) {
  absl::InlinedVector<Shape, 4> operand_shapes;
  for (InstructionId operand : operands) operand_shapes.push_back(shape_of(operand));
  const absl::StatusOr<Shape> shape = InferShape({module_, opcode, operand_shapes, attrs, Shape()});
  if (shape.ok()) return Make(opcode, *shape, operands, attrs);
  TakeName();
  return InstructionId();
}

InstructionId Builder::MakeClone(InstructionId source, Operands operands) {
  const std::string name = TakeName();
  const StringId unique = name.empty() ? module_->UniqueInstructionName(module_->record(source).name)
                                       : module_->UniqueInstructionName(name);
  const InstructionId id = module_->CloneInstruction(computation_, source, unique, operands);
  Place(id);
  return id;
}

InstructionId Builder::MakeElement(InstructionId tuple, int64_t index) {
  return Make(Opcode::kGetTupleElement, shape_of(tuple).element(index), {tuple}, {Int(Attr::kIndex, index)});
}

InstructionId Builder::MakeTuple(Operands elements) {
  absl::InlinedVector<Shape, 8> element_shapes;
  for (InstructionId element : elements) element_shapes.push_back(shape_of(element));
  return Make(Opcode::kTuple, shapes().Tuple(element_shapes), elements);
}

InstructionId Builder::MakeConvert(InstructionId operand, ElementType type) {
  const Shape shape = shape_of(operand);
  if (shape.element_type() == type) return WithoutName(operand);
  return Make(Opcode::kConvert, shapes().WithElementType(shape, type), {operand});
}

InstructionId Builder::MakeReshape(InstructionId operand, Shape shape) {
  if (shape_of(operand) == shape) return WithoutName(operand);
  return Make(Opcode::kReshape, shape, {operand});
}

InstructionId Builder::MakeCopy(InstructionId operand, Shape shape) {
  if (shape_of(operand) == shape) return WithoutName(operand);
  return Make(Opcode::kCopy, shape, {operand});
}

InstructionId Builder::MakeCompare(ComparisonDirection direction, InstructionId a, InstructionId b) {
  const Shape shape = shapes().WithElementType(shape_of(a), ElementType::kPred);
  return Make(Opcode::kCompare, shape, {a, b}, {Enum(Attr::kDirection, direction)});
}

InstructionId Builder::MakeReduce(InstructionId operand, InstructionId init, Dims dimensions, ComputationId reducer) {
  return MakeInferred(Opcode::kReduce, {operand, init},
                      {List(Attr::kDimensions, dimensions), Calls(Attr::kToApply, reducer)});
}

InstructionId Builder::MakeConstant(const Literal& value) {
  return Make(Opcode::kConstant, value.shape(), {}, {}, context().literals.Add(value).value);
}

InstructionId Builder::MakeScalarConstant(ElementType type, double value) {
  Literal literal = Literal::Zeros(shapes().Scalar(type));
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    T number;
    if constexpr (std::is_same_v<T, std::complex<float>>) {
      number = T(static_cast<float>(value));
    } else if constexpr (std::is_constructible_v<T, double>) {
      number = static_cast<T>(value);
    } else {
      number = static_cast<T>(static_cast<int64_t>(value));
    }
    std::memcpy(literal.data(), &number, sizeof(number));
  });
  return MakeConstant(literal);
}

InstructionId Builder::MakeScalar(ElementType type, const std::byte* data) {
  const Shape scalar = shapes().Scalar(type);
  const LiteralId literal = context().literals.AddArray(scalar, data, static_cast<size_t>(BytesOf(type)));
  return Make(Opcode::kConstant, scalar, {}, {}, literal.value);
}

InstructionId Builder::MakeSplat(Shape shape, InstructionId value) {
  if (shape.IsScalar()) return WithoutName(value);
  return Make(Opcode::kBroadcast, shape, {value}, {List(Attr::kDimensions, {})});
}

ComputationId Builder::MakeReducer(Opcode opcode, ElementType type) {
  const Shape scalar = shapes().Scalar(type);
  Builder body(module_, module_->AddComputation(module_->UniqueComputationName(ToString(opcode))));
  InstructionId operands[2];
  for (uint32_t k = 0; k < 2; ++k) {
    operands[k] = body.WithName("param").Make(Opcode::kParameter, scalar, {}, {}, k);
  }
  body.SetMetadata(metadata_);
  body.SetRoot(body.Make(opcode, scalar, operands));
  return body.computation();
}

}  // namespace hlokit
