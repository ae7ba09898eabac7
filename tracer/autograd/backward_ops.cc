// SPDX-License-Identifier: Apache-2.0
// Derivatives of backward ops, for gradients of gradients. Second derivatives of other backward ops are errors.
#include <numbers>

#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::derivative {
namespace {

Tensor ZerosOf(BackwardContext& c, size_t i) { return Zeros(c.shape(i).dims(), c.grad_output().dtype()); }

}  // namespace

// ---- activations: g f'(x), with derivatives f'(x) and g f''(x) ----

// f = x P(X <= x)
void GeluBackward(BackwardContext& c) {
  const Tensor x = c.in(1);
  const std::string approximate(c.str(2));
  if (c.needs(0)) c.set(0, InvokeOp(Op::gelu_backward, c.grad_output(), x, approximate));
  if (!c.needs(1)) return;
  Tensor second;
  if (approximate == "none") {
    // (2 - x^2) exp(-x^2 / 2) / sqrt(2 pi)
    const Tensor square = x * x;
    second = Rsub(square, 2) * Exp(square * Scalar(-0.5)) * Scalar(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  } else {
    // f = x (1 + tanh(u)) / 2 with u = k (x + a x^3)
    const double k = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, a = 0.044715;
    const Tensor square = x * x;
    const Tensor t = Tanh(x * Add(square * Scalar(a), 1) * Scalar(k));
    const Tensor du = Add(square * Scalar(3 * a), 1) * Scalar(k);
    const Tensor slope = Rsub(t * t, 1);
    second = slope * (du + x * (x * Scalar(3 * a * k) - t * du * du));
  }
  c.set(1, c.grad_output() * c.in(0) * second);
}
// f = x s(x); f'' = s (1 - s) (2 + x (1 - 2 s))
void SiluBackward(BackwardContext& c) {
  const Tensor x = c.in(1);
  if (c.needs(0)) c.set(0, InvokeOp(Op::silu_backward, c.grad_output(), x));
  if (!c.needs(1)) return;
  const Tensor s = Sigmoid(x);
  c.set(1, c.grad_output() * c.in(0) * s * Rsub(s, 1) * Add(x * Rsub(s * Scalar(2), 1), 2));
}
// f = x t, t = tanh(log(1 + exp(x))); f'' = (1 - t^2) s (2 + x (1 - s - 2 t s))
void MishBackward(BackwardContext& c) {
  const Tensor x = c.in(1);
  if (c.needs(0)) c.set(0, InvokeOp(Op::mish_backward, c.grad_output(), x));
  if (!c.needs(1)) return;
  const Tensor s = Sigmoid(x);
  const Tensor t = Tanh(InvokeOp(Op::softplus, x));
  c.set(1, c.grad_output() * c.in(0) * Rsub(t * t, 1) * s * Add(x * (Rsub(s, 1) - t * s * Scalar(2)), 2));
}
// f'' = 1/3 between -3 and 3
void HardswishBackward(BackwardContext& c) {
  const Tensor x = c.in(1);
  if (c.needs(0)) c.set(0, InvokeOp(Op::hardswish_backward, c.grad_output(), x));
  if (c.needs(1)) c.set(1, Where(Lt(Abs(x), 3), c.grad_output() * c.in(0) * Scalar(1.0 / 3), 0));
}
// f'' = beta s (1 - s) where beta x is not above the threshold
void SoftplusBackward(BackwardContext& c) {
  const Tensor x = c.in(1);
  const double beta = c.float_arg(2);
  if (c.needs(0)) c.set(0, InvokeOp(Op::softplus_backward, c.grad_output(), x, c.scalar(2), c.scalar(3)));
  if (!c.needs(1)) return;
  const Tensor s = Sigmoid(x * Scalar(beta));
  const Tensor second = c.grad_output() * c.in(0) * s * Rsub(s, 1) * Scalar(beta);
  c.set(1, MaskedFill(second, Gt(x * Scalar(beta), c.scalar(3)), 0));
}
// With respect to the input x: f'' = scale alpha input_scale^2 exp(input_scale x) below 0. The result y minus scale
// alpha gives the same.
void EluBackward(BackwardContext& c) {
  const double alpha = c.float_arg(1), scale = c.float_arg(2), input_scale = c.float_arg(3);
  const bool is_result = c.bool_arg(4);
  const Tensor v = c.in(5);
  if (c.needs(0))
    c.set(0, InvokeOp(Op::elu_backward, c.grad_output(), c.scalar(1), c.scalar(2), c.scalar(3), is_result, v));
  if (!c.needs(5)) return;
  // In terms of the result, f' is input_scale (y + scale alpha), which depends on y only.
  const Tensor slope = c.grad_output() * c.in(0) * Scalar(input_scale);
  const Tensor second = is_result ? slope : slope * Exp(v * Scalar(input_scale)) * Scalar(scale * alpha * input_scale);
  c.set(5, Where(Le(v, 0), second, 0));
}
// f' = s(-x)
void LogSigmoidBackward(BackwardContext& c) {
  const Tensor x = c.in(1);
  if (c.needs(0)) c.set(0, c.grad_output() * Sigmoid(-x));
  if (!c.needs(1)) return;
  const Tensor s = Sigmoid(x);
  c.set(1, c.grad_output() * c.in(0) * s * (s - Scalar(1)));
}
// g y (1 - y)
void SigmoidBackward(BackwardContext& c) {
  const Tensor y = c.in(1);
  if (c.needs(0)) c.set(0, InvokeOp(Op::sigmoid_backward, c.grad_output(), y));
  if (c.needs(1)) c.set(1, c.grad_output() * c.in(0) * Rsub(y * Scalar(2), 1));
}
// g (1 - y^2)
void TanhBackward(BackwardContext& c) {
  const Tensor y = c.in(1);
  if (c.needs(0)) c.set(0, InvokeOp(Op::tanh_backward, c.grad_output(), y));
  if (c.needs(1)) c.set(1, c.grad_output() * c.in(0) * y * Scalar(-2));
}
// g times a piecewise constant factor: linear in g, no gradient for other arguments.
void MaskedBackward(BackwardContext& c) {
  const Tensor& g = c.grad_output();
  if (c.needs(0)) {
    c.set(0, c.op() == Op::threshold_backward ? InvokeOp(Op::threshold_backward, g, c.in(1), c.scalar(2))
             : c.op() == Op::leaky_relu_backward
                 ? InvokeOp(Op::leaky_relu_backward, g, c.in(1), c.scalar(2), c.bool_arg(3))
             : c.op() == Op::hardsigmoid_backward
                 ? InvokeOp(Op::hardsigmoid_backward, g, c.in(1))
                 : InvokeOp(Op::hardtanh_backward, g, c.in(1), c.scalar(2), c.scalar(3)));
  }
  if (c.needs(1)) c.set(1, Zeros(c.shape(1).dims(), g.dtype()));
}
// ---- softmax and losses ----

// y (g - sum(g y))
void SoftmaxBackward(BackwardContext& c) {
  const Tensor &g = c.in(0), y = c.in(1), &gg = c.grad_output();
  const IntList dim = {c.int_arg(2)};
  if (c.needs(0)) c.set(0, InvokeOp(Op::softmax_backward_data, gg, y, c.int_arg(2), c.shape(0).element_type()));
  if (c.needs(1)) c.set(1, gg * (g - Sum(g * y, dim, true)) - g * Sum(gg * y, dim, true));
}
// g - exp(y) sum(g)
void LogSoftmaxBackward(BackwardContext& c) {
  const Tensor &g = c.in(0), &gg = c.grad_output();
  const Tensor probability = Exp(c.in(1));
  const IntList dim = {c.int_arg(2)};
  if (c.needs(0)) c.set(0, gg - Sum(gg * probability, dim, true));
  if (c.needs(1)) c.set(1, -(gg * probability * Sum(g, dim, true)));
}
// Linear in the gradient; uses only the shape of the input.
void NllLossBackward(BackwardContext& c) {
  if (c.needs(0))
    c.set(0,
          InvokeOpMultiOutput(Op::nll_loss_forward, c.grad_output(), c.in(2), c.in(3), c.int_arg(4), c.int_arg(5))[0]);
  if (c.needs(1)) c.set(1, Zeros(c.shape(1).dims(), c.grad_output().dtype()));
}
// 2 g (x - t), divided by the number of elements for a mean.
void MseLossBackward(BackwardContext& c) {
  const Tensor d = c.in(1) - c.in(2), &gg = c.grad_output();
  const int64_t reduction = c.int_arg(3);
  const double factor = reduction == 1 ? 2.0 / static_cast<double>(d.numel()) : 2.0;
  if (c.needs(0)) c.set(0, reduction == 0 ? gg * d * Scalar(factor) : Sum(gg * d) * Scalar(factor));
  if (c.needs(1) || c.needs(2)) {
    const Tensor slope = gg * c.in(0) * Scalar(factor);
    c.set(1, slope);
    if (c.needs(2)) c.set(2, -slope);
  }
}
// g w (x - t) / (x (1 - x)), divided by the number of elements for a mean.
void BceBackward(BackwardContext& c) {
  const Tensor x = c.in(1), t = c.in(2), w = c.in(3), &gg = c.grad_output();
  const int64_t reduction = c.int_arg(4);
  const auto scaled = [&](Tensor v) {
    if (w.defined()) v = v * w;
    return reduction == 1 ? v / Scalar(x.numel()) : v;
  };
  const Tensor spread = x * Rsub(x, 1);
  if (c.needs(0)) {
    const Tensor slope = gg * scaled((x - t) / spread);
    c.set(0, reduction == 0 ? slope : Sum(slope));
  }
  const Tensor both = gg * c.in(0);
  if (c.needs(1)) c.set(1, both * scaled((x * x - x * t * Scalar(2) + t) / (spread * spread)));
  if (c.needs(2)) c.set(2, -both * scaled(Reciprocal(spread)));
}
// g (x - t) / beta near 0, g sign(x - t) elsewhere, divided by the number of elements for a mean.
void SmoothL1LossBackward(BackwardContext& c) {
  const Tensor d = c.in(1) - c.in(2), &gg = c.grad_output();
  const int64_t reduction = c.int_arg(3);
  const double beta = c.float_arg(4), share = reduction == 1 ? 1 / static_cast<double>(d.numel()) : 1;
  if (c.needs(0)) {
    const Tensor slope = beta > 0 ? InvokeOp(Op::clamp, d / Scalar(beta), -1.0, 1.0) : Sgn(d);
    c.set(0, reduction == 0 ? gg * slope : Sum(gg * slope) * Scalar(share));
  }
  if (!c.needs(1) && !c.needs(2)) return;
  Tensor second = Zeros(d.sizes(), d.dtype());
  if (beta > 0) second = Where(Lt(Abs(d), beta), gg * c.in(0) * Scalar(share / beta), 0);
  c.set(1, second);
  if (c.needs(2)) c.set(2, -second);
}
void EmbeddingBackward(BackwardContext& c) {
  Tensor rows = InvokeOp(Op::embedding, c.grad_output(), c.in(1), c.int_arg(3));
  if (c.int_arg(3) >= 0 && rows.defined()) rows = MaskedFill(rows, Unsqueeze(Eq(c.in(1), c.int_arg(3)), -1), 0);
  c.set(0, rows);
}
// ---- pooling and resizing: linear in the gradient ----

// Returns gradients to the elements that were the maximum.
void MaxPoolBackward(BackwardContext& c) {
  const Tensor& gg = c.grad_output();
  if (c.needs(0)) {
    const Tensor indices = c.in(7);
    const int64_t spatial = static_cast<int64_t>(c.ints(2).size());
    const Tensor flat = Flatten(gg, gg.dim() - spatial);
    c.set(0, Reshape(Gather(flat, -1, Flatten(indices, indices.dim() - spatial)), Sizes(indices.shape())));
  }
  if (c.needs(1)) c.set(1, ZerosOf(c, 1));
}
void AvgPoolBackward(BackwardContext& c) {
  const Op forward = c.op() == Op::avg_pool3d_backward ? Op::avg_pool3d : Op::avg_pool2d;
  const IValue divisor = c.has(7) ? IValue(c.int_arg(7)) : IValue();
  if (c.needs(0))
    c.set(0,
          InvokeOp(forward, c.grad_output(), c.ints(2), c.ints(3), c.ints(4), c.bool_arg(5), c.bool_arg(6), divisor));
  if (c.needs(1)) c.set(1, ZerosOf(c, 1));
}
void AdaptiveAvgPoolBackward(BackwardContext& c) {
  const Shape g = c.shape(0);
  if (c.needs(0)) {
    const bool two = c.op() == Op::adaptive_avg_pool2d_backward;
    const IntList sizes(g.dims().end() - (two ? 2 : 3), g.dims().end());
    c.set(0, InvokeOp(two ? Op::adaptive_avg_pool2d : Op::adaptive_avg_pool3d, c.grad_output(), sizes));
  }
  if (c.needs(1)) c.set(1, Zeros(c.shape(1).dims(), c.grad_output().dtype()));
}

// ---- convolution ----

// With gx, gw, gb the results and a, b, d their gradients: the sum of gx a + gw b + gb d is that of g (conv(a, w) +
// conv(x, b) + d), which is linear in each of g, x and w.
void ConvolutionBackward(BackwardContext& c) {
  // grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
  const Tensor &a = c.grad_output(0), &b = c.grad_output(1), &d = c.grad_output(2);
  const Tensor g = c.in(0), x = c.in(1), w = c.in(2);
  if (c.needs(0)) {
    const auto forward = [&](const Tensor& input, const Tensor& kernel) {
      return InvokeOp(Op::convolution, input, kernel, Tensor(), c.ints(4), c.ints(5), c.ints(6), c.bool_arg(7),
                      c.ints(8), c.int_arg(9));
    };
    Tensor sum;
    const auto add = [&](const Tensor& t) { sum = sum.defined() ? sum + t : t; };
    if (a.defined()) add(forward(a, w));
    if (b.defined()) add(forward(x, b));
    if (d.defined()) {
      IntList wide(static_cast<size_t>(g.dim()), 1);
      wide[1] = d.numel();
      add(Expand(Reshape(d, wide), Sizes(g.shape())));
    }
    c.set(0, sum);
  }
  const auto backward = [&](const Tensor& input, const Tensor& kernel, size_t which) {
    const IntList mask = {which == 0, which == 1, 0};
    const Outputs out = InvokeOpMultiOutput(Op::convolution_backward, g, input, kernel, IValue(), c.ints(4), c.ints(5),
                                            c.ints(6), c.bool_arg(7), c.ints(8), c.int_arg(9), mask);
    return which == 0 ? out[0] : out[1];
  };
  if (c.needs(1) && b.defined()) c.set(1, backward(x, b, 0));
  if (c.needs(2) && a.defined()) c.set(2, backward(a, w, 1));
}

// ---- batch normalization ----

void NativeBatchNormBackward(BackwardContext& c) {
  // grad_out, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?, train, eps, output_mask
  const Shape shape = c.shape(1);
  const ElementType type = shape.element_type();
  const ElementType wide = type == ElementType::kBF16 || type == ElementType::kF16 ? ElementType::kF32 : type;
  const bool train = c.bool_arg(7);
  IntList inner = {0}, per_feature(static_cast<size_t>(shape.rank()), 1);
  for (int64_t i = 2; i < shape.rank(); ++i) inner.push_back(i);
  per_feature[1] = shape.dim(1);
  const auto feature = [&](const Tensor& t) { return t.defined() ? Reshape(t.to(wide), per_feature) : t; };
  const auto mean = [&](const Tensor& t) { return Mean(t, inner, true); };
  const auto total = [&](const Tensor& t) { return Sum(t, inner); };
  const Tensor g = c.in(0).to(wide), x = c.in(1).to(wide), w = feature(c.in(2));
  const auto weighted = [&](const Tensor& t) { return w.defined() ? t * w : t; };
  // Gradients of the results.
  const Tensor a = c.grad_output(0).defined() ? c.grad_output(0).to(wide) : Tensor();
  const Tensor b = feature(c.grad_output(1)), d = feature(c.grad_output(2));
  // Statistics are recomputed, so that they depend on the input.
  const Tensor centered = x - (train ? mean(x) : feature(c.in(3)));
  const Tensor s = Rsqrt(Add(train ? mean(centered * centered) : feature(c.in(4)), c.float_arg(8)));
  const Tensor x_hat = centered * s;
  // Returns the op's result for a gradient t and weight 1.
  const auto back = [&](const Tensor& t) { return train ? (t - mean(t) - x_hat * mean(t * x_hat)) * s : t * s; };
  if (c.needs(0)) {
    Tensor sum;
    const auto add = [&](const Tensor& t) { sum = sum.defined() ? sum + t : t; };
    if (a.defined()) add(weighted(back(a)));
    if (b.defined()) add(x_hat * b);
    if (d.defined()) add(Expand(d, Sizes(shape)));
    c.set(0, sum);
  }
  if (c.needs(1)) {
    Tensor sum;
    if (a.defined() && train) {
      const Tensor all = mean(a) * mean(g) - mean(a * g) + mean(g * x_hat) * mean(a * x_hat) * Scalar(3);
      sum = weighted(s * s * (x_hat * all + mean(a * x_hat) * (mean(g) - g) + mean(g * x_hat) * (mean(a) - a)));
    }
    if (b.defined()) {
      // gw is the sum of g x_hat.
      const Tensor t = back(g) * b;
      sum = sum.defined() ? sum + t : t;
    }
    c.set(1, sum);
  }
  if (c.needs(2) && a.defined()) c.set(2, total(a * back(g)));
}

// ---- dropout ----

void NativeDropout(BackwardContext& c) {
  if (!c.grad_output(0).defined()) return;
  if (c.has(2) && !c.bool_arg(2)) return c.set(0, c.grad_output(0));
  const double p = c.float_arg(1);
  c.set(0, InvokeOp(Op::native_dropout_backward, c.grad_output(0), c.out(1), p == 1 ? 0.0 : 1 / (1 - p)));
}
void NativeDropoutBackward(BackwardContext& c) {
  c.set(0, InvokeOp(Op::native_dropout_backward, c.grad_output(), c.in(1), c.float_arg(2)));
}

}  // namespace hlokit::lazy::derivative
