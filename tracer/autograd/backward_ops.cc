// Derivatives of backward ops, for gradients of gradients. Those of the table that have none here end such a second
// derivative with an error.
#include "tracer/autograd/grad_call.h"
#include "tracer/functions.h"

namespace hlokit::lazy::derivative {

// g y (1 - y)
void SigmoidBackward(GradCall& c) {
  const Tensor y = c.in(1);
  if (c.needs(0)) c.set(0, Run(Op::sigmoid_backward, c.g(), y));
  if (c.needs(1)) c.set(1, c.g() * c.in(0) * Rsub(y * Scalar(2), 1));
}
// g (1 - y^2)
void TanhBackward(GradCall& c) {
  const Tensor y = c.in(1);
  if (c.needs(0)) c.set(0, Run(Op::tanh_backward, c.g(), y));
  if (c.needs(1)) c.set(1, c.g() * c.in(0) * y * Scalar(-2));
}
// g times a factor that is constant between jumps: linear in g, nothing for the rest.
void MaskedBackward(GradCall& c) {
  const Tensor& g = c.g();
  if (c.needs(0)) {
    c.set(0, c.op() == Op::threshold_backward    ? Run(Op::threshold_backward, g, c.in(1), c.s(2))
             : c.op() == Op::leaky_relu_backward ? Run(Op::leaky_relu_backward, g, c.in(1), c.s(2), c.b(3))
                                                 : Run(Op::hardtanh_backward, g, c.in(1), c.s(2), c.s(3)));
  }
  if (c.needs(1)) c.set(1, Zeros(c.shape(1).dims(), g.dtype()));
}
// y (g - sum(g y))
void SoftmaxBackward(GradCall& c) {
  const Tensor &g = c.in(0), y = c.in(1), &gg = c.g();
  const IntList dim = {c.i(2)};
  if (c.needs(0)) c.set(0, Run(Op::softmax_backward_data, gg, y, c.i(2), c.shape(0).element_type()));
  if (c.needs(1)) c.set(1, gg * (g - Sum(g * y, dim, true)) - g * Sum(gg * y, dim, true));
}
// g - exp(y) sum(g)
void LogSoftmaxBackward(GradCall& c) {
  const Tensor &g = c.in(0), &gg = c.g();
  const Tensor probability = Exp(c.in(1));
  const IntList dim = {c.i(2)};
  if (c.needs(0)) c.set(0, gg - Sum(gg * probability, dim, true));
  if (c.needs(1)) c.set(1, -(gg * probability * Sum(g, dim, true)));
}
// Linear in the gradient; of the input it takes the shape alone.
void NllLossBackward(GradCall& c) {
  if (c.needs(0)) c.set(0, RunAll(Op::nll_loss_forward, c.g(), c.in(2), c.in(3), c.i(4), c.i(5))[0]);
  if (c.needs(1)) c.set(1, Zeros(c.shape(1).dims(), c.g().dtype()));
}
// 2 g (x - t), divided by the number of elements for a mean.
void MseLossBackward(GradCall& c) {
  const Tensor d = c.in(1) - c.in(2), &gg = c.g();
  const int64_t reduction = c.i(3);
  const double factor = reduction == 1 ? 2.0 / static_cast<double>(d.numel()) : 2.0;
  if (c.needs(0)) c.set(0, reduction == 0 ? gg * d * Scalar(factor) : Sum(gg * d) * Scalar(factor));
  if (c.needs(1) || c.needs(2)) {
    const Tensor slope = gg * c.in(0) * Scalar(factor);
    c.set(1, slope);
    if (c.needs(2)) c.set(2, -slope);
  }
}
void EmbeddingBackward(GradCall& c) {
  Tensor rows = Run(Op::embedding, c.g(), c.in(1), c.i(3));
  if (c.i(3) >= 0 && rows.defined()) rows = MaskedFill(rows, Unsqueeze(Eq(c.in(1), c.i(3)), -1), 0);
  c.set(0, rows);
}
void AdaptiveAvgPoolBackward(GradCall& c) {
  const Shape g = c.shape(0);
  if (c.needs(0)) c.set(0, Run(Op::adaptive_avg_pool2d, c.g(), IntList{g.dim(g.rank() - 2), g.dim(g.rank() - 1)}));
  if (c.needs(1)) c.set(1, Zeros(c.shape(1).dims(), c.g().dtype()));
}
void NativeDropout(GradCall& c) {
  if (!c.g(0).defined()) return;
  if (c.has(2) && !c.b(2)) return c.set(0, c.g(0));
  const double p = c.d(1);
  c.set(0, Run(Op::native_dropout_backward, c.g(0), c.out(1), p == 1 ? 0.0 : 1 / (1 - p)));
}
void NativeDropoutBackward(GradCall& c) { c.set(0, Run(Op::native_dropout_backward, c.g(), c.in(1), c.d(2))); }

}  // namespace hlokit::lazy::derivative
