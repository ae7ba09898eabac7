// SPDX-License-Identifier: Apache-2.0
// Derivatives of elementwise ops.
#include <cmath>
#include <limits>
#include <numbers>

#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy::derivative {
namespace {

Tensor Zero(const Tensor& like) { return ZerosLike(like); }
// Returns g where the condition holds, else 0.
Tensor Masked(const Tensor& g, const Tensor& condition) { return Where(condition, g, 0); }
// Returns g where the condition does not hold, else 0.
Tensor Outside(const Tensor& g, const Tensor& condition) { return MaskedFill(g, condition, 0); }

}  // namespace

void PassThrough(BackwardContext& c) { c.set(0, c.grad_output()); }
void ZeroGrad(BackwardContext& c) { c.set(0, Zero(c.grad_output())); }
void Clone(BackwardContext& c) { c.set(0, c.grad_output()); }
void Cast(BackwardContext& c) { c.set(0, c.grad_output()); }
void Fill(BackwardContext& c) {
  c.set(0, Zero(c.grad_output()));
  if (c.op() == Op::fill_Tensor && c.needs(1)) c.set(1, Sum(c.grad_output()));
}
void Copy(BackwardContext& c) {
  c.set(0, Zero(c.grad_output()));
  if (c.needs(1)) c.set(1, To(c.grad_output(), c.shape(1).element_type()));
}
void Sign(BackwardContext& c) {
  const Tensor g = c.grad_output();
  if (!IsComplex(g.dtype())) return c.set(0, Zero(g));
  // z / |z|: the part of g across the direction of z, divided by |z|.
  const Tensor direction = Conjugate(c.out()), length = Abs(c.in(0));
  const Tensor along = InvokeOp(Op::real, g * c.out()) * direction;
  c.set(0, MaskedFill((g - along) / length, Eq(length, 0), 0));
}

// ---- one tensor ----

