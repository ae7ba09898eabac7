// SPDX-License-Identifier: Apache-2.0
// Derivatives of ops that work element by element.
#include <cmath>
#include <limits>
#include <numbers>

#include "tracer/autograd/grad_call.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/promotion.h"

namespace hlokit::lazy::derivative {
namespace {

Tensor Zero(const Tensor& like) { return ZerosLike(like); }
// g where the condition holds, else 0.
Tensor Masked(const Tensor& g, const Tensor& condition) { return Where(condition, g, 0); }
// g where the condition does not hold.
Tensor Outside(const Tensor& g, const Tensor& condition) { return MaskedFill(g, condition, 0); }

}  // namespace

void PassThrough(GradCall& c) { c.set(0, c.g()); }
void ZeroGrad(GradCall& c) { c.set(0, Zero(c.g())); }
void Clone(GradCall& c) { c.set(0, c.g()); }
void Cast(GradCall& c) { c.set(0, c.g()); }
void Fill(GradCall& c) {
  c.set(0, Zero(c.g()));
  if (c.op() == Op::fill_Tensor && c.needs(1)) c.set(1, Sum(c.g()));
}
void Sign(GradCall& c) { c.set(0, Zero(c.g())); }

// ---- one tensor ----

void Abs(GradCall& c) { c.set(0, c.g() * Sgn(c.in(0))); }
void Neg(GradCall& c) { c.set(0, -c.g()); }
void Exp(GradCall& c) { c.set(0, c.g() * c.out()); }
void Exp2(GradCall& c) { c.set(0, c.g() * c.out() * Scalar(std::numbers::ln2)); }
void Expm1(GradCall& c) { c.set(0, c.g() * Add(c.out(), 1)); }
void Log(GradCall& c) { c.set(0, c.g() / c.in(0)); }
void Log1p(GradCall& c) { c.set(0, c.g() / Add(c.in(0), 1)); }
void Log2(GradCall& c) { c.set(0, c.g() / (c.in(0) * Scalar(std::numbers::ln2))); }
void Log10(GradCall& c) { c.set(0, c.g() / (c.in(0) * Scalar(std::numbers::ln10))); }
void Sqrt(GradCall& c) { c.set(0, c.g() / (c.out() * Scalar(2))); }
void Rsqrt(GradCall& c) { c.set(0, c.g() * Pow(c.out(), 3) * Scalar(-0.5)); }
void Reciprocal(GradCall& c) { c.set(0, -c.g() * (c.out() * c.out())); }
void Erf(GradCall& c) {
  const Tensor x = c.in(0);
  c.set(0, Exp(-(x * x)) * Scalar(2 / std::sqrt(std::numbers::pi)) * c.g());
}
void Erfc(GradCall& c) {
  const Tensor x = c.in(0);
  c.set(0, Exp(-(x * x)) * Scalar(-2 / std::sqrt(std::numbers::pi)) * c.g());
}
void Erfinv(GradCall& c) { c.set(0, Exp(c.out() * c.out()) * Scalar(std::sqrt(std::numbers::pi) / 2) * c.g()); }
void Sin(GradCall& c) { c.set(0, c.g() * Run(Op::cos, c.in(0))); }
void Cos(GradCall& c) { c.set(0, c.g() * -Run(Op::sin, c.in(0))); }
void Sinh(GradCall& c) { c.set(0, c.g() * Run(Op::cosh, c.in(0))); }
void Cosh(GradCall& c) { c.set(0, c.g() * Run(Op::sinh, c.in(0))); }
void Atan(GradCall& c) { c.set(0, c.g() / Add(c.in(0) * c.in(0), 1)); }
void Square(GradCall& c) { c.set(0, c.g() * (c.in(0) * Scalar(2))); }
void Tanh(GradCall& c) { c.set(0, Run(Op::tanh_backward, c.g(), c.out())); }
void Sigmoid(GradCall& c) { c.set(0, Run(Op::sigmoid_backward, c.g(), c.out())); }
void Relu(GradCall& c) { c.set(0, Run(Op::threshold_backward, c.g(), c.out(), 0)); }
void NanToNum(GradCall& c) { c.set(0, Masked(c.g(), Run(Op::isfinite, c.in(0)))); }
void Logit(GradCall& c) {
  const Tensor x = c.in(0);
  Tensor slope = c.g() / (x * Rsub(x, 1));
  if (c.has(1)) {
    slope = Masked(slope, And(Ge(x, c.d(1)), Le(x, 1 - c.d(1))));
  } else {
    slope = MaskedFill(slope, Run(Op::isnan, c.out()), std::numeric_limits<double>::quiet_NaN());
  }
  c.set(0, slope);
}

// ---- activations ----

void Silu(GradCall& c) { c.set(0, Run(Op::silu_backward, c.g(), c.in(0))); }
void Mish(GradCall& c) { c.set(0, Run(Op::mish_backward, c.g(), c.in(0))); }
void Hardswish(GradCall& c) { c.set(0, Run(Op::hardswish_backward, c.g(), c.in(0))); }
void Hardsigmoid(GradCall& c) { c.set(0, Run(Op::hardsigmoid_backward, c.g(), c.in(0))); }
void Gelu(GradCall& c) { c.set(0, Run(Op::gelu_backward, c.g(), c.in(0), std::string(c.str(1)))); }
void Threshold(GradCall& c) { c.set(0, Run(Op::threshold_backward, c.g(), c.in(0), c.s(1))); }
void LeakyRelu(GradCall& c) { c.set(0, Run(Op::leaky_relu_backward, c.g(), c.in(0), c.s(1), false)); }
void Hardtanh(GradCall& c) { c.set(0, Run(Op::hardtanh_backward, c.g(), c.in(0), c.s(1), c.s(2))); }
void Elu(GradCall& c) { c.set(0, Run(Op::elu_backward, c.g(), c.s(1), c.s(2), c.s(3), false, c.in(0))); }
void Softplus(GradCall& c) { c.set(0, Run(Op::softplus_backward, c.g(), c.in(0), c.s(1), c.s(2))); }
void LogSigmoid(GradCall& c) {
  if (c.g().defined()) c.set(0, Run(Op::log_sigmoid_backward, c.g(), c.in(0), c.out(1)));
}

// ---- two tensors (the second may be a number) ----

void Add(GradCall& c) {
  c.set(0, c.g());
  if (c.op() == Op::add_Tensor && c.needs(1)) c.set(1, c.s(2).Is(1) ? c.g() : c.g() * c.s(2));
}
void Sub(GradCall& c) {
  c.set(0, c.g());
  if (c.op() == Op::sub_Tensor && c.needs(1)) c.set(1, c.s(2).Is(1) ? -c.g() : c.g() * -c.s(2));
}
void Rsub(GradCall& c) {
  if (c.needs(0)) c.set(0, c.g() * -c.s(2));
  if (c.op() == Op::rsub_Tensor) c.set(1, c.g());
}
void Mul(GradCall& c) {
  if (c.op() == Op::mul_Scalar) return c.set(0, c.g() * c.s(1));
  if (c.needs(0)) c.set(0, c.g() * c.in(1));
  if (c.needs(1)) c.set(1, c.g() * c.in(0));
}
void Div(GradCall& c) {
  if (c.op() == Op::div_Scalar) return c.set(0, c.g() / c.s(1));
  if (c.needs(0)) c.set(0, c.g() / c.in(1));
  if (c.needs(1)) c.set(1, -c.g() * ((c.in(0) / c.in(1)) / c.in(1)));
}
void DivMode(GradCall& c) {
  const bool rounded = !c.str(2).empty();
  if (c.op() == Op::div_Scalar_mode) return c.set(0, rounded ? Zero(c.g()) : c.g() / c.s(1));
  if (c.needs(0)) c.set(0, rounded ? Zero(c.g()) : c.g() / c.in(1));
  if (c.needs(1)) c.set(1, rounded ? Zero(c.g()) : -c.g() * ((c.in(0) / c.in(1)) / c.in(1)));
}
void Remainder(GradCall& c) {
  c.set(0, c.g());
  if (c.op() == Op::remainder_Tensor && c.needs(1)) {
    c.set(1, -c.g() * Run(Op::div_Tensor_mode, c.in(0), c.in(1), "floor"));
  }
}
void Fmod(GradCall& c) {
  c.set(0, c.g());
  if (c.op() == Op::fmod_Tensor && c.needs(1)) {
    c.set(1, -c.g() * Run(Op::div_Tensor_mode, c.in(0), c.in(1), "trunc"));
  }
}
void PowScalarExponent(GradCall& c) {
  const Scalar n = c.s(1);
  if (n.Is(0)) return c.set(0, Zero(c.g()));
  const Scalar less = n.is_float() ? Scalar(n.ToDouble() - 1) : Scalar(n.ToInt() - 1);
  c.set(0, c.g() * (Pow(c.in(0), less) * n));
}
void PowScalarBase(GradCall& c) {
  const double base = c.d(0);
  if (!c.needs(1)) return;
  if (base == 0) {
    return c.set(1, Where(Ge(c.in(1), 0), Zero(c.g()), c.g() * (c.out() * Scalar(std::log(base)))));
  }
  c.set(1, c.g() * (c.out() * Scalar(std::log(base))));
}
void Pow(GradCall& c) {
  if (c.needs(0)) {
    const Tensor n = c.in(1);
    c.set(0, Where(Eq(n, 0), Zero(c.g()), c.g() * (n * Pow(c.in(0), n - Scalar(1)))));
  }
  if (c.needs(1)) {
    const Tensor x = c.in(0);
    const Tensor no_slope = And(Eq(x, 0), Ge(c.in(1), 0));
    c.set(1, c.g() * Where(no_slope, Zero(c.out()), c.out() * Log(x)));
  }
}
void Atan2(GradCall& c) {
  const Tensor scale = c.g() / (c.in(0) * c.in(0) + c.in(1) * c.in(1));
  if (c.needs(0)) c.set(0, scale * c.in(1));
  if (c.needs(1)) c.set(1, scale * -c.in(0));
}
void MaximumMinimum(GradCall& c) {
  // Equal elements share the gradient.
  const bool max = c.op() == Op::maximum;
  const Tensor shared = Where(Eq(c.in(0), c.in(1)), c.g() * Scalar(0.5), c.g());
  if (c.needs(0)) c.set(0, Outside(shared, max ? Lt(c.in(0), c.in(1)) : Gt(c.in(0), c.in(1))));
  if (c.needs(1)) c.set(1, Outside(shared, max ? Lt(c.in(1), c.in(0)) : Gt(c.in(1), c.in(0))));
}

// ---- three tensors ----

void Addcmul(GradCall& c) {
  c.set(0, c.g());
  if (c.needs(1)) c.set(1, c.g() * (c.in(2) * c.s(3)));
  if (c.needs(2)) c.set(2, c.g() * (c.in(1) * c.s(3)));
}
void Addcdiv(GradCall& c) {
  c.set(0, c.g());
  if (c.needs(1)) c.set(1, c.g() * c.s(3) / c.in(2));
  if (c.needs(2)) c.set(2, -c.g() * (c.in(1) * c.s(3)) / (c.in(2) * c.in(2)));
}
void Lerp(GradCall& c) {
  if (c.op() == Op::lerp_Scalar) {
    const Scalar w = c.s(2);
    if (c.needs(0)) c.set(0, c.g() * Scalar(1 - w.ToDouble()));
    if (c.needs(1)) c.set(1, c.g() * w);
    return;
  }
  if (c.needs(0)) c.set(0, c.g() * Rsub(c.in(2), 1));
  if (c.needs(1)) c.set(1, c.g() * c.in(2));
  if (c.needs(2)) c.set(2, c.g() * (c.in(1) - c.in(0)));
}
void Where(GradCall& c) {
  const Tensor condition = c.in(0);
  if (c.op() != Op::where_ScalarSelf && c.needs(1)) c.set(1, Masked(c.g(), condition));
  // With a number in its place the first tensor is argument 2.
  if (c.op() != Op::where_ScalarOther && c.needs(2)) c.set(2, Outside(c.g(), condition));
}
void MaskedFill(GradCall& c) {
  if (c.needs(0)) c.set(0, Outside(c.g(), c.in(1)));
  if (c.op() == Op::masked_fill_Tensor && c.needs(2)) c.set(2, Sum(Masked(c.g(), c.in(1))));
}
void Clamp(GradCall& c) {
  const Tensor x = c.in(0);
  const bool tensors = c.op() == Op::clamp_Tensor;
  Tensor below, above;
  if (c.has(1)) below = tensors ? Lt(x, c.in(1)) : Lt(x, c.s(1));
  if (c.has(2)) above = tensors ? Gt(x, c.in(2)) : Gt(x, c.s(2));
  if (c.needs(0)) {
    Tensor g = c.g();
    if (below.defined()) g = Outside(g, below);
    if (above.defined()) g = Outside(g, above);
    c.set(0, g);
  }
  if (!tensors) return;
  if (c.has(1) && c.needs(1)) {
    // Where the lower bound lies above the upper one, the upper one wins.
    Tensor at_min = below;
    if (c.has(2)) at_min = And(at_min, Lt(c.in(1), c.in(2)));
    c.set(1, Masked(c.g(), at_min));
  }
  if (c.has(2) && c.needs(2)) {
    Tensor at_max = above;
    if (c.has(1)) at_max = Or(at_max, Gt(c.in(1), c.in(2)));
    c.set(2, Masked(c.g(), at_max));
  }
}

}  // namespace hlokit::lazy::derivative
