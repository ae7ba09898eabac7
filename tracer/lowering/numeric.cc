// SPDX-License-Identifier: Apache-2.0
// Elementwise ops of two tensors beyond arithmetic: integers, bits of floats, logarithms of sums, comparison with a
// tolerance.
#include <limits>
#include <numbers>

#include "ir/core/str_cat.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/lowering/arithmetic.h"
#include "tracer/lowering/loop.h"

namespace hlokit::lazy::lower {
namespace {

constexpr double kInfinitely = std::numeric_limits<double>::infinity();

// Fails in torch's words unless the promoted type of both operands is accepted.
bool Accepts(LoweringContext& n, std::string_view function, bool integers) {
  const ElementType type = PromotedType(n.in(0), n.in(1));
  if (integers ? IsInteger(type) : IsFloat(type)) return true;
  n.emitter().Fail(
      absl::InvalidArgumentError(StrCat("\"", function, "\" not implemented for '", TorchTypeName(type), "'")));
  return false;
}

// Both operands as floats wide enough for formulas of several steps; the result in their type.
template <typename Formula>
void WideBinary(LoweringContext& n, Formula formula) {
  const ElementType type = FloatingOf(PromotedType(n.in(0), n.in(1)));
  const ElementType wide = WideType(type);
  n.Return(lazy::Cast(formula(lazy::Cast(n.in(0), wide), lazy::Cast(n.in(1), wide)), type));
}

ElementType BitsTypeOf(ElementType type) {
  switch (BitsOf(type)) {
    case 16:
      return ElementType::kS16;
    case 32:
      return ElementType::kS32;
    default:
      return ElementType::kS64;
  }
}

XlaOp BitcastTo(XlaOp x, ElementType type) {
  return x.ok() ? x.emitter().Take(x.emitter().builder().BitcastConvert(x.id(), type)) : x;
}

// Returns if the sign bit is set, also that of zeros and NaN.
XlaOp HasSign(XlaOp x) {
  if (x.type() == ElementType::kPred) return Full(x.emitter(), ElementType::kPred, x.dims(), false);
  const XlaOp number = x.is_float() ? BitcastTo(x, BitsTypeOf(x.type())) : x;
  return Lt(number, Number(number, 0));
}

// Returns log_base(base^a + base^b): the larger one plus a correction.
XlaOp LogAdd(XlaOp a, XlaOp b, double log_base) {
  const XlaOp difference = -lazy::Abs(a - b);
  const XlaOp correction = Unary(Opcode::kLog1p, lazy::Exp(difference * log_base)) / log_base;
  // Equal infinities have no difference.
  return Select(Eq(a, b) & Eq(lazy::Abs(a), Number(a, kInfinitely)), a, Max(a, b) + correction);
}

// NaN counts as missing.
void IgnoringNan(LoweringContext& n, Opcode opcode) {
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  const XlaOp value = Binary(opcode, a, b);
  n.Return(a.is_float() ? Select(IsNan(a), b, Select(IsNan(b), a, value)) : value);
}

// Euclid's algorithm on all elements at once, until every remainder is zero.
XlaOp GreatestDivisor(XlaOp a, XlaOp b) {
  const auto magnitude = [](XlaOp x) { return IsSigned(x.type()) ? lazy::Abs(x) : x; };
  const DimVector dims = BroadcastDims(a.dims(), b.dims()).value_or(DimVector());
  a = magnitude(BroadcastTo(a, dims));
  b = magnitude(BroadcastTo(b, dims));
  return Loop(
      a.emitter(), {a, b},
      [](absl::Span<const XlaOp> s) { return Reduce(Opcode::kOr, Ne(s[1], Number(s[1], 0)), AllDims(s[1])); },
      [](absl::Span<const XlaOp> s) {
        const XlaOp zero = Number(s[1], 0), done = Eq(s[1], zero);
        const XlaOp rest = Binary(Opcode::kRemainder, s[0], Select(done, Number(s[1], 1), s[1]));
        return std::vector<XlaOp>{Select(done, s[0], s[1]), Select(done, zero, rest)};
      })[0];
}

}  // namespace

void Hypot(LoweringContext& n) {
  if (!Accepts(n, "hypot_cpu", false)) return;
  WideBinary(n, [](XlaOp a, XlaOp b) {
    // large sqrt(1 + (small / large)^2) does not overflow; infinity wins over NaN.
    const XlaOp x = lazy::Abs(a), y = lazy::Abs(b);
    const XlaOp large = Max(x, y), small = Min(x, y);
    const XlaOp none = Eq(large, Number(x, 0));
    const XlaOp ratio = small / Select(none, Number(x, 1), large);
    const XlaOp length = Select(none, Number(x, 0), large * Sqrt(1.0 + ratio * ratio));
    const XlaOp infinite = Eq(x, Number(x, kInfinitely)) | Eq(y, Number(x, kInfinitely));
    return Select(infinite, Number(x, kInfinitely), length);
  });
}
void Copysign(LoweringContext& n) {
  const ElementType type = FloatingOf(PromotedType(n.in(0), n.in(1)));
  const XlaOp x = lazy::Abs(lazy::Cast(n.in(0), type));
  n.Return(Select(HasSign(lazy::Cast(n.in(1), type)), -x, x));
}
void Signbit(LoweringContext& n) { n.Return(HasSign(n.in(0))); }
void Heaviside(LoweringContext& n) {
  const XlaOp x = n.in(0), at_zero = n.in(1);
  if (x.type() != at_zero.type()) {
    n.emitter().Fail("heaviside is not yet implemented for tensors with different dtypes.");
    return;
  }
  n.Return(Select(Eq(x, Number(x, 0)), at_zero, lazy::Cast(Gt(x, Number(x, 0)), x.type())));
}
void Fmax(LoweringContext& n) { IgnoringNan(n, Opcode::kMaximum); }
void Fmin(LoweringContext& n) { IgnoringNan(n, Opcode::kMinimum); }
void Gcd(LoweringContext& n) {
  if (!Accepts(n, "gcd_cpu", true)) return;
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  n.Return(GreatestDivisor(a, b));
}
void Lcm(LoweringContext& n) {
  if (!Accepts(n, "lcm_cpu", true)) return;
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  const XlaOp divisor = GreatestDivisor(a, b);
  const XlaOp none = Eq(divisor, Number(divisor, 0));
  const XlaOp product = a / Select(none, Number(divisor, 1), divisor) * b;
  n.Return(Select(none, Number(divisor, 0), IsSigned(product.type()) ? lazy::Abs(product) : product));
}
void Logaddexp(LoweringContext& n) {
  if (!Accepts(n, "logaddexp_cpu", false)) return;
  WideBinary(n, [](XlaOp a, XlaOp b) { return LogAdd(a, b, 1); });
}
void Logaddexp2(LoweringContext& n) {
  if (!Accepts(n, "logaddexp2_cpu", false)) return;
  WideBinary(n, [](XlaOp a, XlaOp b) { return LogAdd(a, b, std::numbers::ln2); });
}
void Xlogy(LoweringContext& n) {
  WideBinary(n, [](XlaOp x, XlaOp y) {
    return Select(IsNan(y), y, Select(Eq(x, Number(x, 0)), Number(x, 0), x * lazy::Log(y)));
  });
}
void Xlog1py(LoweringContext& n) {
  WideBinary(n, [](XlaOp x, XlaOp y) {
    return Select(IsNan(y), y, Select(Eq(x, Number(x, 0)), Number(x, 0), x * Unary(Opcode::kLog1p, y)));
  });
}
void Sinc(LoweringContext& n) {
  const XlaOp x = Wide(n.in(0)), angle = x * std::numbers::pi, none = Eq(x, Number(x, 0));
  const XlaOp value = Unary(Opcode::kSin, angle) / Select(none, Number(x, 1), angle);
  n.Return(lazy::Cast(Select(none, Number(x, 1), value), FloatingOf(n.in(0).type())));
}
void Entr(LoweringContext& n) {
  const XlaOp x = Wide(n.in(0)), zero = Number(x, 0);
  const XlaOp value = Select(Gt(x, zero), -x * lazy::Log(x), Select(Eq(x, zero), zero, Number(x, -kInfinitely)));
  n.Return(lazy::Cast(Select(IsNan(x), x, value), FloatingOf(n.in(0).type())));
}
void Isposinf(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(x.is_float() ? Eq(x, Number(x, kInfinitely)) : Full(n.emitter(), ElementType::kPred, x.dims(), false));
}
void Isneginf(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(x.is_float() ? Eq(x, Number(x, -kInfinitely)) : Full(n.emitter(), ElementType::kPred, x.dims(), false));
}
// self, other, rtol, atol, equal_nan
void Isclose(LoweringContext& n) {
  const XlaOp x = n.in(0), y = n.in(1);
  const double rtol = n.float_arg(2), atol = n.float_arg(3);
  if (x.type() != y.type()) {
    n.emitter().Fail(
        absl::InvalidArgumentError(StrCat(TorchTypeName(x.type()), " did not match ", TorchTypeName(y.type()))));
    return;
  }
  if (!(rtol >= 0)) return (void)n.emitter().Fail("rtol must be greater than or equal to zero");
  if (!(atol >= 0)) return (void)n.emitter().Fail("atol must be greater than or equal to zero");
  XlaOp close = Eq(x, y);
  if (n.bool_arg(4) && x.is_float()) close = close | (IsNan(x) & IsNan(y));
  if (rtol == 0 && atol == 0) return n.Return(close);
  const XlaOp a = Floating(x), b = Floating(y);
  const XlaOp allowed = lazy::Abs(b * rtol) + atol, error = lazy::Abs(a - b);
  n.Return(close | (Unary(Opcode::kIsFinite, error) & Le(error, allowed)));
}
void Nextafter(LoweringContext& n) {
  if (!Accepts(n, "nextafter_cpu", false)) return;
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  const XlaOp bits = BitcastTo(a, BitsTypeOf(a.type()));
  // As integers, floats of one sign are in order of magnitude.
  const XlaOp outward = Eq(Lt(a, b), Gt(a, Number(a, 0)));
  const XlaOp moved = Select(outward, bits + Number(bits, 1), bits - Number(bits, 1));
  const XlaOp smallest = BitcastTo(Number(bits, 1), a.type());
  const XlaOp from_zero = Select(Lt(b, Number(b, 0)), -smallest, smallest);
  const XlaOp value = Select(Eq(a, b), b, Select(Eq(a, Number(a, 0)), from_zero, BitcastTo(moved, a.type())));
  n.Return(Select(IsNan(a) | IsNan(b), a + b, value));
}

namespace {

void Shift(LoweringContext& n, bool left) {
  if (!Accepts(n, left ? "lshift_cpu" : "rshift_cpu", true)) return;
  const auto [a, b] = Promoted(n.in(0), n.in(1));
  const Opcode right = IsSigned(a.type()) ? Opcode::kShiftRightArithmetic : Opcode::kShiftRightLogical;
  n.Return(Binary(left ? Opcode::kShiftLeft : right, a, b));
}

}  // namespace

void ShiftLeft(LoweringContext& n) { Shift(n, true); }
void ShiftRight(LoweringContext& n) { Shift(n, false); }

}  // namespace hlokit::lazy::lower
