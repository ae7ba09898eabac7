// SPDX-License-Identifier: Apache-2.0
// Derivatives of products, convolutions, normalization, softmax, losses and pooling.
#include "tracer/autograd/grad_call.h"
#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::derivative {
namespace {

Tensor Swap(const Tensor& t) { return Transpose(t, -2, -1); }
IntList Mask(GradCall& c, size_t a, size_t b, size_t d) { return {c.needs(a), c.needs(b), c.needs(d)}; }

}  // namespace

// ---- products ----

void Mm(GradCall& c) {
  if (c.needs(0)) c.set(0, Mm(c.g(), T(c.in(1))));
  if (c.needs(1)) c.set(1, Mm(T(c.in(0)), c.g()));
}
void Bmm(GradCall& c) {
  if (c.needs(0)) c.set(0, Bmm(c.g(), Swap(c.in(1))));
  if (c.needs(1)) c.set(1, Bmm(Swap(c.in(0)), c.g()));
}
void Addmm(GradCall& c) {
  const auto scaled = [](const Tensor& t, Scalar s) { return s.Is(1) ? t : t * s; };
  if (c.needs(0)) c.set(0, scaled(c.g(), c.s(3)));
  if (c.needs(1)) c.set(1, scaled(Mm(c.g(), T(c.in(2))), c.s(4)));
  if (c.needs(2)) c.set(2, scaled(Mm(T(c.in(1)), c.g()), c.s(4)));
}
void Mv(GradCall& c) {
  if (c.needs(0)) c.set(0, Run(Op::outer, c.g(), c.in(1)));
  if (c.needs(1)) c.set(1, Run(Op::mv, T(c.in(0)), c.g()));
}
void Dot1d(GradCall& c) {
  if (c.needs(0)) c.set(0, c.g() * c.in(1));
  if (c.needs(1)) c.set(1, c.g() * c.in(0));
}
// Two operands, every label of one in the other or in the result.
void Einsum(GradCall& c) {
  const std::string equation(c.str(0));
  const size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string a = equation.substr(0, comma), b = equation.substr(comma + 1, arrow - comma - 1);
  const std::string out = equation.substr(arrow + 2);
  const Tensors operands = c.list(1);
  if (c.needs(1, 0)) c.set(1, Run(Op::einsum, out + "," + b + "->" + a, Tensors{c.g(), operands[1]}), 0);
  if (c.needs(1, 1)) c.set(1, Run(Op::einsum, out + "," + a + "->" + b, Tensors{c.g(), operands[0]}), 1);
}
void TriangularSolve(GradCall& c) {
  // A x = b: the gradient of b solves the transposed system, that of A is -gb x', in A's triangle.
  const Tensor a = c.in(1), x = c.out(0), g = c.g_or_zeros(0);
  const bool upper = c.b(2), transpose = c.b(3), unit = c.b(4);
  const Tensor gb = RunAll(Op::triangular_solve, g, a, upper, !transpose, unit)[0];
  c.set(0, gb);
  if (c.needs(1)) {
    Tensor ga = transpose ? -Matmul(x, Swap(gb)) : -Matmul(gb, Swap(x));
    ga = Run(upper ? Op::triu : Op::tril, ga, upper ? int64_t{unit} : -int64_t{unit});
    c.set(1, c.g(1).defined() ? ga + c.g(1) : ga);
  }
}
void SolveTriangular(GradCall& c) {
  const Tensor a = c.in(0), x = c.out();
  const bool upper = c.b(2), left = c.b(3), unit = c.b(4);
  const Tensor gb = Run(Op::linalg_solve_triangular, Swap(a), c.g(), !upper, left, unit);
  c.set(1, gb);
  if (c.needs(0)) {
    const Tensor ga = left ? -Matmul(gb, Swap(x)) : -Matmul(Swap(x), gb);
    c.set(0, Run(upper ? Op::triu : Op::tril, ga, upper ? int64_t{unit} : -int64_t{unit}));
  }
}
// A = Q R with at least as many rows as columns: (gQ + Q sym(R gR' - gQ' Q)) R'^-1, sym copying the lower triangle up.
void Qr(GradCall& c) {
  const Tensor q = c.out(0), r = c.out(1);
  const Tensor gq = c.g_or_zeros(0), gr = c.g_or_zeros(1);
  if (q.size(-1) != r.size(-1)) {
    return c.Fail(absl::UnimplementedError("the derivative of qr requires a reduced Q and no more columns than rows"));
  }
  const Tensor m = Matmul(r, Swap(gr)) - Matmul(Swap(gq), q);
  const Tensor sym = Run(Op::tril, m, 0) + Swap(Run(Op::tril, m, -1));
  const Tensor rhs = gq + Matmul(q, sym);
  // X R' = rhs, as R X' = rhs'.
  c.set(0, Swap(Run(Op::linalg_solve_triangular, r, Swap(rhs), true)));
}
void Cholesky(GradCall& c) {
  // With L lower: phi = tril(L' g) with half of its diagonal; the gradient is L'^-1 phi L^-1, made symmetric.
  const bool upper = c.b(1);
  const Tensor l = upper ? Swap(c.out()) : c.out();
  const Tensor g = upper ? Swap(c.g()) : c.g();
  Tensor phi = Run(Op::tril, Matmul(Swap(l), g), 0);
  phi = phi - Run(Op::tril, Run(Op::triu, phi, 0), 0) * Scalar(0.5);
  const Tensor left = Run(Op::linalg_solve_triangular, Swap(l), phi, true);
  const Tensor both = Run(Op::linalg_solve_triangular, l, left, false, false);
  c.set(0, (both + Swap(both)) * Scalar(0.5));
}

