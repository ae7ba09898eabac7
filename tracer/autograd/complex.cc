// SPDX-License-Identifier: Apache-2.0
// Derivatives of complex numbers and Fourier transforms.
#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::derivative {
namespace {

Tensor RealPartOf(const Tensor& t) { return InvokeOp(Op::real, t); }
Tensor MakeComplex(const Tensor& real, const Tensor& imag) { return InvokeOp(Op::complex, real, imag); }

}  // namespace

void ComplexOf(BackwardContext& c) {
  if (c.needs(0)) c.set(0, RealPartOf(c.grad_output()));
  if (c.needs(1)) c.set(1, InvokeOp(Op::imag, c.grad_output()));
}
void RealPart(BackwardContext& c) {
  const Tensor g = c.grad_output();
  c.set(0, IsComplex(c.shape(0).element_type()) ? MakeComplex(g, ZerosLike(g)) : g);
}
void ImagPart(BackwardContext& c) { c.set(0, MakeComplex(ZerosLike(c.grad_output()), c.grad_output())); }
void Conj(BackwardContext& c) { c.set(0, InvokeOp(Op::conj_physical, c.grad_output())); }
void ViewAsReal(BackwardContext& c) { c.set(0, InvokeOp(Op::view_as_complex, c.grad_output())); }
void ViewAsComplex(BackwardContext& c) { c.set(0, InvokeOp(Op::view_as_real, c.grad_output())); }
void Angle(BackwardContext& c) {
  const Tensor z = Conjugate(c.in(0)), g = c.grad_output();
  if (!IsComplex(z.dtype())) return c.set(0, ZerosLike(g));
  // i g z / |z|^2, 0 at 0
  const Tensor x = RealPartOf(z), y = InvokeOp(Op::imag, z), square = x * x + y * y;
  const Tensor scale = MaskedFill(g / square, Eq(square, 0), 0);
  c.set(0, MakeComplex(-scale * y, scale * x));
}

void FftC2c(BackwardContext& c) {
  c.set(0, InvokeOp(Op::fft_c2c, c.grad_output(), c.ints(1), c.int_arg(2), !c.bool_arg(3)));
}
void FftR2c(BackwardContext& c) {
  // The part of the spectrum that a one-sided transform leaves out has gradient 0.
  Tensor g = c.grad_output();
  const Shape s = c.shape(0);
  const int64_t last = (c.ints(1).back() + s.rank()) % s.rank(), missing = s.dim(last) - g.size(last);
  if (missing > 0) {
    IntList pad(static_cast<size_t>(2 * (s.rank() - last)), 0);
    pad.back() = missing;
    g = InvokeOp(Op::constant_pad_nd, g, pad, 0);
  }
  c.set(0, RealPartOf(InvokeOp(Op::fft_c2c, g, c.ints(1), c.int_arg(2), false)));
}
void FftC2r(BackwardContext& c) {
  // Every element but the first and, of an even size, the last one stands for a conjugate too: it counts twice.
  const Tensor g = InvokeOp(Op::fft_r2c, c.grad_output(), c.ints(1), c.int_arg(2), true);
  const Shape s = c.shape(0);
  const int64_t last = (c.ints(1).back() + s.rank()) % s.rank(), half = s.dim(last);
  const int64_t doubled = c.int_arg(3) - half;
  if (doubled <= 0 || !g.defined()) return c.set(0, g);
  IntList line(static_cast<size_t>(s.rank()), 1);
  line[last] = half;
  const Tensor place = Reshape(Arange(half), line);
  c.set(0, Where(And(Ge(place, 1), Le(place, doubled)), g * Scalar(2), g));
}

}  // namespace hlokit::lazy::derivative
