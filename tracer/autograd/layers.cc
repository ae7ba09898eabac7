// SPDX-License-Identifier: Apache-2.0
// Derivatives of matmuls, convolutions, normalization, softmax, losses and pooling.
#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::derivative {
namespace {

IntList Mask(BackwardContext& c, size_t a, size_t b, size_t d) { return {c.needs(a), c.needs(b), c.needs(d)}; }

}  // namespace

// ---- matmuls ----

void Mm(BackwardContext& c) {
  if (c.needs(0)) c.set(0, Mm(c.grad_output(), T(c.in(1))));
  if (c.needs(1)) c.set(1, Mm(T(c.in(0)), c.grad_output()));
}
void Bmm(BackwardContext& c) {
  if (c.needs(0)) c.set(0, Bmm(c.grad_output(), Transpose(c.in(1), 1, 2)));
  if (c.needs(1)) c.set(1, Bmm(Transpose(c.in(0), 1, 2), c.grad_output()));
}
void Addmm(BackwardContext& c) {
  const auto scaled = [](const Tensor& t, Scalar s) { return s.Is(1) ? t : t * s; };
  if (c.needs(0)) c.set(0, scaled(c.grad_output(), c.scalar(3)));
  if (c.needs(1)) c.set(1, scaled(Mm(c.grad_output(), T(c.in(2))), c.scalar(4)));
  if (c.needs(2)) c.set(2, scaled(Mm(T(c.in(1)), c.grad_output()), c.scalar(4)));
}
void Mv(BackwardContext& c) {
  if (c.needs(0)) c.set(0, InvokeOp(Op::outer, c.grad_output(), c.in(1)));
  if (c.needs(1)) c.set(1, InvokeOp(Op::mv, T(c.in(0)), c.grad_output()));
}
void Dot1d(BackwardContext& c) {
  if (c.needs(0)) c.set(0, c.grad_output() * c.in(1));
  if (c.needs(1)) c.set(1, c.grad_output() * c.in(0));
}
// Two operands; every label of one is in the other or in the result.
void Einsum(BackwardContext& c) {
  const std::string equation(c.str(0));
  const size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string a = equation.substr(0, comma), b = equation.substr(comma + 1, arrow - comma - 1);
  const std::string out = equation.substr(arrow + 2);
  const Tensors operands = c.list(1);
  if (c.needs(1, 0)) c.set(1, InvokeOp(Op::einsum, out + "," + b + "->" + a, Tensors{c.grad_output(), operands[1]}), 0);
  if (c.needs(1, 1)) c.set(1, InvokeOp(Op::einsum, out + "," + a + "->" + b, Tensors{c.grad_output(), operands[0]}), 1);
}

// ---- convolution ----

void Convolution(BackwardContext& c) {
  // input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups
  IValue bias_sizes;
  if (c.has(2)) bias_sizes = Sizes(c.shape(2));
  const Outputs out =
      InvokeOpMultiOutput(Op::convolution_backward, c.grad_output(), c.in(0), c.in(1), bias_sizes, c.ints(3), c.ints(4),
                          c.ints(5), c.bool_arg(6), c.ints(7), c.int_arg(8), Mask(c, 0, 1, 2));
  for (size_t i = 0; i < 3 && i < out.size(); ++i) c.set(i, out[i]);
}

// ---- normalization ----

void NativeBatchNorm(BackwardContext& c) {
  // input, weight?, bias?, running_mean?, running_var?, training, momentum, eps
  if (!c.grad_output(0).defined()) return;
  // The call itself wrote the running statistics, which it does not read in training.
  const bool training = c.bool_arg(5);
  const Outputs out = InvokeOpMultiOutput(Op::native_batch_norm_backward, c.grad_output(0), c.in(0), c.in(1),
                                          training ? Tensor() : c.in(3), training ? Tensor() : c.in(4), c.out(1),
                                          c.out(2), training, c.float_arg(7), Mask(c, 0, 1, 2));
  for (size_t i = 0; i < 3 && i < out.size(); ++i) c.set(i, out[i]);
}
namespace {

// Returns the gradient of the elements of `x` from those of the mean and of 1/deviation of `count` elements, for
// gradients of gradients. All shapes broadcast to x's.
Tensor OfStatistics(const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& g_mean, const Tensor& g_rstd,
                    int64_t count) {
  const Scalar share = 1 / static_cast<double>(count);
  Tensor sum;
  if (g_mean.defined()) sum = Expand(g_mean * share, Sizes(x.shape()));
  if (g_rstd.defined()) {
    const Tensor t = (x - mean) * (g_rstd * (rstd * rstd * rstd) * -share);
    sum = sum.defined() ? sum + t : t;
  }
  return sum;
}

}  // namespace

