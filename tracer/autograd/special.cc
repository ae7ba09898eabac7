// SPDX-License-Identifier: Apache-2.0
// Derivatives of special functions and of elementwise ops of two tensors beyond arithmetic.
#include <cmath>
#include <numbers>

#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy::derivative {

// ---- special functions ----

void Lgamma(BackwardContext& c) { c.set(0, c.grad_output() * InvokeOp(Op::digamma, c.in(0))); }
void Digamma(BackwardContext& c) { c.set(0, c.grad_output() * InvokeOp(Op::polygamma, 1, c.in(0))); }
void Polygamma(BackwardContext& c) {
  if (c.needs(1)) c.set(1, c.grad_output() * InvokeOp(Op::polygamma, c.int_arg(0) + 1, c.in(1)));
}
void I0(BackwardContext& c) { c.set(0, c.grad_output() * InvokeOp(Op::special_i1, c.in(0))); }
void I0e(BackwardContext& c) {
  c.set(0, c.grad_output() * (InvokeOp(Op::special_i1e, c.in(0)) - Sgn(c.in(0)) * c.out()));
}
void I1(BackwardContext& c) {
  // i0(x) - i1(x) / x, at 0 the limit 1/2.
  const Tensor x = c.in(0), at_zero = Eq(x, 0);
  const Tensor slope = InvokeOp(Op::i0, x) - c.out() / MaskedFill(x, at_zero, 1);
  c.set(0, c.grad_output() * MaskedFill(slope, at_zero, 0.5));
}
void I1e(BackwardContext& c) {
  const Tensor x = c.in(0), at_zero = Eq(x, 0);
  const Tensor slope = InvokeOp(Op::special_i0e, x) - c.out() * (Sgn(x) + Reciprocal(MaskedFill(x, at_zero, 1)));
  c.set(0, c.grad_output() * MaskedFill(slope, at_zero, 0.5));
}
void Erfcx(BackwardContext& c) {
  c.set(0, c.grad_output() * Sub(c.in(0) * c.out() * Scalar(2), Scalar(2 / std::sqrt(std::numbers::pi))));
}
void Sinc(BackwardContext& c) {
  const Tensor x = c.in(0), at_zero = Eq(x, 0), angle = x * Scalar(std::numbers::pi);
  const Tensor slope = (angle * InvokeOp(Op::cos, angle) - InvokeOp(Op::sin, angle)) / (angle * x);
  c.set(0, c.grad_output() * MaskedFill(slope, at_zero, 0));
}
void Entr(BackwardContext& c) { c.set(0, c.grad_output() * Sub(-Log(c.in(0)), Scalar(1))); }

// ---- two tensors ----

void Hypot(BackwardContext& c) {
  if (c.needs(0)) c.set(0, c.grad_output() * (c.in(0) / c.out()));
  if (c.needs(1)) c.set(1, c.grad_output() * (c.in(1) / c.out()));
}
void Copysign(BackwardContext& c) {
  if (c.needs(0)) c.set(0, c.grad_output() * MaskedFill(c.out() / c.in(0), Eq(c.in(0), 0), 0));
  if (c.op() == Op::copysign_Tensor && c.needs(1)) c.set(1, ZerosLike(c.grad_output()));
}
void FmaxFmin(BackwardContext& c) {
  // The first one counts where both are equal or the second is NaN.
  const Tensor better = c.op() == Op::fmax ? Ge(c.in(0), c.in(1)) : Le(c.in(0), c.in(1));
  const Tensor first = Or(better, InvokeOp(Op::isnan, c.in(1)));
  if (c.needs(0)) c.set(0, Where(first, c.grad_output(), 0));
  if (c.needs(1)) c.set(1, MaskedFill(c.grad_output(), first, 0));
}
void Logaddexp(BackwardContext& c) {
  const Scalar scale = c.op() == Op::logaddexp ? Scalar(1) : Scalar(std::numbers::ln2);
  const Tensor difference = (c.in(0) - c.in(1)) * scale;
  if (c.needs(0)) c.set(0, c.grad_output() * InvokeOp(Op::sigmoid, difference));
  if (c.needs(1)) c.set(1, c.grad_output() * InvokeOp(Op::sigmoid, -difference));
}
void Xlogy(BackwardContext& c) {
  const Tensor x = c.in(0), y = c.in(1);
  if (c.needs(0)) c.set(0, c.grad_output() * MaskedFill(Log(y), And(Eq(x, 0), Le(y, 0)), 0));
  if (c.needs(1)) c.set(1, c.grad_output() * (x / y));
}
void Xlog1py(BackwardContext& c) {
  const Tensor x = c.in(0), y = c.in(1);
  if (c.needs(0)) {
    c.set(0, c.grad_output() * MaskedFill(InvokeOp(Op::log1p, y), And(Eq(x, 0), Le(y, -1)), 0));
  }
  if (c.needs(1)) c.set(1, c.grad_output() * (x / Add(y, 1)));
}

}  // namespace hlokit::lazy::derivative
