// SPDX-License-Identifier: Apache-2.0
// CHLO operations without an HLO opcode, by formulas.
#include <algorithm>
#include <limits>
#include <optional>

#include "ir/core/str_cat.h"
#include "parser/stablehlo/import/converter.h"
#include "parser/stablehlo/special_functions.h"

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
  const InstructionId z = operand(op, 0);
  const Shape shape = shape_of(z);
  if (!shape.IsArray() || !IsComplex(shape.element_type())) return Emit(op, Opcode::kMultiply, {z, z});
  // (x + i y)^2 = (x - y) (x + y) + 2 i x y. Equal magnitudes are apart: their sum can be infinite.
  Builder builder = b();
  const Result real = builder.Unary(Opcode::kReal, z), imaginary = builder.Unary(Opcode::kImag, z);
  if (!real.ok()) return SetResult(op, real);
  if (!imaginary.ok()) return SetResult(op, imaginary);
  Formula formula(&builder);
  const Term x = formula.Value(*real), y = formula.Value(*imaginary);
  const Term cancel = (Abs(x) == Abs(y)) & (Abs(x) < std::numeric_limits<double>::infinity());
  const Term squared = Select(cancel, x.Like(0.0), (x - y) * (x + y));
  const Term product = 2.0 * (x * y);
  return SetResult(op, builder.Make(Opcode::kComplex, shape, {formula.Emit(squared), formula.Emit(product)}));
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
  InstructionId x = operand(op, 0);
  const Shape shape = shape_of(x);
  if (!shape.IsArray()) return ConvertNone(op);
  Builder builder = b();
  if (op.kind() == OpKind::kChloIsInf) x = builder.MakeLike(Opcode::kAbs, {x});
  const bool negative = op.kind() == OpKind::kChloIsNegInf;
  const double infinity = negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const InstructionId bound = builder.MakeSplat(shape, builder.MakeScalarConstant(shape.element_type(), infinity));
  return SetResult(op, builder.MakeCompare(ComparisonDirection::kEq, x, bound));
}

// ---- functions that are computed by formulas ----

namespace {

struct SpecialFunction {
  std::string_view name;  // without the dialect and `broadcast_`
  Term (*unary)(Term);
  Term (*binary)(Term, Term);
  bool in_own_type;  // else narrow types are computed in f32
};
constexpr SpecialFunction kSpecialFunctions[] = {
    {"erfc", Erfc, nullptr, false},
    {"erf_inv", ErfInv, nullptr, false},
    {"lgamma", Lgamma, nullptr, false},
    {"digamma", Digamma, nullptr, false},
    {"bessel_i1e", BesselI1e, nullptr, false},
    {"zeta", nullptr, Zeta, false},
    {"polygamma", nullptr, Polygamma, false},
    {"next_after", nullptr, NextAfter, true},
};

// The unsigned integers with the width of a type.
std::optional<ElementType> BitsType(ElementType type) {
  switch (BitsOf(type)) {
    case 8:
      return ElementType::kU8;
    case 16:
      return ElementType::kU16;
    case 32:
      return ElementType::kU32;
    case 64:
      return ElementType::kU64;
    default:
      return std::nullopt;
  }
}

}  // namespace

Term NextAfter(Term x, Term y) {
  const ElementType type = x.type();
  const ElementType bits = *BitsType(type);
  // Numbers of one sign are in the order of their magnitudes' bits.
  const Term x_bits = x.Bitcast(bits), y_bits = y.Bitcast(bits);
  const Term x_magnitude = Abs(x).Bitcast(bits), y_magnitude = Abs(y).Bitcast(bits);
  const Term x_sign = x_bits ^ x_magnitude, y_sign = y_bits ^ y_magnitude;
  const Term towards_zero = (y_magnitude < x_magnitude) | (x_sign != y_sign);
  const Term moved = Select(towards_zero, x_bits - 1.0, x_bits + 1.0);
  const Term from_zero = y_sign | y_bits.Like(1.0);
  const Term result = Select(x == 0.0, from_zero, moved).Bitcast(type);
  const Term nan = x.Like(std::numeric_limits<double>::quiet_NaN());
  return Select((x != x) | (y != y), nan, Select(x == y, y, result));
}

absl::Status Converter::ConvertSpecialFunction(const Op& op) { return EmitSpecialFunction(op, operands(op)); }

absl::Status Converter::EmitSpecialFunction(const Op& op, Operands inputs) {
  std::string_view name = nodes().str(op.name);
  name.remove_prefix(std::min(name.find('.') + 1, name.size()));
  constexpr std::string_view kBroadcast = "broadcast_";
  if (name.starts_with(kBroadcast)) name.remove_prefix(kBroadcast.size());
  const auto* const function = std::find_if(std::begin(kSpecialFunctions), std::end(kSpecialFunctions),
                                            [&](const SpecialFunction& f) { return f.name == name; });
  const size_t arity = function == std::end(kSpecialFunctions) ? 0 : function->unary != nullptr ? 1 : 2;
  if (arity == 0 || inputs.size() != arity) return ConvertNone(op);
  const Shape shape = shape_of(inputs[0]);
  if (!shape.IsArray() || !IsFloat(shape.element_type()) || !BitsType(shape.element_type())) return ConvertNone(op);
  for (InstructionId input : inputs) {
    if (shape_of(input) != shape) {
      return absl::InvalidArgumentError(StrCat(kInferenceError, "the operands have different shapes"));
    }
  }
  Builder builder = b();
  const bool narrow = BitsOf(shape.element_type()) < 32 && !function->in_own_type;
  Formula formula(&builder);
  std::vector<Term> terms;
  for (InstructionId input : inputs) {
    const Term term = formula.Value(input);
    terms.push_back(narrow ? term.Convert(ElementType::kF32) : term);
  }
  const Term value = arity == 1 ? function->unary(terms[0]) : function->binary(terms[0], terms[1]);
  return SetResult(op, formula.Emit(narrow ? value.Convert(shape.element_type()) : value));
}

}  // namespace hlokit::stablehlo
