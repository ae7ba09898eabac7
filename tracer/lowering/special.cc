// SPDX-License-Identifier: Apache-2.0
// Special functions: gamma and zeta functions, modified Bessel functions, the scaled complementary error function.
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

#include "tracer/lowering/arithmetic.h"
#include "tracer/lowering/loop.h"

namespace hlokit::lazy::lower {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Runs `formula` in a wide float type and converts the result to the type of argument `arg`.
template <typename Formula>
void InWideType(LoweringContext& n, size_t arg, Formula formula) {
  const XlaOp x = n.in(arg);
  n.Return(lazy::Cast(formula(Wide(x)), FloatingOf(x.type())));
}

// Lanczos' approximation with g = 7: gamma(z + 1) = sqrt(2 pi) t^(z + 1/2) e^-t A(z), t = z + 7.5, for z > -1/2.
constexpr double kLanczosG = 7;
constexpr double kLanczosBase = 0.99999999999980993;
constexpr double kLanczos[] = {676.5203681218851,  -1259.1392167224028,  771.32342877765313,    -176.61502916214059,
                               12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};

// Returns A(z), and its derivative if asked for.
XlaOp LanczosSum(XlaOp z, XlaOp* derivative = nullptr) {
  XlaOp sum = Number(z, kLanczosBase), slope = Number(z, 0);
  for (size_t i = 0; i < std::size(kLanczos); ++i) {
    const XlaOp divisor = z + static_cast<double>(i + 1);
    sum = sum + kLanczos[i] / divisor;
    if (derivative != nullptr) slope = slope - kLanczos[i] / (divisor * divisor);
  }
  if (derivative != nullptr) *derivative = slope;
  return sum;
}

// Returns x - floor(x), with sin and cos of pi times it accurate also for large x.
XlaOp Fraction(XlaOp x) { return x - Unary(Opcode::kFloor, x); }

XlaOp DigammaOf(XlaOp x) {
  const XlaOp reflect = Lt(x, Number(x, 0.5));
  const XlaOp z = Select(reflect, -x, x - 1.0);
  XlaOp slope;
  const XlaOp sum = LanczosSum(z, &slope);
  const XlaOp t = z + (kLanczosG + 0.5);
  const XlaOp log_t = std::log(kLanczosG + 0.5) + Unary(Opcode::kLog1p, z / (kLanczosG + 0.5));
  const XlaOp y = log_t + slope / sum - kLanczosG / t;
  // digamma(x) = digamma(1 - x) - pi / tan(pi x); the tangent has the period 1.
  const XlaOp angle = (x - Unary(Opcode::kFloor, x + 0.5)) * std::numbers::pi;
  const XlaOp reflected = y - std::numbers::pi * Unary(Opcode::kCos, angle) / Unary(Opcode::kSin, angle);
  const XlaOp pole = Le(x, Number(x, 0)) & Eq(x, Unary(Opcode::kFloor, x));
  const XlaOp at_pole = Select(Eq(x, Number(x, 0)), -1.0 / x, Number(x, kNotANumber));
  const XlaOp finite = Select(pole, at_pole, Select(reflect, reflected, y));
  return Select(Eq(x, Number(x, kInfinite)), x, finite);
}

// Returns the sum over i >= 0 of (x + i)^-s for x > 0 and an integer s >= 2: the first terms, then Euler and
// Maclaurin's formula. Of negative x, those within kShifts of 0 have a value, others are NaN.
XlaOp HurwitzZeta(XlaOp x, int64_t s) {
  constexpr int kShifts = 64;
  // B_2k / (2k)!
  constexpr double kBernoulli[] = {1.0 / 12,          -1.0 / 720,
                                   1.0 / 30240,       -1.0 / 1209600,
                                   1.0 / 47900160,    -691.0 / 1307674368000,
                                   1.0 / 74724249600, -3617.0 / 10670622842880000};
  const double exponent = static_cast<double>(s);
  // Positive x needs few shifts.
  const double enough = 10 + exponent;
  XlaOp sum = FullLike(x, 0), a = x;
  for (int i = 0; i < kShifts; ++i) {
    const XlaOp active = Lt(a, Number(a, enough));
    sum = Select(active, sum + Binary(Opcode::kPower, a, Number(a, -exponent)), sum);
    a = Select(active, a + 1.0, a);
  }
  XlaOp power = Binary(Opcode::kPower, a, Number(a, -exponent));
  sum = sum + power * a / (exponent - 1) + power * 0.5;
  double factor = exponent;
  power = power / a;
  for (size_t k = 0; k < std::size(kBernoulli); ++k) {
    sum = sum + power * (factor * kBernoulli[k]);
    factor *= (exponent + static_cast<double>(2 * k + 1)) * (exponent + static_cast<double>(2 * k + 2));
    power = power / (a * a);
  }
  sum = Select(Lt(x, Number(x, enough - kShifts)), Number(x, kNotANumber), sum);
  const XlaOp pole = Le(x, Number(x, 0)) & Eq(x, Unary(Opcode::kFloor, x));
  return Select(pole, Number(x, kInfinite), Select(Eq(x, Number(x, kInfinite)), Number(x, 0), sum));
}

XlaOp TrigammaOf(XlaOp x) {
  const XlaOp reflect = Lt(x, Number(x, 0.5));
  const XlaOp y = HurwitzZeta(Select(reflect, 1.0 - x, x), 2);
  const XlaOp sine = Unary(Opcode::kSin, Fraction(x) * std::numbers::pi);
  return Select(reflect, std::numbers::pi * std::numbers::pi / (sine * sine) - y, y);
}

// exp(-x) I(x) of order 0 or 1 for x >= 0. Up to 8 a polynomial of t = x / 4 - 1 (of order 1: times x), from there one
// of 16 / x - 1 divided by sqrt(x): Chebyshev series within 1e-12.
XlaOp ScaledBessel(XlaOp x, int order) {
  constexpr double kNear0[] = {
      -2.0373391443461308e-06, 6.197759927977743e-06,  -6.392230179136622e-06,  1.6641691366332794e-05,
      -7.0272619213985107e-05, 0.00017593985208570512, -0.00037791438615059433, 0.00084299632205614894,
      -0.0018153441051537329,  0.003625702323983797,   -0.0067907852324455044,  0.011956414442452278,
      -0.019683159871158928,   0.030178938609139193,   -0.042985846420575069,   0.056776850092698283,
      -0.069541208588234399,   0.079275244896368752,   -0.084963380002844258,   0.087343415152860399,
      -0.089043441390540601,   0.094515628561500503,   -0.11300432688591863,    0.20700192122391456};
  constexpr double kFar0[] = {1.579827031927612e-09,   1.471348464705374e-09,  -6.9712421696199212e-09,
                              -1.1180324930816745e-08, 3.4055812215444291e-09, 2.3403365369602722e-08,
                              4.0861117568943222e-08,  8.8259611180596096e-08, 2.9705785796679075e-07,
                              1.4839076878645521e-06,  1.1143060503877819e-05, 0.00013621607128535879,
                              0.003360551982976068,    0.40217650944503952};
  constexpr double kNear1[] = {
      -2.1213364963393262e-07, 6.76292282472851e-07,   -8.6058287610443323e-07, 2.4336512292501332e-06,
      -9.5954644949777649e-06, 2.5589138032941592e-05, -6.0939036132718447e-05, 0.00014709020797321959,
      -0.00034151439509332921, 0.00074536816267652692, -0.0015387154290031292,  0.0030053972181668057,
      -0.0055346179799005499,  0.0095840644012422163,  -0.0155712989492923,     0.02368599884983898,
      -0.033671356825657937,   0.044674574510412735,   -0.055280039134620748,   0.063767403611674434,
      -0.068482606208845331,   0.068057599911656608,   -0.061124338029637348,   0.044687709875602583};
  constexpr double kFar1[] = {-1.6709250524544114e-09, -1.4734109381591011e-09, 7.5154043115209563e-09,
                              1.1652856440175106e-08,  -4.1948336069009648e-09, -2.5483063530498182e-08,
                              -4.4703212163937418e-08, -9.9474840808894559e-08, -3.4807482226474336e-07,
                              -1.8349814922821759e-06, -1.5038574768199834e-05, -0.00021923576008082678,
                              -0.0097495771925200023,  0.38939845902584291};
  const XlaOp small = Min(x, Number(x, 8)), large = Max(x, Number(x, 8));
  const XlaOp t = small * 0.25 - 1.0, u = 16.0 / large - 1.0;
  const XlaOp near = order == 0 ? Polynomial(t, kNear0) : Polynomial(t, kNear1) * small;
  const XlaOp far = (order == 0 ? Polynomial(u, kFar0) : Polynomial(u, kFar1)) * Rsqrt(large);
  return Select(Le(x, Number(x, 8)), near, far);
}

// Two operands of an op in a wide float type, broadcast to the same sizes.
struct Pair {
  XlaOp a, b;
  ElementType type;
};
std::optional<Pair> Operands(LoweringContext& n) {
  const ElementType type = FloatingOf(PromotedType(n.in(0), n.in(1)));
  const XlaOp a = lazy::Cast(n.in(0), WideType(type)), b = lazy::Cast(n.in(1), WideType(type));
  if (!a.ok() || !b.ok()) return std::nullopt;
  const std::optional<DimVector> dims = BroadcastDims(a.dims(), b.dims());
  if (!dims) {
    n.emitter().Fail("sizes that cannot be broadcast to each other");
    return std::nullopt;
  }
  return Pair{BroadcastTo(a, *dims), BroadcastTo(b, *dims), type};
}

double EpsilonOf(XlaOp x) {
  return x.type() == ElementType::kF64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

// x^a exp(-x) / gamma(a), by Lanczos' formula for gamma.
XlaOp GammaDensity(XlaOp a, XlaOp x) {
  const XlaOp t = a + (kLanczosG - 0.5);
  const XlaOp u = (x - t) / t;
  // x = t (1 + u): of u near 0 the logarithm and u are nearly equal.
  const XlaOp exponent = a * (Unary(Opcode::kLog1p, u) - u) - (kLanczosG - 0.5) * u;
  return lazy::Exp(exponent) * Sqrt(t) / (LanczosSum(a - 1.0) * std::sqrt(2 * std::numbers::pi));
}

constexpr int kMaxTerms = 2000;

// The sum of x^k / ((a + 1) ... (a + k)), where `wanted`.
XlaOp LowerSeries(XlaOp a, XlaOp x, XlaOp wanted) {
  const double epsilon = EpsilonOf(x);
  const XlaOp one = FullLike(x, 1);
  // number of terms, a + k, x, term, sum, whether more are needed
  const std::vector<XlaOp> end = Loop(
      x.emitter(), {Constant(x.emitter(), ElementType::kS32, 0), a, x, one, one, wanted},
      [](absl::Span<const XlaOp> v) {
        return Reduce(Opcode::kOr, v[5], AllDims(v[5])) & Lt(v[0], Number(v[0], kMaxTerms));
      },
      [&](absl::Span<const XlaOp> v) -> std::vector<XlaOp> {
        const XlaOp r = v[1] + 1.0;
        const XlaOp term = v[3] * (v[2] / r), sum = v[4] + term;
        return {v[0] + Number(v[0], 1), r, v[2], term, Select(v[5], sum, v[4]), v[5] & Gt(term, sum * epsilon)};
      });
  return end[4];
}

// The continued fraction of the upper incomplete gamma function divided by its density, by Wallis' recurrence.
XlaOp UpperFraction(XlaOp a, XlaOp x, XlaOp wanted) {
  const double epsilon = EpsilonOf(x);
  const double large = x.type() == ElementType::kF64 ? 4503599627370496.0 : 16777216.0;
  const XlaOp y = 1.0 - a, z = x + y + 1.0, one = FullLike(x, 1);
  const XlaOp p1 = x + 1.0, q1 = z * x;
  // number of terms; c, y, z; the last two numerators and denominators; the value; whether more are needed
  const std::vector<XlaOp> end = Loop(
      x.emitter(), {Constant(x.emitter(), ElementType::kS32, 0), FullLike(x, 0), y, z, one, p1, x, q1, p1 / q1, wanted},
      [](absl::Span<const XlaOp> v) {
        return Reduce(Opcode::kOr, v[9], AllDims(v[9])) & Lt(v[0], Number(v[0], kMaxTerms));
      },
      [&](absl::Span<const XlaOp> v) -> std::vector<XlaOp> {
        const XlaOp c = v[1] + 1.0, y1 = v[2] + 1.0, z1 = v[3] + 2.0, yc = y1 * c;
        const XlaOp p = v[5] * z1 - v[4] * yc, q = v[7] * z1 - v[6] * yc;
        const XlaOp defined = Ne(q, Number(q, 0));
        const XlaOp r = p / Select(defined, q, Number(q, 1));
        const XlaOp change = Select(defined, lazy::Abs((v[8] - r) / r), Number(r, 1));
        const XlaOp scale = Select(Gt(lazy::Abs(p), Number(p, large)), Number(p, 1 / large), Number(p, 1));
        return {v[0] + Number(v[0], 1),
                c,
                y1,
                z1,
                v[5] * scale,
                p * scale,
                v[7] * scale,
                q * scale,
                Select(v[9] & defined, r, v[8]),
                v[9] & Gt(change, Number(change, epsilon))};
      });
  return end[8];
}

// The regularized incomplete gamma function of a = operand 0 and x = operand 1, lower or upper.
void IncompleteGamma(LoweringContext& n, bool upper) {
  const std::optional<Pair> operands = Operands(n);
  if (!operands) return;
  const auto [a, x, type] = *operands;
  const XlaOp zero = Number(x, 0), one = Number(x, 1), infinite = Number(x, kInfinite);
  const XlaOp valid = Gt(a, zero) & Gt(x, zero) & Lt(a, infinite) & Lt(x, infinite);
  const XlaOp some_a = Select(valid, a, one), some_x = Select(valid, x, one);
  const XlaOp by_series = Le(some_x, one) | Le(some_x, some_a);
  const XlaOp density = GammaDensity(some_a, some_x);
  const XlaOp below = LowerSeries(some_a, some_x, valid & by_series) * density / some_a;
  const XlaOp above = UpperFraction(some_a, some_x, valid & !by_series) * density;
  const XlaOp value = upper ? Select(by_series, 1.0 - below, above) : Select(by_series, below, 1.0 - above);
  // At the ends: of a = 0 the lower one is 1, of x = 0 it is 0, of infinite a 0, of infinite x 1.
  const XlaOp wrong = Lt(a, zero) | Lt(x, zero) | IsNan(a) | IsNan(x) | (Eq(a, zero) & Eq(x, zero)) |
                      (Eq(a, infinite) & Eq(x, infinite));
  const XlaOp is_zero = (Eq(x, zero) & Gt(a, zero)) | Eq(a, infinite);
  const XlaOp at_end = Select(is_zero, Number(x, upper ? 1 : 0), Number(x, upper ? 0 : 1));
  n.Return(lazy::Cast(Select(wrong, Number(x, kNotANumber), Select(valid, value, at_end)), type));
}

// The sum over i >= 0 of (q + i)^-s, s > 1: the first terms, then Euler and Maclaurin's formula.
XlaOp ZetaOf(XlaOp s, XlaOp q) {
  constexpr int kMaxShifts = 1000000;
  // B_2k / (2k)!
  constexpr double kBernoulli[] = {1.0 / 12,          -1.0 / 720,
                                   1.0 / 30240,       -1.0 / 1209600,
                                   1.0 / 47900160,    -691.0 / 1307674368000,
                                   1.0 / 74724249600, -3617.0 / 10670622842880000};
  // The formula needs q + i that is large beside s.
  const auto active = [](absl::Span<const XlaOp> v) { return Lt(v[1], 12.0 + Min(v[2], Number(v[2], 1000))); };
  // number of terms, q + i, s, sum
  const std::vector<XlaOp> end = Loop(
      q.emitter(), {Constant(q.emitter(), ElementType::kS32, 0), q, s, FullLike(q, 0)},
      [&](absl::Span<const XlaOp> v) {
        return Reduce(Opcode::kOr, active(v), AllDims(v[1])) & Lt(v[0], Number(v[0], kMaxShifts));
      },
      [&](absl::Span<const XlaOp> v) -> std::vector<XlaOp> {
        const XlaOp more = active(v);
        return {v[0] + Number(v[0], 1), Select(more, v[1] + 1.0, v[1]), v[2],
                Select(more, v[3] + Binary(Opcode::kPower, v[1], -v[2]), v[3])};
      });
  const XlaOp a = end[1];
  XlaOp power = Binary(Opcode::kPower, a, -s);
  XlaOp sum = end[3] + power * a / (s - 1.0) + power * 0.5;
  XlaOp factor = s;
  power = power / a;
  for (size_t k = 0; k < std::size(kBernoulli); ++k) {
    sum = sum + power * factor * kBernoulli[k];
    const double at = static_cast<double>(2 * k + 1);
    factor = factor * (s + at) * (s + (at + 1));
    power = power / (a * a);
  }
  return sum;
}

void Bessel(LoweringContext& n, int order, bool scaled) {
  InWideType(n, 0, [&](XlaOp x) {
    const XlaOp y = lazy::Abs(x);
    XlaOp value = ScaledBessel(y, order);
    // exp in two factors: the product overflows only where the result does.
    if (!scaled) value = value * lazy::Exp(y * 0.5) * lazy::Exp(y * 0.5);
    if (!scaled) value = Select(Eq(y, Number(y, kInfinite)), y, value);
    if (order == 1) value = Select(Lt(x, Number(x, 0)), -value, value);
    return Select(IsNan(x), x, value);
  });
}

}  // namespace

void Lgamma(LoweringContext& n) {
  InWideType(n, 0, [](XlaOp x) {
    const XlaOp reflect = Lt(x, Number(x, 0.5));
    const XlaOp z = Select(reflect, -x, x - 1.0);
    const XlaOp t = z + (kLanczosG + 0.5);
    const XlaOp log_t = std::log(kLanczosG + 0.5) + Unary(Opcode::kLog1p, z / (kLanczosG + 0.5));
    // (z + 1/2) log t - t without a difference of large numbers.
    const XlaOp log_y =
        (z + 0.5 - t / log_t) * log_t + (0.5 * std::log(2 * std::numbers::pi) + lazy::Log(LanczosSum(z)));
    // log|gamma(x)| = log pi - log|sin(pi x)| - log gamma(1 - x), infinite at the poles.
    const XlaOp part = Fraction(lazy::Abs(x));
    const XlaOp near = Select(Gt(part, Number(x, 0.5)), 1.0 - part, part);
    const XlaOp log_sine = lazy::Log(Unary(Opcode::kSin, near * std::numbers::pi));
    const XlaOp reflected =
        Select(Unary(Opcode::kIsFinite, log_sine), std::log(std::numbers::pi) - log_sine - log_y, -log_sine);
    const XlaOp value = Select(reflect, reflected, log_y);
    return Select(Eq(lazy::Abs(x), Number(x, kInfinite)), Number(x, kInfinite), value);
  });
}
void Digamma(LoweringContext& n) { InWideType(n, 0, DigammaOf); }
void Polygamma(LoweringContext& n) {
  const int64_t order = n.int_arg(0);
  if (order < 0) {
    n.emitter().Fail("polygamma(n, x) does not support negative n.");
    return;
  }
  constexpr int64_t kMaxOrder = 30;
  if (order > kMaxOrder) {
    n.emitter().Fail("polygamma(n, x) is supported for n up to 30");
    return;
  }
  InWideType(n, 1, [&](XlaOp x) {
    if (order == 0) return DigammaOf(x);
    if (order == 1) return TrigammaOf(x);
    const double scale = std::tgamma(static_cast<double>(order + 1)) * (order % 2 == 0 ? -1 : 1);
    return HurwitzZeta(x, order + 1) * scale;
  });
}
void Igamma(LoweringContext& n) { IncompleteGamma(n, false); }
void Igammac(LoweringContext& n) { IncompleteGamma(n, true); }
void Zeta(LoweringContext& n) {
  const std::optional<Pair> operands = Operands(n);
  if (!operands) return;
  const auto [s, q, type] = *operands;
  const XlaOp zero = Number(q, 0), one = Number(s, 1);
  const XlaOp pole = Eq(s, one) | (Le(q, zero) & Eq(q, Unary(Opcode::kFloor, q)));
  const XlaOp wrong = Lt(s, one) | IsNan(s) | IsNan(q) | (Lt(q, zero) & Ne(s, Unary(Opcode::kFloor, s)));
  const XlaOp valid = !(wrong | pole);
  const XlaOp sum = ZetaOf(Select(valid, s, Number(s, 2)), Select(valid, q, Number(q, 1)));
  const XlaOp value = Select(valid, sum, Number(q, kInfinite));
  n.Return(lazy::Cast(Select(wrong, Number(q, kNotANumber), value), type));
}
void I0(LoweringContext& n) { Bessel(n, 0, false); }
void I0e(LoweringContext& n) { Bessel(n, 0, true); }
void I1(LoweringContext& n) { Bessel(n, 1, false); }
void I1e(LoweringContext& n) { Bessel(n, 1, true); }
void Erfcx(LoweringContext& n) {
  InWideType(n, 0, [](XlaOp x) {
    const XlaOp tail = ScaledErfc(lazy::Abs(x));
    return Select(Lt(x, Number(x, 0)), 2.0 * lazy::Exp(x * x) - tail, tail);
  });
}

}  // namespace hlokit::lazy::lower
