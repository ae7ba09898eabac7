// SPDX-License-Identifier: Apache-2.0
// Elementwise ops of two or three tensors.
#include <limits>

#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

// Runs `formula` on both operands in the result's type. Arithmetic on pred uses s32.
template <typename Formula>
void Arithmetic(LoweringContext& n, size_t i, size_t j, Formula formula) {
  const ElementType type = PromotedType(n.in(i), n.in(j));
  const ElementType compute = type == ElementType::kPred ? ElementType::kS32 : type;
  n.Return(lazy::Cast(formula(lazy::Cast(n.in(i), compute), lazy::Cast(n.in(j), compute)), type));
}

void Compared(LoweringContext& n, ComparisonDirection direction) {
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  n.Return(Compare(direction, a, b));
}

XlaOp Zero(XlaOp x) { return Number(x, 0); }

// Returns where the remainder's sign differs from the divisor's.
XlaOp WrongSign(XlaOp r, XlaOp b) { return Ne(r, Zero(r)) & Ne(Lt(r, Zero(r)), Lt(b, Zero(b))); }

XlaOp FloorDivideOf(XlaOp a, XlaOp b) {
  const XlaOp r = Binary(Opcode::kRemainder, a, b);
  if (a.is_float()) {
    // Python's definition: the difference to the exact remainder divides evenly, up to rounding.
    XlaOp q = (a - r) / b;
    q = Select(WrongSign(r, b), q - 1.0, q);
    const XlaOp floor = Unary(Opcode::kFloor, q);
    const XlaOp rounded = Select(Gt(q - floor, Number(q, 0.5)), floor + 1.0, floor);
    return Select(Eq(b, Zero(b)), a / b, rounded);
  }
  return a / b - lazy::Cast(WrongSign(BroadcastTo(r, r.dims()), b), a.type());
}

XlaOp TruncateOf(XlaOp q) { return Select(Lt(q, Zero(q)), Unary(Opcode::kCeil, q), Unary(Opcode::kFloor, q)); }

void Logical(LoweringContext& n, Opcode opcode) {
  n.Return(Binary(opcode, lazy::Cast(n.in(0), ElementType::kPred), lazy::Cast(n.in(1), ElementType::kPred)));
}
void Bitwise(LoweringContext& n, Opcode opcode) {
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  n.Return(Binary(opcode, a, b));
}

// Returns the promoted type of the first three operands.
ElementType TypeOfThree(LoweringContext& n) {
  ResultTypeState p;
  for (size_t i = 0; i < 3; ++i) p.Add(n.in(i).shape());
  return p.result();
}

// Returns a factor that does not take part in type promotion.
XlaOp Factor(LoweringContext& n, size_t i, ElementType type) {
  if (ScalarTypeCategory(n.in(i).type()) == 2 && ScalarTypeCategory(type) < 2) {
    return n.emitter().Fail("For integral input tensors, argument alpha must not be a floating point number.");
  }
  return lazy::Cast(n.in(i), type);
}

}  // namespace