void Abs(BackwardContext& c) { c.set(0, c.grad_output() * Sgn(Conjugate(c.in(0)))); }
void Neg(BackwardContext& c) { c.set(0, -c.grad_output()); }
void Exp(BackwardContext& c) { c.set(0, c.grad_output() * c.out()); }
void Exp2(BackwardContext& c) { c.set(0, c.grad_output() * c.out() * Scalar(std::numbers::ln2)); }
void Expm1(BackwardContext& c) { c.set(0, c.grad_output() * Add(c.out(), 1)); }
void Log(BackwardContext& c) { c.set(0, c.grad_output() / c.in(0)); }
void Log1p(BackwardContext& c) { c.set(0, c.grad_output() / Add(c.in(0), 1)); }
void Log2(BackwardContext& c) { c.set(0, c.grad_output() / (c.in(0) * Scalar(std::numbers::ln2))); }
void Log10(BackwardContext& c) { c.set(0, c.grad_output() / (c.in(0) * Scalar(std::numbers::ln10))); }
void Sqrt(BackwardContext& c) { c.set(0, c.grad_output() / (c.out() * Scalar(2))); }
void Rsqrt(BackwardContext& c) { c.set(0, c.grad_output() * Pow(c.out(), 3) * Scalar(-0.5)); }
void Reciprocal(BackwardContext& c) { c.set(0, -c.grad_output() * (c.out() * c.out())); }
void Erf(BackwardContext& c) {
  const Tensor x = c.in(0);
  c.set(0, Exp(-(x * x)) * Scalar(2 / std::sqrt(std::numbers::pi)) * c.grad_output());
}
void Erfc(BackwardContext& c) {
  const Tensor x = c.in(0);
  c.set(0, Exp(-(x * x)) * Scalar(-2 / std::sqrt(std::numbers::pi)) * c.grad_output());
}
void Erfinv(BackwardContext& c) {
  c.set(0, Exp(c.out() * c.out()) * Scalar(std::sqrt(std::numbers::pi) / 2) * c.grad_output());
}
void Sin(BackwardContext& c) { c.set(0, c.grad_output() * InvokeOp(Op::cos, c.in(0))); }
void Cos(BackwardContext& c) { c.set(0, c.grad_output() * -InvokeOp(Op::sin, c.in(0))); }
void Sinh(BackwardContext& c) { c.set(0, c.grad_output() * InvokeOp(Op::cosh, c.in(0))); }
void Cosh(BackwardContext& c) { c.set(0, c.grad_output() * InvokeOp(Op::sinh, c.in(0))); }
void Acos(BackwardContext& c) { c.set(0, -c.grad_output() * Rsqrt(Rsub(c.in(0) * c.in(0), 1))); }
void Asin(BackwardContext& c) { c.set(0, c.grad_output() * Rsqrt(Rsub(c.in(0) * c.in(0), 1))); }
void Acosh(BackwardContext& c) { c.set(0, c.grad_output() * Rsqrt(Sub(c.in(0) * c.in(0), 1))); }
void Asinh(BackwardContext& c) { c.set(0, c.grad_output() * Rsqrt(Add(c.in(0) * c.in(0), 1))); }
void Atanh(BackwardContext& c) { c.set(0, c.grad_output() / Rsub(c.in(0) * c.in(0), 1)); }
void Tan(BackwardContext& c) { c.set(0, c.grad_output() * Add(c.out() * c.out(), 1)); }
void Atan(BackwardContext& c) { c.set(0, c.grad_output() / Add(c.in(0) * c.in(0), 1)); }
void Square(BackwardContext& c) { c.set(0, c.grad_output() * (c.in(0) * Scalar(2))); }
// What is saved comes conjugated, as factors of derivatives are; these ops conjugate themselves.
void Tanh(BackwardContext& c) { c.set(0, InvokeOp(Op::tanh_backward, c.grad_output(), Conjugate(c.out()))); }
void Sigmoid(BackwardContext& c) { c.set(0, InvokeOp(Op::sigmoid_backward, c.grad_output(), Conjugate(c.out()))); }
void Relu(BackwardContext& c) { c.set(0, InvokeOp(Op::threshold_backward, c.grad_output(), c.out(), 0)); }
void NanToNum(BackwardContext& c) { c.set(0, Masked(c.grad_output(), InvokeOp(Op::isfinite, c.in(0)))); }
void Logit(BackwardContext& c) {
  const Tensor x = c.in(0);
  Tensor slope = c.grad_output() / (x * Rsub(x, 1));
  if (c.has(1)) {
    slope = Masked(slope, And(Ge(x, c.float_arg(1)), Le(x, 1 - c.float_arg(1))));
  } else {
    slope = MaskedFill(slope, InvokeOp(Op::isnan, c.out()), std::numeric_limits<double>::quiet_NaN());
  }
  c.set(0, slope);
}

// ---- activations ----

void Silu(BackwardContext& c) { c.set(0, InvokeOp(Op::silu_backward, c.grad_output(), c.in(0))); }
void Mish(BackwardContext& c) { c.set(0, InvokeOp(Op::mish_backward, c.grad_output(), c.in(0))); }
void Hardswish(BackwardContext& c) { c.set(0, InvokeOp(Op::hardswish_backward, c.grad_output(), c.in(0))); }
void Hardsigmoid(BackwardContext& c) { c.set(0, InvokeOp(Op::hardsigmoid_backward, c.grad_output(), c.in(0))); }
void Gelu(BackwardContext& c) {
  c.set(0, InvokeOp(Op::gelu_backward, c.grad_output(), c.in(0), std::string(c.str(1))));
}
void Threshold(BackwardContext& c) {
  c.set(0, InvokeOp(Op::threshold_backward, c.grad_output(), c.in(0), c.scalar(1)));
}
void LeakyRelu(BackwardContext& c) {
  c.set(0, InvokeOp(Op::leaky_relu_backward, c.grad_output(), c.in(0), c.scalar(1), false));
}
void Hardtanh(BackwardContext& c) {
  c.set(0, InvokeOp(Op::hardtanh_backward, c.grad_output(), c.in(0), c.scalar(1), c.scalar(2)));
}
void Elu(BackwardContext& c) {
  c.set(0, InvokeOp(Op::elu_backward, c.grad_output(), c.scalar(1), c.scalar(2), c.scalar(3), false, c.in(0)));
}
void Softplus(BackwardContext& c) {
  c.set(0, InvokeOp(Op::softplus_backward, c.grad_output(), c.in(0), c.scalar(1), c.scalar(2)));
}
void LogSigmoid(BackwardContext& c) {
  if (c.grad_output().defined()) c.set(0, InvokeOp(Op::log_sigmoid_backward, c.grad_output(), c.in(0), c.out(1)));
}

