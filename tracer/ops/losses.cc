// SPDX-License-Identifier: Apache-2.0
// Softmax, and losses of classes, probabilities and differences.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
void SoftmaxInt(OpKernelContext& c) {
  Tensor x = c.tensor(0);
  if (const ElementType type = c.dtype(2, FloatingOf(x.dtype())); type != x.dtype()) x = lazy::To(x, type);
  c.Return(c.op() == Op::softmax_int ? lazy::Softmax(x, c.int_arg(1)) : lazy::LogSoftmax(x, c.int_arg(1)));
}

namespace {

// Returns the loss and the total weight. Log-probabilities of 3, 5 and more dimensions are computed as [N, C, 1, rest].
Outputs NllLossOf(const Tensor& logp, const Tensor& target, const IValue& weight, int64_t reduction, int64_t ignore) {
  const int64_t rank = logp.dim();
  if (rank < 3 || rank == 4) {
    return InvokeOpMultiOutput(rank == 4 ? Op::nll_loss2d_forward : Op::nll_loss_forward, logp, target, weight,
                               reduction, ignore);
  }
  const int64_t batch = logp.size(0), classes = logp.size(1);
  int64_t rest = 1;
  for (int64_t d = 2; d < rank; ++d) rest *= logp.size(d);
  Outputs nll = InvokeOpMultiOutput(Op::nll_loss2d_forward, lazy::Reshape(logp, {batch, classes, 1, rest}),
                                    lazy::Reshape(target, {batch, 1, rest}), weight, reduction, ignore);
  if (reduction == 0 && !nll.empty() && nll[0].defined()) nll[0] = lazy::Reshape(nll[0], Sizes(target));
  return nll;
}

}  // namespace

// self, target, weight?, reduction, ignore_index, label_smoothing
void CrossEntropyLoss(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const Tensor& target = c.tensor(1);
  if (x.dim() == 0) return c.Fail("expected an input with a dimension of classes");
  const int64_t dim = x.dim() == 1 ? 0 : 1, reduction = c.int_arg(3), ignore = c.int_arg(4);
  const double smoothing = c.float_arg(5);
  const int64_t classes = x.size(dim);
  const Tensor logp = lazy::LogSoftmax(x, dim);
  IntList per_class(x.dim(), 1);
  per_class[dim] = classes;
  const Tensor weight = c.has(2) ? lazy::Reshape(c.tensor(2), per_class) : Tensor();
  if (ScalarTypeCategory(target.dtype()) == 2) {
    // Class probabilities.
    Tensor t = target;
    if (smoothing > 0) t = lazy::Add(t * Scalar(1 - smoothing), smoothing / static_cast<double>(classes));
    Tensor product = logp * t;
    if (weight.defined()) product = product * weight;
    const Tensor loss = -lazy::Sum(product, {dim});
    if (reduction != 1) return c.Return(Reduced(c, loss, reduction));
    return c.Return(lazy::Div(lazy::Sum(loss), static_cast<double>(x.numel() / std::max<int64_t>(classes, 1))));
  }
  const Outputs nll = NllLossOf(logp, target, c.args()[2], reduction, ignore);
  if (smoothing == 0 || !nll[0].defined()) return c.Return(nll[0]);
  // The smoothing term: the mean over classes, without ignored targets.
  Tensor smooth = -lazy::Sum(weight.defined() ? logp * weight : logp, {dim});
  const Tensor ignored = lazy::Eq(target, ignore);
  smooth = lazy::MaskedFill(smooth, ignored, 0);
  if (reduction == 1) {
    const Tensor kept = lazy::Not(ignored);
    Tensor total;
    if (weight.defined()) {
      const Tensor taken = InvokeOp(Op::index_select, c.tensor(2), 0,
                                    lazy::Reshape(lazy::MaskedFill(target, ignored, 0), {target.numel()}));
      total = lazy::Sum(taken * lazy::To(lazy::Reshape(kept, {target.numel()}), x.dtype()));
    } else {
      total = lazy::To(lazy::Sum(kept), x.dtype());
    }
    smooth = lazy::Sum(smooth) / total;
  } else {
    smooth = Reduced(c, smooth, reduction);
  }
  c.Return(nll[0] * Scalar(1 - smoothing) + smooth * Scalar(smoothing / static_cast<double>(classes)));
}
// self, target, weight?, pos_weight?, reduction
void BceWithLogits(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const Tensor& t = c.tensor(1);
  // (1 - t) x + (1 + (p - 1) t) (log(1 + exp(-|x|)) + max(-x, 0))
  const Tensor tail = InvokeOp(Op::neg, InvokeOp(Op::log_sigmoid_forward, x));
  Tensor loss;
  if (c.has(3)) {
    const Tensor factor = lazy::Add((c.tensor(3) - Scalar(1)) * t, 1);
    loss = lazy::Rsub(t, 1) * x + factor * tail;
  } else {
    loss = lazy::Rsub(t, 1) * x + tail;
  }
  if (c.has(2)) loss = loss * c.tensor(2);
  c.Return(Reduced(c, loss, c.int_arg(4)));
}
void KlDiv(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const Tensor& t = c.tensor(1);
  Tensor loss;
  if (c.bool_arg(3)) {
    loss = lazy::Exp(t) * (t - x);
  } else {
    // 0 log 0 is 0.
    const Tensor positive = lazy::Gt(t, 0);
    const Tensor safe = lazy::Where(positive, t, 1);
    loss = lazy::Where(positive, t * lazy::Log(safe), 0) - t * x;
  }
  c.Return(Reduced(c, loss, c.int_arg(2)));
}
void L1Loss(OpKernelContext& c) { c.Return(Reduced(c, lazy::Abs(c.tensor(0) - c.tensor(1)), c.int_arg(2))); }
void HuberLoss(OpKernelContext& c) {
  const Tensor d = lazy::Abs(c.tensor(0) - c.tensor(1));
  const double delta = c.float_arg(3);
  if (!(delta > 0)) return c.Fail("huber_loss does not support non-positive values for delta.");
  c.Return(Reduced(c, lazy::Where(lazy::Lt(d, delta), d * d * Scalar(0.5), (d - Scalar(0.5 * delta)) * Scalar(delta)),
                   c.int_arg(2)));
}

