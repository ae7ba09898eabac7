// SPDX-License-Identifier: Apache-2.0
// Normalization, losses, pooling and padding composed of several nodes or other ops.
#include <algorithm>
#include <numeric>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::kernel {
namespace {

int64_t Product(Dims dims) { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }

ElementType WideOf(ElementType t) { return t == ElementType::kBF16 || t == ElementType::kF16 ? ElementType::kF32 : t; }

// Updates running statistics in place, outside of autograd.
void Average(OpKernelContext& c, const Tensor& running, const Tensor& batch, double momentum) {
  const NoGradGuard no_grad;
  WriteInPlace(running, lazy::Record(c.device(), Op::moving_average, {running, batch, momentum})[0]);
}

// Normalizes each row of [rows, width] by its own mean and variance: a batch norm whose features are the rows. Returns
// the result in the type of x, mean and 1/deviation.
Outputs NormalizeRows(const Tensor& x, int64_t rows, int64_t width, double eps) {
  Outputs all = InvokeOpMultiOutput(Op::native_batch_norm, lazy::Reshape(x, {1, rows, width}), IValue(), IValue(),
                                    IValue(), IValue(), true, 0.0, eps);
  return all;
}

// Returns output_mask[k]: whether result k is needed.
bool Needs(OpKernelContext& c, size_t mask, size_t k) { return k < c.ints(mask).size() && c.ints(mask)[k] != 0; }

bool GroupsFit(int64_t n, int64_t channels, int64_t inner, int64_t groups, const Tensor& x) {
  return groups >= 1 && channels % groups == 0 && n >= 0 && channels >= 0 && inner >= 0 &&
         SaturatingMultiply(SaturatingMultiply(n, channels), inner) == x.numel();
}

}  // namespace

void NativeBatchNorm(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  if (x.dim() < 2) return c.Fail("expected an input of at least 2 dimensions");
  Outputs all = lazy::Record(c.device(), c.op(), c.args());
  if (!all[0].defined() || all.size() != 4) return c.Return(Tensor(), Tensor(), Tensor());
  if (!c.bool_arg(5)) {
    // Nothing was saved.
    const Tensor none = lazy::Zeros({0}, WideOf(x.dtype()));
    return c.Return(all[0], none, none);
  }
  const double momentum = c.float_arg(6);
  if (c.has(3)) Average(c, c.tensor(3), all[1], momentum);
  if (c.has(4)) {
    const double n = static_cast<double>(x.numel() / std::max<int64_t>(x.size(1), 1));
    Average(c, c.tensor(4), lazy::Mul(all[2], n > 1 ? n / (n - 1) : 1.0), momentum);
  }
  c.Return(all[0], all[1], all[3]);
}

// input, normalized_shape, weight?, bias?, eps -> output, mean, 1/deviation
void NativeLayerNorm(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const Dims normalized = c.ints(1);
  const int64_t kept = x.dim() - static_cast<int64_t>(normalized.size());
  if (normalized.empty()) return c.Fail("normalized_shape must have at least one dimension");
  if (kept < 0 || x.sizes().subspan(kept) != normalized)
    return c.Fail("normalized_shape is not the end of the input's");
  const int64_t rows = Product(x.sizes().subspan(0, kept)), width = Product(normalized);
  Outputs all = NormalizeRows(x, rows, width, c.float_arg(4));
  if (!all[0].defined()) return c.Return(Tensor(), Tensor(), Tensor());
  Tensor y = lazy::Reshape(all[0], Sizes(x));
  if (c.has(2) && c.has(3)) {
    y = InvokeOp(Op::addcmul, lazy::Expand(c.tensor(3), Sizes(x)), y, c.tensor(2));
  } else if (c.has(2)) {
    y = y * c.tensor(2);
  } else if (c.has(3)) {
    y = y + c.tensor(3);
  }
  IntList stats(x.sizes().begin(), x.sizes().begin() + kept);
  stats.resize(x.dim(), 1);
  // Saved in the type of the input, as in torch.
  const auto saved = [&](const Tensor& t) { return lazy::Reshape(t, stats).to(x.dtype()); };
  c.Return(y, saved(all[1]), saved(all[2]));
}
void LayerNorm(OpKernelContext& c) {
  c.Return(InvokeOp(Op::native_layer_norm, c.args()[0], c.args()[1], c.args()[2], c.args()[3], c.args()[4]));
}

// grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask
void NativeLayerNormBackward(OpKernelContext& c) {
  const Tensor& x = c.tensor(1);
  const ElementType type = x.dtype(), wide = WideOf(type);
  const int64_t kept = x.dim() - static_cast<int64_t>(c.ints(2).size());
  if (c.ints(2).empty() || kept < 0 || x.sizes().subspan(kept) != c.ints(2) || c.tensor(0).sizes() != x.sizes()) {
    return c.Fail("normalized_shape is not the end of the input's, or the gradient has other sizes");
  }
  IntList inner, outer;
  for (int64_t d = 0; d < x.dim(); ++d) (d < kept ? outer : inner).push_back(d);
  const Tensor g = c.tensor(0).to(wide);
  const Tensor rstd = c.tensor(4).to(wide);
  const Tensor x_hat = (x.to(wide) - c.tensor(3).to(wide)) * rstd;
  Tensor dx, dw, db;
  if (Needs(c, 7, 0)) {
    const Tensor gw = c.has(5) ? g * c.tensor(5).to(wide) : g;
    if (inner.empty()) {
      dx = lazy::ZerosLike(x);
    } else {
      dx = ((gw - lazy::Mean(gw, inner, true) - x_hat * lazy::Mean(gw * x_hat, inner, true)) * rstd).to(type);
    }
  }
  const auto reduce = [&](const Tensor& t) { return outer.empty() ? t : lazy::Sum(t, outer); };
  if (Needs(c, 7, 1)) dw = reduce(g * x_hat).to(c.has(5) ? c.tensor(5).dtype() : type);
  if (Needs(c, 7, 2)) db = reduce(g).to(c.has(6) ? c.tensor(6).dtype() : type);
  c.Return(dx, dw, db);
}

// input, weight?, bias?, N, C, HxW, group, eps
void NativeGroupNorm(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const int64_t n = c.int_arg(3), channels = c.int_arg(4), inner = c.int_arg(5), groups = c.int_arg(6);
  if (!GroupsFit(n, channels, inner, groups, x)) {
    return c.Fail("the number of channels must be divisible by the number of groups");
  }
  Outputs all = NormalizeRows(x, n * groups, channels / groups * inner, c.float_arg(7));
  if (!all[0].defined()) return c.Return(Tensor(), Tensor(), Tensor());
  Tensor y = lazy::Reshape(all[0], Sizes(x));
  if (x.dim() < 2 || x.size(0) != n || x.size(1) != channels) return c.Fail("the input is not N x C x ...");
  IntList wide(x.dim(), 1);
  wide[1] = channels;
  if (c.has(1) && c.has(2)) {
    y = InvokeOp(Op::addcmul, lazy::Expand(lazy::Reshape(c.tensor(2), wide), Sizes(x)), y,
                 lazy::Reshape(c.tensor(1), wide));
  } else if (c.has(1)) {
    y = y * lazy::Reshape(c.tensor(1), wide);
  } else if (c.has(2)) {
    y = y + lazy::Reshape(c.tensor(2), wide);
  }
  c.Return(y, lazy::Reshape(all[1], {n, groups}), lazy::Reshape(all[2], {n, groups}));
}

// grad_out, input, mean, rstd, weight?, N, C, HxW, group, output_mask
void NativeGroupNormBackward(OpKernelContext& c) {
  const Tensor& input = c.tensor(1);
  const ElementType type = input.dtype(), wide = WideOf(type);
  const int64_t n = c.int_arg(5), channels = c.int_arg(6), inner = c.int_arg(7), groups = c.int_arg(8);
  if (!GroupsFit(n, channels, inner, groups, input) || c.tensor(0).numel() != input.numel()) {
    return c.Fail("the number of channels must be divisible by the number of groups, N * C * HxW the input's size");
  }
  const IntList grouped = {n, groups, channels / groups, inner};
  const auto shaped = [&](const Tensor& t) { return lazy::Reshape(t.to(wide), grouped); };
  const auto stats = [&](const Tensor& t) { return lazy::Reshape(t.to(wide), {n, groups, 1, 1}); };
  const Tensor g = shaped(c.tensor(0)), rstd = stats(c.tensor(3));
  const Tensor x_hat = (shaped(input) - stats(c.tensor(2))) * rstd;
  Tensor dx, dw, db;
  if (Needs(c, 9, 0)) {
    const Tensor gw = c.has(4) ? g * lazy::Reshape(c.tensor(4).to(wide), {1, groups, channels / groups, 1}) : g;
    const IntList within = {2, 3};
    dx = (gw - lazy::Mean(gw, within, true) - x_hat * lazy::Mean(gw * x_hat, within, true)) * rstd;
    dx = lazy::Reshape(dx, Sizes(input)).to(type);
  }
  const auto reduce = [&](const Tensor& t) {
    return lazy::Reshape(lazy::Sum(t, {0, 3}), {channels}).to(c.has(4) ? c.tensor(4).dtype() : type);
  };
  if (Needs(c, 9, 1)) dw = reduce(g * x_hat);
  if (Needs(c, 9, 2)) db = reduce(g);
  c.Return(dx, dw, db);
}

// ---- softmax and losses ----