void Add(LoweringContext& n) {
  Arithmetic(n, 0, 1, [&](XlaOp a, XlaOp b) { return a + b * Factor(n, 2, b.type()); });
}
void Sub(LoweringContext& n) {
  Arithmetic(n, 0, 1, [&](XlaOp a, XlaOp b) { return a - b * Factor(n, 2, b.type()); });
}
void Rsub(LoweringContext& n) {
  Arithmetic(n, 0, 1, [&](XlaOp a, XlaOp b) { return b - a * Factor(n, 2, b.type()); });
}
void Mul(LoweringContext& n) {
  Arithmetic(n, 0, 1, [](XlaOp a, XlaOp b) { return a * b; });
}
void Div(LoweringContext& n) {
  const ElementType type = FloatingOf(PromotedType(n.in(0), n.in(1)));
  n.Return(lazy::Cast(n.in(0), type) / lazy::Cast(n.in(1), type));
}
void DivMode(LoweringContext& n) {
  const std::string mode = n.str(2);
  if (mode.empty()) return Div(n);
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  if (mode == "floor") return n.Return(FloorDivideOf(a, b));
  if (mode != "trunc") {
    n.emitter().Fail("rounding_mode is none, \"trunc\" or \"floor\"");
    return;
  }
  n.Return(a.is_float() ? TruncateOf(a / b) : a / b);
}
void FloorDivide(LoweringContext& n) {
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  n.Return(FloorDivideOf(a, b));
}
void Remainder(LoweringContext& n) {
  Arithmetic(n, 0, 1, [](XlaOp a, XlaOp b) {
    const XlaOp r = Binary(Opcode::kRemainder, a, b);
    return Select(WrongSign(r, b), r + b, r);
  });
}
void Fmod(LoweringContext& n) {
  Arithmetic(n, 0, 1, [](XlaOp a, XlaOp b) { return Binary(Opcode::kRemainder, a, b); });
}
void Pow(LoweringContext& n) {
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  n.Return(Binary(Opcode::kPower, a, b));
}
void Atan2(LoweringContext& n) {
  const ElementType type = FloatingOf(PromotedType(n.in(0), n.in(1)));
  n.Return(Binary(Opcode::kAtan2, lazy::Cast(n.in(0), type), lazy::Cast(n.in(1), type)));
}
void Maximum(LoweringContext& n) {
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  n.Return(Max(a, b));
}
void Minimum(LoweringContext& n) {
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  n.Return(Min(a, b));
}
void Addcmul(LoweringContext& n) {
  const ElementType type = TypeOfThree(n);
  const ElementType wide = WideType(type);
  const auto arg = [&](size_t i) { return lazy::Cast(n.in(i), wide); };
  n.Return(lazy::Cast(arg(0) + arg(1) * arg(2) * arg(3), type));
}
void Addcdiv(LoweringContext& n) {
  const ElementType type = TypeOfThree(n);
  if (ScalarTypeCategory(type) < 2) {
    n.emitter().Fail("addcdiv does not divide integers");
    return;
  }
  const ElementType wide = WideType(type);
  const auto arg = [&](size_t i) { return lazy::Cast(n.in(i), wide); };
  n.Return(lazy::Cast(arg(0) + arg(1) / arg(2) * arg(3), type));
}
void Lerp(LoweringContext& n) {
  const ElementType type = n.in(0).type();
  const XlaOp a = Wide(n.in(0)), b = Wide(n.in(1)), w = lazy::Cast(n.in(2), a.type());
  // Interpolates from the nearer end, so that both ends are exact.
  const XlaOp near_a = a + w * (b - a);
  const XlaOp near_b = b - (b - a) * (1.0 - w);
  n.Return(lazy::Cast(Select(Lt(lazy::Unary(Opcode::kAbs, w), Number(w, 0.5)), near_a, near_b), type));
}
void Eq(LoweringContext& n) { Compared(n, ComparisonDirection::kEq); }
void Ne(LoweringContext& n) { Compared(n, ComparisonDirection::kNe); }
void Lt(LoweringContext& n) { Compared(n, ComparisonDirection::kLt); }
void Le(LoweringContext& n) { Compared(n, ComparisonDirection::kLe); }
void Gt(LoweringContext& n) { Compared(n, ComparisonDirection::kGt); }
void Ge(LoweringContext& n) { Compared(n, ComparisonDirection::kGe); }
void LogicalAnd(LoweringContext& n) { Logical(n, Opcode::kAnd); }
void LogicalOr(LoweringContext& n) { Logical(n, Opcode::kOr); }
void LogicalXor(LoweringContext& n) { Logical(n, Opcode::kXor); }
void BitwiseAnd(LoweringContext& n) { Bitwise(n, Opcode::kAnd); }
void BitwiseOr(LoweringContext& n) { Bitwise(n, Opcode::kOr); }
void BitwiseXor(LoweringContext& n) { Bitwise(n, Opcode::kXor); }
void Where(LoweringContext& n) {
  const auto [a, b] = Promoted(n.in(1), n.in(2));
  n.Return(Select(lazy::Cast(n.in(0), ElementType::kPred), a, b));
}
void MaskedFill(LoweringContext& n) {
  const XlaOp x = n.in(0);
  if (n.in(1).type() != ElementType::kPred && n.in(1).type() != ElementType::kU8) {
    n.emitter().Fail("only boolean masks are supported");
    return;
  }
  n.Return(Select(lazy::Cast(n.in(1), ElementType::kPred), lazy::Cast(n.in(2), x.type()), x));
}
void Clamp(LoweringContext& n) {
  if (!n.has(1) && !n.has(2)) {
    n.emitter().Fail("at least one of 'min' or 'max' must not be none");
    return;
  }
  ResultTypeState p;
  for (size_t i = 0; i < 3; ++i) {
    if (n.has(i)) p.Add(n.in(i).shape());
  }
  const ElementType type = p.result();
  XlaOp x = lazy::Cast(n.in(0), type);
  if (n.has(1)) x = Max(x, lazy::Cast(n.in(1), type));
  if (n.has(2)) x = Min(x, lazy::Cast(n.in(2), type));
  n.Return(x);
}

}  // namespace hlokit::lazy::lower
