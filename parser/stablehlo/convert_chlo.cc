// SPDX-License-Identifier: Apache-2.0
// CHLO operations without an HLO opcode, by formulas.
#include "ir/core/str_cat.h"
#include "parser/stablehlo/converter.h"

namespace hlokit::stablehlo {

absl::Status Converter::ConvertAtan(const Op& op) {
  const InstructionId x = operand(op, 0);
  const Shape shape = shape_of(x);
  if (!shape.IsArray()) return ConvertNone(op);
  Builder builder = b();
  if (!IsComplex(shape.element_type())) {
    const InstructionId one = builder.MakeSplat(shape, builder.MakeScalarConstant(shape.element_type(), 1));
    return SetResult(op, builder.Binary(Opcode::kAtan2, x, one));
  }
  // atan(x) = -i atanh(i x), and i (a + b i) = -b + a i.
  const Result real = builder.Unary(Opcode::kReal, x), imaginary = builder.Unary(Opcode::kImag, x);
  if (!real.ok()) return SetResult(op, real);
  if (!imaginary.ok()) return SetResult(op, imaginary);
  const InstructionId turned =
      builder.Make(Opcode::kComplex, shape, {builder.MakeLike(Opcode::kNegate, {*imaginary}), *real});
  const Result y = builder.Unary(Opcode::kAtanh, turned);
  if (!y.ok()) return SetResult(op, y);
  const Result y_real = builder.Unary(Opcode::kReal, *y), y_imaginary = builder.Unary(Opcode::kImag, *y);
  return SetResult(op,
                   builder.Make(Opcode::kComplex, shape, {*y_imaginary, builder.MakeLike(Opcode::kNegate, {*y_real})}));
}

absl::Status Converter::ConvertSquare(const Op& op) {
  return Emit(op, Opcode::kMultiply, {operand(op, 0), operand(op, 0)});
}

absl::Status Converter::ConvertConj(const Op& op) {
  const InstructionId x = operand(op, 0);
  const Shape shape = shape_of(x);
  if (!shape.IsArray() || !IsComplex(shape.element_type())) return SetResult(op, x);
  Builder builder = b();
  const Result real = builder.Unary(Opcode::kReal, x), imaginary = builder.Unary(Opcode::kImag, x);
  if (!real.ok()) return SetResult(op, real);
  if (!imaginary.ok()) return SetResult(op, imaginary);
  return SetResult(op, builder.Make(Opcode::kComplex, shape, {*real, builder.MakeLike(Opcode::kNegate, {*imaginary})}));
}

absl::Status Converter::ConvertIsInf(const Op& op) {
  const std::string_view name = nodes().str(op.name);
  InstructionId x = operand(op, 0);
  const Shape shape = shape_of(x);
  if (!shape.IsArray()) return ConvertNone(op);
  Builder builder = b();
  if (name == "chlo.is_inf") x = builder.MakeLike(Opcode::kAbs, {x});
  const double infinity =
      name == "chlo.is_neg_inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const InstructionId bound = builder.MakeSplat(shape, builder.MakeScalarConstant(shape.element_type(), infinity));
  return SetResult(op, builder.MakeCompare(ComparisonDirection::kEq, x, bound));
}

absl::Status Converter::ConvertErfc(const Op& op) { return ConvertNone(op); }
absl::Status Converter::ConvertErfInv(const Op& op) { return ConvertNone(op); }
absl::Status Converter::ConvertLgamma(const Op& op) { return ConvertNone(op); }
absl::Status Converter::ConvertDigamma(const Op& op) { return ConvertNone(op); }
absl::Status Converter::ConvertBesselI1e(const Op& op) { return ConvertNone(op); }
absl::Status Converter::ConvertNextAfter(const Op& op) { return ConvertNone(op); }

}  // namespace hlokit::stablehlo
