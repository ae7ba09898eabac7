// SPDX-License-Identifier: Apache-2.0
// Orthogonal polynomials whose degrees are elements of a tensor: recurrences in a loop that ends with the largest
// degree.
#include <limits>
#include <vector>

#include "tracer/lowering/arithmetic.h"
#include "tracer/lowering/loop.h"

namespace hlokit::lazy::lower {
namespace {

enum class Family { kChebyshevT, kChebyshevU, kChebyshevV, kChebyshevW, kHermiteH, kHermiteHe, kLaguerre, kLegendre };

bool IsChebyshev(Family family) {
  return family == Family::kChebyshevT || family == Family::kChebyshevU || family == Family::kChebyshevV ||
         family == Family::kChebyshevW;
}

XlaOp FirstDegree(Family family, XlaOp x) {
  switch (family) {
    case Family::kChebyshevT:
    case Family::kHermiteHe:
    case Family::kLegendre:
      return x;
    case Family::kChebyshevU:
    case Family::kHermiteH:
      return x + x;
    case Family::kChebyshevV:
      return x + x - 1.0;
    case Family::kChebyshevW:
      return x + x + 1.0;
    case Family::kLaguerre:
      return 1.0 - x;
  }
  return x;
}

// The polynomial of degree k + 1, given `q` of degree k and `p` of degree k - 1.
XlaOp NextDegree(Family family, XlaOp x, XlaOp k, XlaOp q, XlaOp p) {
  switch (family) {
    case Family::kChebyshevT:
    case Family::kChebyshevU:
    case Family::kChebyshevV:
    case Family::kChebyshevW:
      return (x + x) * q - p;
    case Family::kHermiteH:
      return (x + x) * q - 2.0 * k * p;
    case Family::kHermiteHe:
      return x * q - k * p;
    case Family::kLaguerre:
      return ((k + k + 1.0 - x) * q - k * p) / (k + 1.0);
    case Family::kLegendre:
      return ((k + k + 1.0) * x * q - k * p) / (k + 1.0);
  }
  return q;
}

// 1, or -1 for an odd degree.
XlaOp Parity(XlaOp n) {
  const XlaOp odd = Ne(n - 2.0 * Unary(Opcode::kFloor, n * 0.5), Number(n, 0));
  return Select(odd, Number(n, -1), Number(n, 1));
}

// The values of Chebyshev's polynomials at cos(angle) inside, and at 1 and -1.
XlaOp ClosedForm(Family family, XlaOp x, XlaOp n) {
  const XlaOp inside = Lt(lazy::Abs(x), Number(x, 1));
  const XlaOp y = Select(inside, x, Number(x, 0));
  // acos y = 2 atan2(sqrt(1 - y), sqrt(1 + y))
  const XlaOp angle = 2.0 * Binary(Opcode::kAtan2, Sqrt(1.0 - y), Sqrt(1.0 + y));
  const auto sine = [](XlaOp a) { return Unary(Opcode::kSin, a); };
  const auto cosine = [](XlaOp a) { return Unary(Opcode::kCos, a); };
  const XlaOp one = FullLike(n, 1), twice = n + n + 1.0;
  XlaOp between, right = one, left = one;
  switch (family) {
    case Family::kChebyshevU:
      between = sine((n + 1.0) * angle) / sine(angle);
      right = left = n + 1.0;
      break;
    case Family::kChebyshevV:
      between = cosine((n + 0.5) * angle) / cosine(angle * 0.5);
      left = twice;
      break;
    case Family::kChebyshevW:
      between = sine((n + 0.5) * angle) / sine(angle * 0.5);
      right = twice;
      break;
    case Family::kChebyshevT:
    case Family::kHermiteH:
    case Family::kHermiteHe:
    case Family::kLaguerre:
    case Family::kLegendre:
      between = cosine(n * angle);
      break;
  }
  return Select(inside, between, Select(Gt(x, Number(x, 0)), right, left * Parity(n)));
}

// Whether the closed form has the value: it is less accurate for small degrees, and the recurrence slow for large ones.
XlaOp HasClosedForm(Family family, XlaOp x, XlaOp n, double most) {
  const XlaOp size = lazy::Abs(x), one = Number(x, 1);
  const XlaOp at_end = Eq(size, one);
  if (family == Family::kLegendre) return at_end;
  return at_end | (Gt(n, Number(n, most)) & Lt(size, one));
}

// x, n
void Evaluate(LoweringContext& c, Family family, bool shifted = false) {
  const ElementType type = FloatingOf(PromotedType(c.in(0), c.in(1)));
  const ElementType wide = WideType(type);
  XlaOp x = lazy::Cast(c.in(0), wide), degree = lazy::Cast(c.in(1), wide);
  const std::optional<DimVector> dims = BroadcastDims(x.dims(), degree.dims());
  if (!x.ok() || !degree.ok()) return;
  if (!dims) return (void)c.emitter().Fail("x and n have sizes that cannot be broadcast to each other");
  x = BroadcastTo(x, *dims);
  degree = BroadcastTo(degree, *dims);
  if (shifted) x = x + x - 1.0;
  // Truncated to an integer: those between -1 and 0 are 0.
  const XlaOp counts = Gt(degree, Number(degree, -1)) & Unary(Opcode::kIsFinite, degree);
  const XlaOp n = Select(counts, Unary(Opcode::kFloor, Max(degree, Number(degree, 0))), Number(degree, -1));
  XlaOp closed;
  if (IsChebyshev(family) || family == Family::kLegendre) {
    closed = HasClosedForm(family, x, n, shifted || family == Family::kChebyshevT ? 6 : 8);
  }
  const bool hermite = family == Family::kHermiteH || family == Family::kHermiteHe;
  const XlaOp too_large = Gt(n, Number(n, type == ElementType::kF64 ? 512 : 128));
  XlaOp steps = n;
  if (closed.ok()) steps = Select(closed, Number(n, 0), n);
  if (hermite) steps = Select(too_large, Number(n, 0), n);
  const XlaOp first = FirstDegree(family, x);
  const auto goes_on = [](absl::Span<const XlaOp> v) { return Lt(v[0], v[1]) & !IsNan(v[2]); };
  // degree, last degree, its polynomial, that before, x
  const std::vector<XlaOp> end = Loop(
      c.emitter(), {FullLike(x, 1), steps, first, FullLike(x, 1), x},
      [&](absl::Span<const XlaOp> v) { return Reduce(Opcode::kOr, goes_on(v), AllDims(v[0])); },
      [&](absl::Span<const XlaOp> v) -> std::vector<XlaOp> {
        const XlaOp more = goes_on(v);
        const XlaOp next = NextDegree(family, v[4], v[0], v[2], v[3]);
        return {Select(more, v[0] + 1.0, v[0]), v[1], Select(more, next, v[2]), Select(more, v[2], v[3]), v[4]};
      });
  XlaOp value = end[2];
  if (closed.ok()) value = Select(closed, ClosedForm(family, x, n), value);
  if (hermite) value = Select(too_large, Number(value, std::numeric_limits<double>::quiet_NaN()), value);
  value = Select(Eq(n, Number(n, 0)), Number(value, 1), Select(Lt(n, Number(n, 0)), Number(value, 0), value));
  c.Return(lazy::Cast(value, type));
}

}  // namespace

void ChebyshevT(LoweringContext& n) { Evaluate(n, Family::kChebyshevT); }
void ChebyshevU(LoweringContext& n) { Evaluate(n, Family::kChebyshevU); }
void ChebyshevV(LoweringContext& n) { Evaluate(n, Family::kChebyshevV); }
void ChebyshevW(LoweringContext& n) { Evaluate(n, Family::kChebyshevW); }
void ShiftedChebyshevT(LoweringContext& n) { Evaluate(n, Family::kChebyshevT, true); }
void ShiftedChebyshevU(LoweringContext& n) { Evaluate(n, Family::kChebyshevU, true); }
void ShiftedChebyshevV(LoweringContext& n) { Evaluate(n, Family::kChebyshevV, true); }
void ShiftedChebyshevW(LoweringContext& n) { Evaluate(n, Family::kChebyshevW, true); }
void HermiteH(LoweringContext& n) { Evaluate(n, Family::kHermiteH); }
void HermiteHe(LoweringContext& n) { Evaluate(n, Family::kHermiteHe); }
void LaguerreL(LoweringContext& n) { Evaluate(n, Family::kLaguerre); }
void LegendreP(LoweringContext& n) { Evaluate(n, Family::kLegendre); }

}  // namespace hlokit::lazy::lower
