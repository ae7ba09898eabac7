// SPDX-License-Identifier: Apache-2.0
// Elementwise ops of one tensor.
#include <cmath>
#include <limits>
#include <numbers>

#include "tracer/graph/literal_scalar.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy {

XlaOp ScaledErfc(XlaOp y) {
  // With t = (y - 3) / (y + 3), exp(y^2) erfc(y) (y + 3) is smooth on [-1, 1]: polynomials of its Chebyshev series, for
  // f32 within 3e-8, for f64 within 1e-15.
  const XlaOp bounded = Min(y, Number(y, 1e18));
  const XlaOp t = (bounded - 3.0) / (bounded + 3.0);
  const XlaOp p =
      y.type() == ElementType::kF64
          ? Polynomial(
                t, {1.6421143016942986e-10,  8.1106872961899927e-10, -9.7831363878406517e-10, -8.693774269035828e-09,
                    -9.8183566055919012e-10, 5.1182421970120698e-08, 4.6057900194248513e-08,  -2.3385368009140523e-07,
                    -4.0795588546379703e-07, 9.9881701429109744e-07, 2.7653934843589293e-06,  -4.7490282761035755e-06,
                    -1.7470579898367112e-05, 3.0398051585726809e-05, 0.00010756149572800276,  -0.00027677781402214095,
                    -0.00054830969437658366, 0.0030340619960581381,  -0.001212416626845832,   -0.026827234624051417,
                    0.11952776128726766,     -0.31046726190058321,   0.59022835710410237,     -0.88339445316988341,
                    1.0740069070883398})
          : Polynomial(t, {6.7829635572077339e-05, -0.00021092966768411785, -0.00050785057851176834,
                           0.0029733707025436039, -0.0012323710416040335, -0.026801721595236166, 0.11953230069063711,
                           -0.3104717122605497, 0.590227975604107, -0.88339423403940276, 1.0740069123135136});
  return p / (y + 3.0);
}

namespace lower {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Runs `formula` in a wide float type and converts the result to the argument's type.
template <typename Formula>
void Wider(LoweringContext& n, Formula formula) {
  const XlaOp x = n.in(0);
  n.Return(Cast(formula(Wide(x)), FloatingOf(x.type())));
}

void Opcode1(LoweringContext& n, Opcode opcode) { n.Return(Unary(opcode, n.in(0))); }
void FloatOpcode1(LoweringContext& n, Opcode opcode) { n.Return(Unary(opcode, Floating(n.in(0)))); }

XlaOp TruncOf(XlaOp x) { return Select(Lt(x, Number(x, 0)), Unary(Opcode::kCeil, x), Unary(Opcode::kFloor, x)); }

}  // namespace