// ---- negative log likelihood ----

// self, target, weight?, reduction, ignore_index
void NllLossRows(OpKernelContext& c) {
  const bool planes = c.op() == Op::nll_loss2d;
  c.Return(InvokeOp(planes ? Op::nll_loss2d_forward : Op::nll_loss_forward, c.tensor(0), c.tensor(1), c.tensor(2),
                    c.int_arg(3), c.int_arg(4)));
}
void NllLossNd(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &target = c.tensor(1);
  if (x.dim() == 0) return c.Fail("Expected 1 or more dimensions (got 0)");
  if (x.dim() != 1 && x.size(0) != target.size(0)) {
    return c.Fail(
        StrCat("Expected input batch_size (", x.size(0), ") to match target batch_size (", target.size(0), ")."));
  }
  IntList rows = Sizes(x);
  rows.erase(rows.begin() + (x.dim() == 1 ? 0 : 1));
  if (x.dim() > 2 && target.sizes() != Dims(rows)) {
    return c.Fail(StrCat("Expected target size ", ListToString(rows), ", got ", ListToString(target.sizes())));
  }
  c.Return(NllLossOf(x, target, c.args()[2], c.int_arg(3), c.int_arg(4))[0]);
}

// ---- distributions ----

// input, target, log_input, full, eps, reduction
void PoissonNllLoss(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &t = c.tensor(1);
  Tensor loss = c.bool_arg(2) ? lazy::Exp(x) - t * x : x - t * lazy::Log(lazy::Add(x, c.scalar(4)));
  if (c.bool_arg(3)) {
    // Stirling's approximation of log(target!), where the target is greater than 1.
    const Tensor safe = lazy::Where(lazy::Gt(t, 1), t, 1);
    const Tensor stirling =
        safe * lazy::Log(safe) - safe + lazy::Log(safe * Scalar(2 * std::numbers::pi)) * Scalar(0.5);
    loss = loss + lazy::Where(lazy::Gt(t, 1), stirling, 0);
  }
  c.Return(Reduced(c, loss, c.int_arg(5)));
}
// input, target, var, full, eps, reduction
void GaussianNllLoss(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &t = c.tensor(1);
  Tensor var = c.tensor(2);
  if (!RequireFloat(c, 0) || !RequireFloat(c, 2)) return;
  if (var.sizes() != x.sizes()) {
    const Dims rows = x.dim() == 0 ? Dims() : x.sizes().subspan(0, static_cast<size_t>(x.dim() - 1));
    if (x.dim() > 0 && var.sizes() == rows) {
      var = lazy::Unsqueeze(var, -1);
    } else if (x.dim() != var.dim() || var.size(-1) != 1 || var.sizes().subspan(0, rows.size()) != rows) {
      return c.Fail("var is of incorrect size");
    }
  }
  // The gradient of the variance is that of the unclamped one.
  const Tensor raise = lazy::Rsub(var.Detach(), c.scalar(4));
  var = var + InvokeOp(Op::clamp, raise, 0);
  const Tensor d = x - t;
  Tensor loss = (lazy::Log(var) + d * d / var) * Scalar(0.5);
  if (c.bool_arg(3)) loss = lazy::Add(loss, 0.5 * std::log(2 * std::numbers::pi));
  c.Return(Reduced(c, loss, c.int_arg(5)));
}

}  // namespace hlokit::lazy::kernel