void NativeLayerNorm(BackwardContext& c) {
  Tensor dx;
  if (c.grad_output(0).defined()) {
    const Outputs out = InvokeOpMultiOutput(Op::native_layer_norm_backward, c.grad_output(0), c.in(0), c.ints(1),
                                            c.out(1), c.out(2), c.in(2), c.in(3), Mask(c, 0, 2, 3));
    dx = out[0];
    c.set(2, out[1]);
    c.set(3, out[2]);
  }
  if (c.needs(0) && (c.grad_output(1).defined() || c.grad_output(2).defined())) {
    int64_t count = 1;
    for (int64_t size : c.ints(1)) count *= size;
    const Tensor more = OfStatistics(c.in(0), c.out(1), c.out(2), c.grad_output(1), c.grad_output(2), count);
    dx = dx.defined() ? dx + more : more;
  }
  c.set(0, dx);
}
void NativeGroupNorm(BackwardContext& c) {
  Tensor dx;
  if (c.grad_output(0).defined()) {
    const Outputs out =
        InvokeOpMultiOutput(Op::native_group_norm_backward, c.grad_output(0), c.in(0), c.out(1), c.out(2), c.in(1),
                            c.int_arg(3), c.int_arg(4), c.int_arg(5), c.int_arg(6), Mask(c, 0, 1, 2));
    dx = out[0];
    c.set(1, out[1]);
    c.set(2, out[2]);
  }
  if (c.needs(0) && (c.grad_output(1).defined() || c.grad_output(2).defined())) {
    const int64_t n = c.int_arg(3), groups = c.int_arg(6), count = c.int_arg(4) / groups * c.int_arg(5);
    const auto stats = [&](const Tensor& t) { return t.defined() ? Reshape(t, {n, groups, 1}) : t; };
    const Tensor more = Reshape(OfStatistics(Reshape(c.in(0), {n, groups, count}), stats(c.out(1)), stats(c.out(2)),
                                             stats(c.grad_output(1)), stats(c.grad_output(2)), count),
                                Sizes(c.shape(0)));
    dx = dx.defined() ? dx + more : more;
  }
  c.set(0, dx);
}

// ---- softmax and losses ----

void Softmax(BackwardContext& c) {
  c.set(0, InvokeOp(Op::softmax_backward_data, c.grad_output(), c.out(), c.int_arg(1), c.shape(0).element_type()));
}
void LogSoftmax(BackwardContext& c) {
  c.set(0, InvokeOp(Op::log_softmax_backward_data, c.grad_output(), c.out(), c.int_arg(1), c.shape(0).element_type()));
}
void NllLoss(BackwardContext& c) {
  if (!c.grad_output(0).defined()) return;
  const Op op = c.op() == Op::nll_loss_forward ? Op::nll_loss_backward : Op::nll_loss2d_backward;
  c.set(0, InvokeOp(op, c.grad_output(0), c.in(0), c.in(1), c.in(2), c.int_arg(3), c.int_arg(4), c.out(1)));
}
void MseLoss(BackwardContext& c) {
  const Tensor d = InvokeOp(Op::mse_loss_backward, c.grad_output(), c.in(0), c.in(1), c.int_arg(2));
  c.set(0, d);
  if (c.needs(1)) c.set(1, -d);
}
void SmoothL1Loss(BackwardContext& c) {
  const Tensor d =
      InvokeOp(Op::smooth_l1_loss_backward, c.grad_output(), c.in(0), c.in(1), c.int_arg(2), c.float_arg(3));
  c.set(0, d);
  if (c.needs(1)) c.set(1, -d);
}
void Bce(BackwardContext& c) {
  c.set(0, InvokeOp(Op::binary_cross_entropy_backward, c.grad_output(), c.in(0), c.in(1), c.in(2), c.int_arg(3)));
  if (!c.needs(1)) return;
  Tensor slope = Log(Rsub(c.in(0), 1)) - Log(c.in(0));
  if (c.has(2)) slope = slope * c.in(2);
  slope = slope * c.grad_output();
  c.set(1, c.int_arg(3) == 1 ? slope / Scalar(c.shape(0).element_count()) : slope);
}

// ---- pooling ----

void MaxPool(BackwardContext& c) {
  if (!c.grad_output(0).defined()) return;
  const auto run = [&](const Tensor& g, const Tensor& x, const IntList& kernel, const IntList& stride,
                       const IntList& padding, const IntList& dilation, const Tensor& indices) {
    const Op op = c.op() == Op::max_pool3d_with_indices ? Op::max_pool3d_with_indices_backward
                                                        : Op::max_pool2d_with_indices_backward;
    return InvokeOp(op, g, x, kernel, stride, padding, dilation, c.bool_arg(5), indices);
  };
  const auto ints = [&](size_t i) { return IntList(c.ints(i).begin(), c.ints(i).end()); };
  if (c.op() != Op::max_pool1d_with_indices) {
    return c.set(0, run(c.grad_output(0), c.in(0), ints(1), ints(2), ints(3), ints(4), c.out(1)));
  }
  // One dimension is handled as two, the first of size 1.
  const auto two = [&](size_t i, int64_t first) {
    IntList list = ints(i);
    if (!list.empty()) list.insert(list.begin(), first);
    return list;
  };
  const Tensor gradient = run(Unsqueeze(c.grad_output(0), -2), Unsqueeze(c.in(0), -2), two(1, 1), two(2, 1), two(3, 0),
                              two(4, 1), Unsqueeze(c.out(1), -2));
  c.set(0, gradient.defined() ? Squeeze(gradient, -2) : gradient);
}
void AvgPool(BackwardContext& c) {
  const IValue divisor = c.has(6) ? IValue(c.int_arg(6)) : IValue();
  const Op op = c.op() == Op::avg_pool3d ? Op::avg_pool3d_backward : Op::avg_pool2d_backward;
  c.set(0,
        InvokeOp(op, c.grad_output(), c.in(0), c.ints(1), c.ints(2), c.ints(3), c.bool_arg(4), c.bool_arg(5), divisor));
}
void AdaptiveAvgPool(BackwardContext& c) {
  const bool two = c.op() == Op::adaptive_avg_pool2d;
  c.set(0,
        InvokeOp(two ? Op::adaptive_avg_pool2d_backward : Op::adaptive_avg_pool3d_backward, c.grad_output(), c.in(0)));
}

}  // namespace hlokit::lazy::derivative