void Identity(LoweringContext& n) { n.Return(n.in(0)); }
void Cast(LoweringContext& n) { n.Return(lazy::Cast(n.in(0), n.dtype(1, ElementType::kF32))); }
void Abs(LoweringContext& n) {
  IsSigned(n.in(0).type()) || !IsInteger(n.in(0).type()) ? Opcode1(n, Opcode::kAbs) : Identity(n);
}
void Neg(LoweringContext& n) { Opcode1(n, Opcode::kNegate); }
void Sign(LoweringContext& n) {
  const XlaOp x = n.in(0);
  if (IsInteger(x.type()) && !IsSigned(x.type())) return n.Return(lazy::Cast(Ne(x, Number(x, 0)), x.type()));
  if (x.type() == ElementType::kPred) return n.Return(x);
  const XlaOp sign = Unary(Opcode::kSign, x);
  n.Return(x.is_float() ? Select(IsNan(x), Number(x, 0), sign) : sign);
}
void Exp(LoweringContext& n) { FloatOpcode1(n, Opcode::kExp); }
void Expm1(LoweringContext& n) { FloatOpcode1(n, Opcode::kExpm1); }
void Log(LoweringContext& n) { FloatOpcode1(n, Opcode::kLog); }
void Log1p(LoweringContext& n) { FloatOpcode1(n, Opcode::kLog1p); }
void Log2(LoweringContext& n) {
  Wider(n, [](XlaOp x) { return lazy::Log(x) * std::numbers::log2e; });
}
void Log10(LoweringContext& n) {
  Wider(n, [](XlaOp x) { return lazy::Log(x) * std::numbers::log10e; });
}
void Sqrt(LoweringContext& n) { FloatOpcode1(n, Opcode::kSqrt); }
void Rsqrt(LoweringContext& n) { FloatOpcode1(n, Opcode::kRsqrt); }
void Reciprocal(LoweringContext& n) { n.Return(1.0 / Floating(n.in(0))); }
void Erf(LoweringContext& n) { FloatOpcode1(n, Opcode::kErf); }
void Erfc(LoweringContext& n) {
  // 1 - erf(x) would be 0 from x = 4 on.
  Wider(n, [](XlaOp x) {
    const XlaOp y = Min(lazy::Abs(x), Number(x, 30.0));
    // exp(-y^2) from the part of y with an exact square and the remainder.
    const XlaOp high = Unary(Opcode::kFloor, y * 16.0) / 16.0;
    const XlaOp tail = lazy::Exp(-(high * high)) * lazy::Exp(-((y - high) * (y + high))) * ScaledErfc(y);
    return Select(Lt(x, Number(x, 0)), 2.0 - tail, tail);
  });
}
void Erfinv(LoweringContext& n) {
  // Giles' approximation followed by two steps of Newton's method.
  Wider(n, [](XlaOp x) {
    const XlaOp w = -Unary(Opcode::kLog1p, -(x * x));
    const XlaOp near = Polynomial(w - 2.5, {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                                            0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
    const XlaOp far =
        Polynomial(lazy::Sqrt(w) - 3.0, {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                         -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
    XlaOp y = Select(Lt(w, Number(w, 5.0)), near, far) * x;
    for (int i = 0; i < 2; ++i) {
      y = y - (lazy::Erf(y) - x) / (lazy::Exp(-(y * y)) * (2 / std::sqrt(std::numbers::pi)));
    }
    return Select(Eq(lazy::Abs(x), Number(x, 1.0)), x * Number(x, kInf), y);
  });
}
void Sin(LoweringContext& n) { FloatOpcode1(n, Opcode::kSin); }
void Cos(LoweringContext& n) { FloatOpcode1(n, Opcode::kCos); }
void Sinh(LoweringContext& n) { FloatOpcode1(n, Opcode::kSinh); }
void Cosh(LoweringContext& n) { FloatOpcode1(n, Opcode::kCosh); }
void Acos(LoweringContext& n) { FloatOpcode1(n, Opcode::kAcos); }
void Asin(LoweringContext& n) { FloatOpcode1(n, Opcode::kAsin); }
void Acosh(LoweringContext& n) { FloatOpcode1(n, Opcode::kAcosh); }
void Asinh(LoweringContext& n) { FloatOpcode1(n, Opcode::kAsinh); }
void Atanh(LoweringContext& n) { FloatOpcode1(n, Opcode::kAtanh); }
void Tan(LoweringContext& n) { FloatOpcode1(n, Opcode::kTan); }
void Atan(LoweringContext& n) {
  const XlaOp x = Floating(n.in(0));
  n.Return(Binary(Opcode::kAtan2, x, FullLike(x, 1)));
}
void Exp2(LoweringContext& n) {
  const XlaOp x = Floating(n.in(0));
  n.Return(Binary(Opcode::kPower, FullLike(x, 2), x));
}
void Square(LoweringContext& n) {
  const XlaOp x = n.in(0).type() == ElementType::kPred ? lazy::Cast(n.in(0), ElementType::kS64) : n.in(0);
  n.Return(x * x);
}
void Tanh(LoweringContext& n) { FloatOpcode1(n, Opcode::kTanh); }
void Sigmoid(LoweringContext& n) { FloatOpcode1(n, Opcode::kLogistic); }
void Relu(LoweringContext& n) { n.Return(Max(n.in(0), Number(n.in(0), 0))); }
void Floor(LoweringContext& n) { n.in(0).is_float() ? Opcode1(n, Opcode::kFloor) : Identity(n); }
void Ceil(LoweringContext& n) { n.in(0).is_float() ? Opcode1(n, Opcode::kCeil) : Identity(n); }
void Round(LoweringContext& n) { n.in(0).is_float() ? Opcode1(n, Opcode::kRoundNearestEven) : Identity(n); }
void Trunc(LoweringContext& n) { n.Return(n.in(0).is_float() ? TruncOf(n.in(0)) : n.in(0)); }
void Frac(LoweringContext& n) { n.Return(n.in(0) - TruncOf(n.in(0))); }
void RoundDecimals(LoweringContext& n) {
  const int64_t decimals = n.int_arg(1);
  const double scale = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  Wider(n, [&](XlaOp x) {
    const XlaOp scaled = decimals < 0 ? x / scale : x * scale;
    const XlaOp rounded = Unary(Opcode::kRoundNearestEven, scaled);
    return decimals < 0 ? rounded * scale : rounded / scale;
  });
}
void Isnan(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(x.is_float() ? IsNan(x) : Full(n.emitter(), ElementType::kPred, x.dims(), false));
}
void Isinf(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(x.is_float() ? Eq(lazy::Abs(x), Number(x, kInf)) : Full(n.emitter(), ElementType::kPred, x.dims(), false));
}
void Isfinite(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(x.is_float() ? Unary(Opcode::kIsFinite, x) : Full(n.emitter(), ElementType::kPred, x.dims(), true));
}
void LogicalNot(LoweringContext& n) { n.Return(!lazy::Cast(n.in(0), ElementType::kPred)); }
void BitwiseNot(LoweringContext& n) { Opcode1(n, Opcode::kNot); }
void NanToNum(LoweringContext& n) {
  const XlaOp x = n.in(0);
  if (!x.is_float()) return n.Return(x);
  const double largest = LargestFiniteOf(x.type());
  const XlaOp nan = Number(x, n.has(1) ? n.float_arg(1) : 0.0);
  const XlaOp high = Number(x, n.has(2) ? n.float_arg(2) : largest);
  const XlaOp low = Number(x, n.has(3) ? n.float_arg(3) : -largest);
  n.Return(Select(IsNan(x), nan, Select(Eq(x, Number(x, kInf)), high, Select(Eq(x, Number(x, -kInf)), low, x))));
}
void Logit(LoweringContext& n) {
  Wider(n, [&](XlaOp x) {
    if (n.has(1)) {
      // Of an eps above 1/2 too the smaller numbers become eps, and then the larger ones 1 - eps.
      const XlaOp low = Number(x, n.float_arg(1)), high = Number(x, 1 - n.float_arg(1));
      x = Select(Lt(x, low), low, Select(Gt(x, high), high, x));
    }
    return lazy::Log(x / (1.0 - x));
  });
}

// ---- activations ----

void Silu(LoweringContext& n) {
  Wider(n, [](XlaOp x) { return x * Logistic(x); });
}
void SiluBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), x = Wide(n.in(1));
  const XlaOp s = Logistic(x);
  n.Return(lazy::Cast(g * s * (1.0 + x * (1.0 - s)), n.in(1).type()));
}
void Mish(LoweringContext& n) {
  Wider(n, [](XlaOp x) { return x * lazy::Tanh(SoftplusOf(x)); });
}
void MishBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), x = Wide(n.in(1));
  const XlaOp t = lazy::Tanh(SoftplusOf(x));
  n.Return(lazy::Cast(g * (t + x * Logistic(x) * (1.0 - t * t)), n.in(1).type()));
}
void Hardswish(LoweringContext& n) {
  Wider(n, [](XlaOp x) { return x * Min(Max(x + 3.0, Number(x, 0)), Number(x, 6)) / 6.0; });
}
void HardswishBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), x = Wide(n.in(1));
  const XlaOp inside = g * (x / 3.0 + 0.5);
  n.Return(
      lazy::Cast(Select(Le(x, Number(x, -3)), Number(x, 0), Select(Lt(x, Number(x, 3)), inside, g)), n.in(1).type()));
}
void Hardsigmoid(LoweringContext& n) {
  Wider(n, [](XlaOp x) { return Min(Max(x + 3.0, Number(x, 0)), Number(x, 6)) / 6.0; });
}
void HardsigmoidBackward(LoweringContext& n) {
  const XlaOp g = n.in(0), x = n.in(1);
  n.Return(Select(Gt(x, Number(x, -3)) & Lt(x, Number(x, 3)), g / 6.0, Number(g, 0)));
}
void SigmoidBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), y = Wide(n.in(1));
  n.Return(lazy::Cast(g * Conjugate(y * (1.0 - y)), PromotedType(n.in(0), n.in(1))));
}
void TanhBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), y = Wide(n.in(1));
  n.Return(lazy::Cast(g * Conjugate(1.0 - y * y), PromotedType(n.in(0), n.in(1))));
}
void Gelu(LoweringContext& n) {
  const bool tanh = n.str(1) == "tanh";
  Wider(n, [&](XlaOp x) {
    if (!tanh) return x * 0.5 * (lazy::Erf(x * std::numbers::sqrt2 / 2.0) + 1.0);
    const XlaOp inner = (x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi);
    return x * 0.5 * (lazy::Tanh(inner) + 1.0);
  });
}
void GeluBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), x = Wide(n.in(1));
  XlaOp slope;
  if (n.str(2) == "tanh") {
    const double k = std::sqrt(2 / std::numbers::pi);
    const XlaOp t = lazy::Tanh((x + x * x * x * 0.044715) * k);
    slope = 0.5 * (1.0 + t) + x * 0.5 * (1.0 - t * t) * ((1.0 + x * x * (3 * 0.044715)) * k);
  } else {
    const XlaOp cdf = 0.5 * (1.0 + lazy::Erf(x * (std::numbers::sqrt2 / 2)));
    slope = cdf + x * lazy::Exp(x * x * -0.5) * (1 / std::sqrt(2 * std::numbers::pi));
  }
  n.Return(lazy::Cast(g * slope, n.in(1).type()));
}
void ThresholdBackward(LoweringContext& n) {
  const XlaOp g = n.in(0), x = n.in(1);
  n.Return(Select(Gt(x, Number(x, n.scalar(2))), g, Number(g, 0)));
}
void Threshold(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(Select(Gt(x, Number(x, n.scalar(1))), x, Number(x, n.scalar(2))));
}
void LeakyRelu(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(Select(Gt(x, Number(x, 0)), x, x * n.float_arg(1)));
}
void LeakyReluBackward(LoweringContext& n) {
  const XlaOp g = n.in(0), x = n.in(1);
  n.Return(Select(Gt(x, Number(x, 0)), g, g * n.float_arg(2)));
}
void Hardtanh(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(Min(Max(x, Number(x, n.scalar(1))), Number(x, n.scalar(2))));
}
void HardtanhBackward(LoweringContext& n) {
  const XlaOp g = n.in(0), x = n.in(1);
  n.Return(Select(Gt(x, Number(x, n.scalar(2))) & Lt(x, Number(x, n.scalar(3))), g, Number(g, 0)));
}
void Elu(LoweringContext& n) {
  const double alpha = n.float_arg(1), scale = n.float_arg(2), input_scale = n.float_arg(3);
  Wider(n, [&](XlaOp x) {
    return Select(Gt(x, Number(x, 0)), x * scale, Unary(Opcode::kExpm1, x * input_scale) * (alpha * scale));
  });
}
void EluBackward(LoweringContext& n) {
  const double alpha = n.float_arg(1), scale = n.float_arg(2), input_scale = n.float_arg(3);
  const XlaOp g = Wide(n.in(0)), x = Wide(n.in(5));
  const XlaOp below = n.bool_arg(4) ? g * input_scale * (x + alpha * scale)
                                    : g * (input_scale * alpha * scale) * lazy::Exp(x * input_scale);
  n.Return(lazy::Cast(Select(Gt(x, Number(x, 0)), g * scale, below), n.in(0).type()));
}
void Softplus(LoweringContext& n) {
  const double beta = n.float_arg(1), threshold = n.float_arg(2);
  Wider(n, [&](XlaOp x) {
    const XlaOp scaled = x * beta;
    return Select(Gt(scaled, Number(x, threshold)), x, Unary(Opcode::kLog1p, lazy::Exp(scaled)) / beta);
  });
}
void SoftplusBackward(LoweringContext& n) {
  const double beta = n.float_arg(2), threshold = n.float_arg(3);
  const XlaOp g = Wide(n.in(0)), x = Wide(n.in(1));
  n.Return(lazy::Cast(Select(Gt(x * beta, Number(x, threshold)), g, g * Logistic(x * beta)), n.in(1).type()));
}
void LogSigmoidForward(LoweringContext& n) {
  // torch returns exp(-|x|) as the buffer; the backward op does not use it here.
  XlaOp x = Wide(n.in(0));
  n.Return(lazy::Cast(-SoftplusOf(-x), n.in(0).type()), lazy::Cast(lazy::Exp(-lazy::Abs(x)), n.in(0).type()));
}
void LogSigmoidBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), x = Wide(n.in(1));
  n.Return(lazy::Cast(g * Logistic(-x), n.in(1).type()));
}

}  // namespace lower
}  // namespace hlokit::lazy