// ---- convolution ----

void Convolution(GradCall& c) {
  // input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups
  Value bias_sizes;
  if (c.has(2)) bias_sizes = Sizes(c.shape(2));
  const Outputs out = RunAll(Op::convolution_backward, c.g(), c.in(0), c.in(1), bias_sizes, c.ints(3), c.ints(4),
                             c.ints(5), c.b(6), c.ints(7), c.i(8), Mask(c, 0, 1, 2));
  for (size_t i = 0; i < 3 && i < out.size(); ++i) c.set(i, out[i]);
}

// ---- normalization ----

void NativeBatchNorm(GradCall& c) {
  // input, weight?, bias?, running_mean?, running_var?, training, momentum, eps
  if (!c.g(0).defined()) return;
  // The running statistics were written to by the call itself, which in training it does not read.
  const bool training = c.b(5);
  const Outputs out = RunAll(Op::native_batch_norm_backward, c.g(0), c.in(0), c.in(1), training ? Tensor() : c.in(3),
                             training ? Tensor() : c.in(4), c.out(1), c.out(2), training, c.d(7), Mask(c, 0, 1, 2));
  for (size_t i = 0; i < 3 && i < out.size(); ++i) c.set(i, out[i]);
}
namespace {

// What the gradients of the mean and of 1/deviation of `count` elements of `x` give those elements; gradients of
// gradients come this way. All are of shapes that broadcast to x's.
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

void NativeLayerNorm(GradCall& c) {
  Tensor dx;
  if (c.g(0).defined()) {
    const Outputs out = RunAll(Op::native_layer_norm_backward, c.g(0), c.in(0), c.ints(1), c.out(1), c.out(2), c.in(2),
                               c.in(3), Mask(c, 0, 2, 3));
    dx = out[0];
    c.set(2, out[1]);
    c.set(3, out[2]);
  }
  if (c.needs(0) && (c.g(1).defined() || c.g(2).defined())) {
    int64_t count = 1;
    for (int64_t size : c.ints(1)) count *= size;
    const Tensor more = OfStatistics(c.in(0), c.out(1), c.out(2), c.g(1), c.g(2), count);
    dx = dx.defined() ? dx + more : more;
  }
  c.set(0, dx);
}
void NativeGroupNorm(GradCall& c) {
  Tensor dx;
  if (c.g(0).defined()) {
    const Outputs out = RunAll(Op::native_group_norm_backward, c.g(0), c.in(0), c.out(1), c.out(2), c.in(1), c.i(3),
                               c.i(4), c.i(5), c.i(6), Mask(c, 0, 1, 2));
    dx = out[0];
    c.set(1, out[1]);
    c.set(2, out[2]);
  }
  if (c.needs(0) && (c.g(1).defined() || c.g(2).defined())) {
    const int64_t n = c.i(3), groups = c.i(6), count = c.i(4) / groups * c.i(5);
    const auto stats = [&](const Tensor& t) { return t.defined() ? Reshape(t, {n, groups, 1}) : t; };
    const Tensor more = Reshape(OfStatistics(Reshape(c.in(0), {n, groups, count}), stats(c.out(1)), stats(c.out(2)),
                                             stats(c.g(1)), stats(c.g(2)), count),
                                Sizes(c.shape(0)));
    dx = dx.defined() ? dx + more : more;
  }
  c.set(0, dx);
}

// ---- softmax and losses ----

void Softmax(GradCall& c) {
  c.set(0, Run(Op::softmax_backward_data, c.g(), c.out(), c.i(1), c.shape(0).element_type()));
}
void LogSoftmax(GradCall& c) {
  c.set(0, Run(Op::log_softmax_backward_data, c.g(), c.out(), c.i(1), c.shape(0).element_type()));
}
void NllLoss(GradCall& c) {
  if (!c.g(0).defined()) return;
  const Op op = c.op() == Op::nll_loss_forward ? Op::nll_loss_backward : Op::nll_loss2d_backward;
  c.set(0, Run(op, c.g(0), c.in(0), c.in(1), c.in(2), c.i(3), c.i(4), c.out(1)));
}
void MseLoss(GradCall& c) {
  const Tensor d = Run(Op::mse_loss_backward, c.g(), c.in(0), c.in(1), c.i(2));
  c.set(0, d);
  if (c.needs(1)) c.set(1, -d);
}
void SmoothL1Loss(GradCall& c) {
  const Tensor d = Run(Op::smooth_l1_loss_backward, c.g(), c.in(0), c.in(1), c.i(2), c.d(3));
  c.set(0, d);
  if (c.needs(1)) c.set(1, -d);
}
void Bce(GradCall& c) {
  c.set(0, Run(Op::binary_cross_entropy_backward, c.g(), c.in(0), c.in(1), c.in(2), c.i(3)));
  if (!c.needs(1)) return;
  Tensor slope = Log(Rsub(c.in(0), 1)) - Log(c.in(0));
  if (c.has(2)) slope = slope * c.in(2);
  slope = slope * c.g();
  c.set(1, c.i(3) == 1 ? slope / Scalar(c.shape(0).element_count()) : slope);
}

// ---- pooling and resizing ----

void MaxPool(GradCall& c) {
  if (!c.g(0).defined()) return;
  const auto run = [&](const Tensor& g, const Tensor& x, const IntList& kernel, const IntList& stride,
                       const IntList& padding, const IntList& dilation, const Tensor& indices) {
    return Run(Op::max_pool2d_with_indices_backward, g, x, kernel, stride, padding, dilation, c.b(5), indices);
  };
  const auto ints = [&](size_t i) { return IntList(c.ints(i).begin(), c.ints(i).end()); };
  if (c.op() != Op::max_pool1d_with_indices) {
    return c.set(0, run(c.g(0), c.in(0), ints(1), ints(2), ints(3), ints(4), c.out(1)));
  }
  // One dimension is two, the first of size 1.
  const auto two = [&](size_t i, int64_t first) {
    IntList list = ints(i);
    if (!list.empty()) list.insert(list.begin(), first);
    return list;
  };
  const Tensor gradient = run(Unsqueeze(c.g(0), -2), Unsqueeze(c.in(0), -2), two(1, 1), two(2, 1), two(3, 0), two(4, 1),
                              Unsqueeze(c.out(1), -2));
  c.set(0, gradient.defined() ? Squeeze(gradient, -2) : gradient);
}
void AvgPool(GradCall& c) {
  const Value divisor = c.has(6) ? Value(c.i(6)) : Value();
  c.set(0, Run(Op::avg_pool2d_backward, c.g(), c.in(0), c.ints(1), c.ints(2), c.ints(3), c.b(4), c.b(5), divisor));
}
void AdaptiveAvgPool(GradCall& c) { c.set(0, Run(Op::adaptive_avg_pool2d_backward, c.g(), c.in(0))); }
void UpsampleNearest(GradCall& c) {
  const auto scale = [&](size_t i) { return c.has(i) ? Value(c.d(i)) : Value(); };
  c.set(0, Run(Op::upsample_nearest2d_backward, c.g(), c.ints(1), Sizes(c.shape(0)), scale(2), scale(3)));
}
void UpsampleBilinear(GradCall& c) {
  const auto scale = [&](size_t i) { return c.has(i) ? Value(c.d(i)) : Value(); };
  c.set(0, Run(Op::upsample_bilinear2d_backward, c.g(), c.ints(1), Sizes(c.shape(0)), c.b(2), scale(3), scale(4)));
}

}  // namespace hlokit::lazy::derivative
