// SPDX-License-Identifier: Apache-2.0
// Formulas of elementwise operations: `0.5 * (x - y)` adds the instructions that compute it. Operands of an operation
// have equal shapes; numbers become constants of the shape of the other operand.
#ifndef HLOKIT_PARSER_STABLEHLO_TERM_H_
#define HLOKIT_PARSER_STABLEHLO_TERM_H_

#include "absl/types/span.h"
#include "ir/builder/builder.h"

namespace hlokit::stablehlo {

class Term {
 public:
  // `builder` must outlive the terms.
  Term(Builder* builder, InstructionId id) : builder_(builder), id_(id) {}

  InstructionId id() const { return id_; }
  Shape shape() const { return builder_->shape_of(id_); }
  ElementType type() const { return shape().element_type(); }
  Builder& builder() const { return *builder_; }

  // A constant of the shape of this term.
  Term Like(double value) const {
    return {builder_, builder_->MakeSplat(shape(), builder_->MakeScalarConstant(type(), value))};
  }
  Term Apply(Opcode opcode) const { return {builder_, builder_->MakeLike(opcode, {id_})}; }
  Term Apply(Opcode opcode, Term other) const { return {builder_, builder_->MakeLike(opcode, {id_, other.id_})}; }
  Term Compare(ComparisonDirection direction, Term other) const {
    return {builder_, builder_->MakeCompare(direction, id_, other.id_)};
  }
  Term Convert(ElementType to) const { return {builder_, builder_->MakeConvert(id_, to)}; }
  // The same bits as another type of the same width.
  Term Bitcast(ElementType to) const {
    return {builder_, builder_->Make(Opcode::kBitcastConvert, builder_->shapes().WithElementType(shape(), to), {id_})};
  }

 private:
  Builder* builder_;
  InstructionId id_;
};

inline Term operator+(Term a, Term b) { return a.Apply(Opcode::kAdd, b); }
inline Term operator-(Term a, Term b) { return a.Apply(Opcode::kSubtract, b); }
inline Term operator*(Term a, Term b) { return a.Apply(Opcode::kMultiply, b); }
inline Term operator/(Term a, Term b) { return a.Apply(Opcode::kDivide, b); }
inline Term operator+(Term a, double b) { return a + a.Like(b); }
inline Term operator-(Term a, double b) { return a - a.Like(b); }
inline Term operator*(Term a, double b) { return a * a.Like(b); }
inline Term operator/(Term a, double b) { return a / a.Like(b); }
inline Term operator+(double a, Term b) { return b.Like(a) + b; }
inline Term operator-(double a, Term b) { return b.Like(a) - b; }
inline Term operator*(double a, Term b) { return b.Like(a) * b; }
inline Term operator/(double a, Term b) { return b.Like(a) / b; }
inline Term operator-(Term a) { return a.Apply(Opcode::kNegate); }
inline Term operator<(Term a, Term b) { return a.Compare(ComparisonDirection::kLt, b); }
inline Term operator<(Term a, double b) { return a < a.Like(b); }
inline Term operator<=(Term a, double b) { return a.Compare(ComparisonDirection::kLe, a.Like(b)); }
inline Term operator==(Term a, Term b) { return a.Compare(ComparisonDirection::kEq, b); }
inline Term operator==(Term a, double b) { return a == a.Like(b); }
inline Term operator!=(Term a, Term b) { return a.Compare(ComparisonDirection::kNe, b); }
// Of pred, or the bits of integers.
inline Term operator&(Term a, Term b) { return a.Apply(Opcode::kAnd, b); }
inline Term operator|(Term a, Term b) { return a.Apply(Opcode::kOr, b); }
inline Term operator^(Term a, Term b) { return a.Apply(Opcode::kXor, b); }

inline Term Abs(Term a) { return a.Apply(Opcode::kAbs); }
inline Term Floor(Term a) { return a.Apply(Opcode::kFloor); }
inline Term Sqrt(Term a) { return a.Apply(Opcode::kSqrt); }
inline Term Exp(Term a) { return a.Apply(Opcode::kExp); }
inline Term Log(Term a) { return a.Apply(Opcode::kLog); }
inline Term Log1p(Term a) { return a.Apply(Opcode::kLog1p); }
inline Term Sin(Term a) { return a.Apply(Opcode::kSin); }
inline Term Cos(Term a) { return a.Apply(Opcode::kCos); }
inline Term Pow(Term a, Term b) { return a.Apply(Opcode::kPower, b); }
inline Term Remainder(Term a, double b) { return a.Apply(Opcode::kRemainder, a.Like(b)); }
inline Term Select(Term condition, Term on_true, Term on_false) {
  Builder& builder = on_true.builder();
  return {&builder, builder.Make(Opcode::kSelect, on_true.shape(), {condition.id(), on_true.id(), on_false.id()})};
}

// The polynomial of the coefficients, those of high powers first, by Horner's rule.
inline Term Polynomial(Term x, absl::Span<const double> coefficients) {
  Term value = x.Like(coefficients[0]);
  for (double c : coefficients.subspan(1)) value = value * x + c;
  return value;
}

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_TERM_H_