// ---- two tensors (the second may be a number) ----

void Add(BackwardContext& c) {
  c.set(0, c.grad_output());
  if (c.op() == Op::add_Tensor && c.needs(1))
    c.set(1, c.scalar(2).Is(1) ? c.grad_output() : c.grad_output() * c.scalar(2));
}
void Sub(BackwardContext& c) {
  c.set(0, c.grad_output());
  if (c.op() == Op::sub_Tensor && c.needs(1))
    c.set(1, c.scalar(2).Is(1) ? -c.grad_output() : c.grad_output() * -c.scalar(2));
}
void Rsub(BackwardContext& c) {
  if (c.needs(0)) c.set(0, c.grad_output() * -c.scalar(2));
  if (c.op() == Op::rsub_Tensor) c.set(1, c.grad_output());
}
void Mul(BackwardContext& c) {
  if (c.op() == Op::mul_Scalar) return c.set(0, c.grad_output() * c.scalar(1));
  if (c.needs(0)) c.set(0, c.grad_output() * c.in(1));
  if (c.needs(1)) c.set(1, c.grad_output() * c.in(0));
}
void Div(BackwardContext& c) {
  if (c.op() == Op::div_Scalar) return c.set(0, c.grad_output() / c.scalar(1));
  if (c.needs(0)) c.set(0, c.grad_output() / c.in(1));
  if (c.needs(1)) c.set(1, -c.grad_output() * ((c.in(0) / c.in(1)) / c.in(1)));
}
void DivMode(BackwardContext& c) {
  const bool rounded = !c.str(2).empty();
  if (c.op() == Op::div_Scalar_mode) return c.set(0, rounded ? Zero(c.grad_output()) : c.grad_output() / c.scalar(1));
  if (c.needs(0)) c.set(0, rounded ? Zero(c.grad_output()) : c.grad_output() / c.in(1));
  if (c.needs(1)) c.set(1, rounded ? Zero(c.grad_output()) : -c.grad_output() * ((c.in(0) / c.in(1)) / c.in(1)));
}
void Remainder(BackwardContext& c) {
  c.set(0, c.grad_output());
  if (c.op() == Op::remainder_Tensor && c.needs(1)) {
    c.set(1, -c.grad_output() * InvokeOp(Op::div_Tensor_mode, c.in(0), c.in(1), "floor"));
  }
}
void Fmod(BackwardContext& c) {
  c.set(0, c.grad_output());
  if (c.op() == Op::fmod_Tensor && c.needs(1)) {
    c.set(1, -c.grad_output() * InvokeOp(Op::div_Tensor_mode, c.in(0), c.in(1), "trunc"));
  }
}
void PowScalarExponent(BackwardContext& c) {
  const Scalar n = c.scalar(1);
  if (n.Is(0)) return c.set(0, Zero(c.grad_output()));
  const Scalar less = n.is_float() ? Scalar(n.ToDouble() - 1) : Scalar(n.ToInt() - 1);
  c.set(0, c.grad_output() * (Pow(c.in(0), less) * n));
}
void PowScalarBase(BackwardContext& c) {
  const double base = c.float_arg(0);
  if (!c.needs(1)) return;
  if (base == 0) {
    return c.set(1, Where(Ge(c.in(1), 0), Zero(c.grad_output()), c.grad_output() * (c.out() * Scalar(std::log(base)))));
  }
  c.set(1, c.grad_output() * (c.out() * Scalar(std::log(base))));
}
void Pow(BackwardContext& c) {
  if (c.needs(0)) {
    const Tensor n = c.in(1);
    c.set(0, Where(Eq(n, 0), Zero(c.grad_output()), c.grad_output() * (n * Pow(c.in(0), n - Scalar(1)))));
  }
  if (c.needs(1)) {
    const Tensor x = c.in(0);
    const Tensor n = c.in(1), real = IsComplex(n.dtype()) ? InvokeOp(Op::real, n) : n;
    const Tensor no_slope = And(Eq(x, 0), Ge(real, 0));
    c.set(1, c.grad_output() * Where(no_slope, Zero(c.out()), c.out() * Log(x)));
  }
}
void Atan2(BackwardContext& c) {
  const Tensor scale = c.grad_output() / (c.in(0) * c.in(0) + c.in(1) * c.in(1));
  if (c.needs(0)) c.set(0, scale * c.in(1));
  if (c.needs(1)) c.set(1, scale * -c.in(0));
}
void MaximumMinimum(BackwardContext& c) {
  // Equal elements share the gradient.
  const bool max = c.op() == Op::maximum;
  const Tensor shared = Where(Eq(c.in(0), c.in(1)), c.grad_output() * Scalar(0.5), c.grad_output());
  if (c.needs(0)) c.set(0, Outside(shared, max ? Lt(c.in(0), c.in(1)) : Gt(c.in(0), c.in(1))));
  if (c.needs(1)) c.set(1, Outside(shared, max ? Lt(c.in(1), c.in(0)) : Gt(c.in(1), c.in(0))));
}

