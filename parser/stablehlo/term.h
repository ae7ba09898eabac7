// SPDX-License-Identifier: Apache-2.0
// Formulas of elementwise operations: `0.5 * (x - y)` is a term, whose instructions are added when the whole is known,
// so that their order is that of a walk along the formula, not that in which the compiler evaluates operands. Operands
// of an operation have equal shapes; numbers become constants of the shape of the other operand.
#ifndef HLOKIT_PARSER_STABLEHLO_TERM_H_
#define HLOKIT_PARSER_STABLEHLO_TERM_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/builder/builder.h"

namespace hlokit::stablehlo {

class Term;

// Owns terms, and adds their instructions.
class Formula {
 public:
  // `builder` must outlive the formula, which must outlive its terms.
  explicit Formula(Builder* builder) : builder_(builder) {}
  Formula(const Formula&) = delete;
  Formula& operator=(const Formula&) = delete;

  // The value of an instruction.
  Term Value(InstructionId id);
  // Adds the instructions of a term: operands first, from left to right, each once.
  InstructionId Emit(Term term);

 private:
  friend class Term;
  struct Node {
    Opcode opcode = Opcode::kParameter;
    Shape shape;
    std::array<uint32_t, 3> operands = {};
    size_t operand_count = 0;
    double number = 0;                                         // of kConstant
    ComparisonDirection direction = ComparisonDirection::kEq;  // of kCompare
    InstructionId made = InstructionId();                      // invalid: not yet
  };

  Term Add(const Node& node);

  Builder* builder_;
  std::vector<Node> nodes_;
};

class Term {
 public:
  Shape shape() const { return formula_->nodes_[node_].shape; }
  ElementType type() const { return shape().element_type(); }

  // A constant of the shape of this term.
  Term Like(double value) const { return Add({.opcode = Opcode::kConstant, .shape = shape(), .number = value}); }
  Term Apply(Opcode opcode) const { return Add({opcode, shape(), {node_}, 1}); }
  Term Apply(Opcode opcode, Term other) const { return Add({opcode, shape(), {node_, other.node_}, 2}); }
  Term Compare(ComparisonDirection direction, Term other) const {
    return Add({Opcode::kCompare, WithType(ElementType::kPred), {node_, other.node_}, 2, 0, direction});
  }
  Term Convert(ElementType to) const { return Add({Opcode::kConvert, WithType(to), {node_}, 1}); }
  // The same bits as another type of the same width.
  Term Bitcast(ElementType to) const { return Add({Opcode::kBitcastConvert, WithType(to), {node_}, 1}); }
  // Of this term, which is of pred, those of the other two.
  Term Choose(Term on_true, Term on_false) const {
    return Add({Opcode::kSelect, on_true.shape(), {node_, on_true.node_, on_false.node_}, 3});
  }

 private:
  friend class Formula;
  Term(Formula* formula, uint32_t node) : formula_(formula), node_(node) {}
  Term Add(const Formula::Node& node) const { return formula_->Add(node); }
  Shape WithType(ElementType type) const { return formula_->builder_->shapes().WithElementType(shape(), type); }

  Formula* formula_;
  uint32_t node_;
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
inline Term Select(Term condition, Term on_true, Term on_false) { return condition.Choose(on_true, on_false); }

// The polynomial of the coefficients, those of high powers first, by Horner's rule.
inline Term Polynomial(Term x, absl::Span<const double> coefficients) {
  Term value = x.Like(coefficients[0]);
  for (double c : coefficients.subspan(1)) value = value * x + c;
  return value;
}

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_TERM_H_