void SoftmaxInt(OpKernelContext& c) {
  Tensor x = c.tensor(0);
  if (const ElementType type = c.dtype(2, FloatingOf(x.dtype())); type != x.dtype()) x = lazy::To(x, type);
  c.Return(c.op() == Op::softmax_int ? lazy::Softmax(x, c.int_arg(1)) : lazy::LogSoftmax(x, c.int_arg(1)));
}

namespace {

Tensor Reduced(OpKernelContext& c, const Tensor& loss, int64_t reduction) {
  if (reduction < 0 || reduction > 2) {
    c.Fail(StrCat("`reduction` is 0 (none), 1 (mean) or 2 (sum), not ", reduction));
    return Tensor();
  }
  return reduction == 0 ? loss : reduction == 1 ? lazy::Mean(loss) : lazy::Sum(loss);
}

}  // namespace

// self, target, weight?, reduction, ignore_index, label_smoothing
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

// ---- pooling, resizing, padding ----

void MaxPool(OpKernelContext& c) { kernel::Record(c); }
void AvgPool(OpKernelContext& c) { kernel::Record(c); }

void UpsampleNearestVec(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  if (x.dim() != 4) return c.Fail(StrCat("`input` must have 4 dimensions, but has ", x.dim()));
  if (c.has(1) == c.has(2)) return c.Fail("Must specify exactly one of output_size and scale_factors");
  if (c.has(1)) return c.Return(InvokeOp(Op::upsample_nearest2d, x, c.args()[1]));
  const std::vector<double>* factors = c.args()[2].get<std::vector<double>>();
  if (factors == nullptr || factors->size() != 2) return c.Fail("output_size or two scale_factors are needed");
  const IntList size = {static_cast<int64_t>(static_cast<double>(x.size(2)) * (*factors)[0]),
                        static_cast<int64_t>(static_cast<double>(x.size(3)) * (*factors)[1])};
  c.Return(InvokeOp(Op::upsample_nearest2d, x, size, (*factors)[0], (*factors)[1]));
}

namespace {

// Returns the elements at indices `places` of a dimension.
Tensor GatherIndices(OpKernelContext& c, const Tensor& t, int64_t dim, const std::vector<double>& places) {
  const Tensor index = lazy::Record(c.device(), Op::tensor_constant,
                                    {IntList{static_cast<int64_t>(places.size())}, places, ElementType::kS64})[0];
  return lazy::IndexSelect(t, dim, index);
}

constexpr int64_t kMaxPadded = 1 << 20;  // each index is an element of a constant

template <typename Place>
void PadByIndices(OpKernelContext& c, Place place) {
  const Dims pad = c.ints(1);
  Tensor t = c.tensor(0);
  const int64_t spatial = static_cast<int64_t>(pad.size()) / 2;
  if (pad.size() % 2 != 0 || t.dim() < spatial + 1 || t.dim() > spatial + 2) {
    return c.Fail(
        StrCat("a tensor of ", spatial + 1, " or ", spatial + 2, " dimensions is expected, but it has ", t.dim()));
  }
  for (size_t i = 0; i < pad.size() / 2 && t.defined(); ++i) {
    const int64_t dim = t.dim() - 1 - static_cast<int64_t>(i), size = t.size(dim);
    const int64_t low = pad[2 * i], high = pad[2 * i + 1];
    if (size > kMaxPadded || low > kMaxPadded || high > kMaxPadded || low < -kMaxPadded || high < -kMaxPadded ||
        size + low + high < 1) {
      return c.Fail("the padding is incompatible with the rank of the input");
    }
    std::vector<double> places;
    for (int64_t p = -low; p < size + high; ++p) {
      const int64_t at = place(p, size);
      if (at < 0 || at >= size) return c.Fail("the padding is incompatible with the rank of the input");
      places.push_back(static_cast<double>(at));
    }
    t = GatherIndices(c, t, dim, places);
  }
  c.Return(t);
}

}  // namespace

void ReflectionPad(OpKernelContext& c) {
  PadByIndices(c, [](int64_t p, int64_t size) { return p < 0 ? -p : p >= size ? 2 * (size - 1) - p : p; });
}
void ReplicationPad(OpKernelContext& c) {
  PadByIndices(c, [](int64_t p, int64_t size) { return std::clamp<int64_t>(p, 0, size - 1); });
}

// weight, indices, padding_idx, scale_grad_by_freq, sparse
void Embedding(OpKernelContext& c) {
  const Tensor& weight = c.tensor(0);
  const Tensor& indices = c.tensor(1);
  if (weight.dim() != 2) return c.Fail("'weight' must be 2-D");
  IntList sizes = Sizes(indices);
  sizes.push_back(weight.size(1));
  const Tensor rows = lazy::IndexSelect(weight, 0, lazy::Reshape(indices, {indices.numel()}));
  c.Return(rows.defined() ? lazy::Reshape(rows, sizes) : rows);
}
void EmbeddingDenseBackward(OpKernelContext& c) { kernel::Record(c); }

}  // namespace hlokit::lazy::kernel