// ---- three tensors ----

void Addcmul(BackwardContext& c) {
  c.set(0, c.grad_output());
  if (c.needs(1)) c.set(1, c.grad_output() * (c.in(2) * c.scalar(3)));
  if (c.needs(2)) c.set(2, c.grad_output() * (c.in(1) * c.scalar(3)));
}
void Addcdiv(BackwardContext& c) {
  c.set(0, c.grad_output());
  if (c.needs(1)) c.set(1, c.grad_output() * c.scalar(3) / c.in(2));
  if (c.needs(2)) c.set(2, -c.grad_output() * (c.in(1) * c.scalar(3)) / (c.in(2) * c.in(2)));
}
void Lerp(BackwardContext& c) {
  if (c.op() == Op::lerp_Scalar) {
    const Scalar w = c.scalar(2);
    if (c.needs(0)) c.set(0, c.grad_output() * Scalar(1 - w.ToDouble()));
    if (c.needs(1)) c.set(1, c.grad_output() * w);
    return;
  }
  if (c.needs(0)) c.set(0, c.grad_output() * Rsub(c.in(2), 1));
  if (c.needs(1)) c.set(1, c.grad_output() * c.in(2));
  if (c.needs(2)) c.set(2, c.grad_output() * (c.in(1) - c.in(0)));
}
void Where(BackwardContext& c) {
  const Tensor condition = c.in(0);
  if (c.op() != Op::where_ScalarSelf && c.needs(1)) c.set(1, Masked(c.grad_output(), condition));
  // The overload with a number has no first tensor; argument 2 is the tensor.
  if (c.op() != Op::where_ScalarOther && c.needs(2)) c.set(2, Outside(c.grad_output(), condition));
}
void MaskedFill(BackwardContext& c) {
  if (c.needs(0)) c.set(0, Outside(c.grad_output(), c.in(1)));
  if (c.op() == Op::masked_fill_Tensor && c.needs(2)) c.set(2, Sum(Masked(c.grad_output(), c.in(1))));
}
void Clamp(BackwardContext& c) {
  const Tensor x = c.in(0);
  const bool tensors = c.op() == Op::clamp_Tensor;
  if (c.needs(0)) {
    // Within both bounds; not where the element or a bound is NaN.
    Tensor g = c.grad_output();
    if (c.has(1)) g = Masked(g, tensors ? Ge(x, c.in(1)) : Ge(x, c.scalar(1)));
    if (c.has(2)) g = Masked(g, tensors ? Le(x, c.in(2)) : Le(x, c.scalar(2)));
    c.set(0, g);
  }
  if (!tensors) return;
  if (c.has(1) && c.needs(1)) {
    // Where the lower bound is above the upper one, the upper one wins.
    Tensor at_min = Lt(x, c.in(1));
    if (c.has(2)) at_min = And(at_min, Lt(c.in(1), c.in(2)));
    c.set(1, Masked(c.grad_output(), at_min));
  }
  if (c.has(2) && c.needs(2)) {
    Tensor at_max = Gt(x, c.in(2));
    if (c.has(1)) at_max = Or(at_max, Gt(c.in(1), c.in(2)));
    c.set(2, Masked(c.grad_output(), at_max));
  }
}

}  // namespace hlokit::lazy::derivative
