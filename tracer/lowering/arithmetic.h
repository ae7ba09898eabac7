// SPDX-License-Identifier: Apache-2.0
// Shared by lowerings of arithmetic: operands in the type of the result, wider types for multi-step formulas.
#ifndef HLOKIT_TRACER_LOWERING_ARITHMETIC_H_
#define HLOKIT_TRACER_LOWERING_ARITHMETIC_H_

#include <limits>
#include <utility>

#include "tracer/graph/type_promotion.h"
#include "tracer/lowering/lowering_context.h"

namespace hlokit::lazy {

// Converts integers and bool to f32.
inline XlaOp Floating(XlaOp x) { return Cast(x, FloatingOf(x.type())); }
// Returns the type for multi-step formulas: f32 for the 16-bit floats.
inline ElementType WideType(ElementType t) {
  return t == ElementType::kBF16 || t == ElementType::kF16 ? ElementType::kF32 : t;
}
inline XlaOp Wide(XlaOp x) { return Cast(x, WideType(FloatingOf(x.type()))); }
inline ElementType PromotedType(XlaOp a, XlaOp b) {
  ResultTypeState p;
  p.Add(a.shape());
  p.Add(b.shape());
  return p.result();
}
// Evaluates a polynomial of x by Horner's rule, the highest coefficient first.
inline XlaOp Polynomial(XlaOp x, absl::Span<const double> coefficients) {
  XlaOp p = Number(x, coefficients[0]);
  for (double c : coefficients.subspan(1)) p = p * x + c;
  return p;
}
// Returns exp(y^2) erfc(y) for y >= 0.
XlaOp ScaledErfc(XlaOp y);
// Converts both operands to torch's result type.
inline std::pair<XlaOp, XlaOp> Promoted(XlaOp a, XlaOp b) {
  const ElementType t = PromotedType(a, b);
  return {Cast(a, t), Cast(b, t)};
}
// Returns all dimensions.
inline DimVector AllDims(XlaOp x) {
  DimVector dims(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  return dims;
}
inline int64_t WrapDim(int64_t dim, int64_t rank) { return dim < 0 ? dim + (rank == 0 ? 1 : rank) : dim; }
// Returns the dimensions of an argument that may be absent or empty (meaning all), nonnegative and sorted; an error if
// out of range.
DimVector ReducedDims(LoweringContext& n, size_t arg, XlaOp x);
// Returns 1/(1+exp(-x)).
inline XlaOp Logistic(XlaOp x) { return Unary(Opcode::kLogistic, x); }
// Returns log(1+exp(x)) without overflow.
inline XlaOp SoftplusOf(XlaOp x) { return Max(x, Number(x, 0)) + Unary(Opcode::kLog1p, Exp(-Abs(x))); }
// Of real numbers these return the argument.
inline XlaOp RealPart(XlaOp x) { return IsComplex(x.type()) ? Unary(Opcode::kReal, x) : x; }
inline XlaOp Conjugate(XlaOp x) {
  if (!IsComplex(x.type())) return x;
  return Binary(Opcode::kComplex, Unary(Opcode::kReal, x), -Unary(Opcode::kImag, x));
}
// Returns x / |x|, given the absolute values; 1 for those that are 0 or so small that their parts have few digits. By
// parts: a complex quotient squares its divisor, which may vanish.
inline XlaOp PhaseOf(XlaOp x, XlaOp size) {
  const bool wide = size.type() == ElementType::kF64;
  const double least = wide ? std::numeric_limits<double>::min() / std::numeric_limits<double>::epsilon()
                            : std::numeric_limits<float>::min() / std::numeric_limits<float>::epsilon();
  const XlaOp none = Lt(size, Number(size, least));
  const XlaOp divisor = Select(none, Number(size, 1), size);
  const XlaOp real = Select(none, Number(size, 1), RealPart(x) / divisor);
  if (!IsComplex(x.type())) return real;
  const XlaOp imaginary = Unary(Opcode::kImag, x) / divisor;
  return Binary(Opcode::kComplex, real, Select(none, Number(size, 0), imaginary));
}
inline XlaOp IsNan(XlaOp x) { return Ne(x, x); }

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_LOWERING_ARITHMETIC_H_
