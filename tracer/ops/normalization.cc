// SPDX-License-Identifier: Apache-2.0
// Batch, instance, layer, group, local response and weight norms.
#include <algorithm>
#include <numeric>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"
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

// ---- batch norm under other names ----

namespace {

// Fails unless each of tensor arguments `first` to `last` that is given has one element for each channel.
bool RequireChannels(OpKernelContext& c, size_t first, size_t last, int64_t channels) {
  for (size_t i = first; i <= last; ++i) {
    if (!c.has(i) || (c.tensor(i).dim() == 1 && c.tensor(i).size(0) == channels)) continue;
    c.Fail(StrCat(SchemaOf(c.op()).args[i].name, " should contain ", channels, " elements not ", c.tensor(i).numel()));
    return false;
  }
  return true;
}

// input, weight?, bias?, running_mean?, running_var?, then whether to normalize by the batch's own statistics
bool CheckBatchNorm(OpKernelContext& c, bool training) {
  if (!RequireFloat(c, 0)) return false;
  if (c.tensor(0).dim() < 2) {
    c.Fail("expected an input of at least 2 dimensions");
    return false;
  }
  if (!training && (!c.has(3) || !c.has(4))) {
    c.Fail(StrCat(c.has(3) ? "running_var" : "running_mean", " must be defined in evaluation mode"));
    return false;
  }
  return RequireChannels(c, 1, 4, c.tensor(0).size(1));
}

Outputs CallBatchNorm(OpKernelContext& c, const Tensor& mean, const Tensor& var, bool training, double momentum,
                      double eps) {
  return InvokeOpMultiOutput(Op::native_batch_norm, c.tensor(0), c.tensor(1), c.tensor(2), mean, var, training,
                             momentum, eps);
}

}  // namespace

// input, weight?, bias?, running_mean?, running_var?, training, momentum, eps, cudnn_enabled
void BatchNorm(OpKernelContext& c) {
  if (!CheckBatchNorm(c, c.bool_arg(5))) return;
  c.Return(CallBatchNorm(c, c.tensor(3), c.tensor(4), c.bool_arg(5), c.float_arg(6), c.float_arg(7))[0]);
}
// input, weight?, bias?, running_mean, running_var, training, momentum, eps -> output, mean, 1/deviation
void NativeBatchNormLegit(OpKernelContext& c) {
  if (!CheckBatchNorm(c, c.bool_arg(5))) return;
  c.Return(CallBatchNorm(c, c.tensor(3), c.tensor(4), c.bool_arg(5), c.float_arg(6), c.float_arg(7)));
}
// The same without writing: two more results are the new running statistics.
void NativeBatchNormFunctional(OpKernelContext& c) {
  if (!CheckBatchNorm(c, c.bool_arg(5))) return;
  const Tensor mean = InvokeOp(Op::clone, c.tensor(3)), var = InvokeOp(Op::clone, c.tensor(4));
  Outputs all = CallBatchNorm(c, mean, var, c.bool_arg(5), c.float_arg(6), c.float_arg(7));
  all.push_back(mean);
  all.push_back(var);
  c.Return(std::move(all));
}
// input, weight?, bias?, training, momentum, eps
void NativeBatchNormNoStats(OpKernelContext& c) {
  if (!c.bool_arg(3)) return c.Fail("running_mean must be defined in evaluation mode");
  if (!RequireFloat(c, 0) || !RequireChannels(c, 1, 2, c.tensor(0).size(1))) return;
  c.Return(CallBatchNorm(c, Tensor(), Tensor(), true, c.float_arg(4), c.float_arg(5)));
}
// input, weight?, bias?, running_mean, running_var, momentum, eps
void NativeBatchNormNoTraining(OpKernelContext& c) {
  if (!CheckBatchNorm(c, false)) return;
  c.Return(CallBatchNorm(c, c.tensor(3), c.tensor(4), false, c.float_arg(5), c.float_arg(6)));
}

// input, weight?, bias?, running_mean?, running_var?, use_input_stats, momentum, eps, cudnn_enabled. A batch norm of
// one example with N * C channels; running statistics are averaged over the examples.
void InstanceNorm(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  if (!c.bool_arg(5) && (!c.has(3) || !c.has(4))) {
    return c.Fail("Expected running_mean and running_var to be defined when use_input_stats is false");
  }
  if (!RequireFloat(c, 0)) return;
  if (x.dim() < 2) return c.Fail("expected an input of at least 2 dimensions");
  const int64_t n = x.size(0), channels = x.size(1);
  if (!RequireChannels(c, 1, 4, channels)) return;
  IntList joined = Sizes(x);
  joined[0] = 1;
  joined[1] = n * channels;
  const auto each = [&](size_t i) { return c.has(i) ? InvokeOp(Op::repeat, c.tensor(i), IntList{n}) : Tensor(); };
  const Tensor mean = each(3), var = each(4);
  const Tensor y = InvokeOp(Op::native_batch_norm, lazy::Reshape(x, joined), each(1), each(2), mean, var, c.bool_arg(5),
                            c.float_arg(6), c.float_arg(7));
  if (c.bool_arg(5)) {
    const NoGradGuard no_grad;
    const auto average = [&](size_t i, const Tensor& all) {
      if (c.has(i)) WriteInPlace(c.tensor(i), lazy::Mean(lazy::Reshape(all, {n, channels}), {0}));
    };
    average(3, mean);
    average(4, var);
  }
  c.Return(lazy::Reshape(y, Sizes(x)));
}

// input, num_groups, weight?, bias?, eps, cudnn_enabled
void GroupNorm(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const int64_t groups = c.int_arg(1);
  if (!RequireFloat(c, 0)) return;
  if (x.dim() < 2) return c.Fail(StrCat("Expected at least 2 dimensions for input tensor but received ", x.dim()));
  const int64_t channels = x.size(1);
  if (groups < 1 || channels % groups != 0) {
    return c.Fail(StrCat("Expected number of channels in input to be divisible by num_groups, but got input of shape ",
                         ListToString(x.sizes()), " and num_groups=", groups));
  }
  for (size_t i = 2; i < 4; ++i) {
    if (!c.has(i) || (c.tensor(i).dim() == 1 && c.tensor(i).size(0) == channels)) continue;
    const std::string& name = SchemaOf(c.op()).args[i].name;
    return c.Fail(
        StrCat("Expected ", name, " to be a vector of size equal to the number of channels in input, but got ", name,
               " of shape ", ListToString(c.tensor(i).sizes()), " and input of shape ", ListToString(x.sizes())));
  }
  c.Return(InvokeOp(Op::native_group_norm, x, c.tensor(2), c.tensor(3), x.size(0), channels,
                    Product(x.sizes().subspan(2)), groups, c.float_arg(4)));
}

// v, pow, dim: the norm over all other dimensions; of everything for dim -1
void NormExceptDim(OpKernelContext& c) {
  const Tensor& v = c.tensor(0);
  const int64_t dim = c.int_arg(2);
  if (!RequireFloat(c, 0)) return;
  if (dim == -1) return c.Return(InvokeOp(Op::norm_Scalar, v, c.scalar(1)));
  if (dim != 0 && dim != v.dim() - 1) return c.Fail("dim must be the first or the last dimension");
  IntList others;
  for (int64_t d = 0; d < v.dim(); ++d) {
    if (d != dim) others.push_back(d);
  }
  // Over no dimension it is the absolute value.
  c.Return(others.empty() ? lazy::Abs(v) : InvokeOp(Op::norm_ScalarOpt_dim, v, c.scalar(1), others, true));
}
// v, g, dim: v scaled to the norms g
void WeightNorm(OpKernelContext& c) {
  c.Return(c.tensor(0) * (c.tensor(1) / InvokeOp(Op::norm_except_dim, c.tensor(0), 2, c.int_arg(2))));
}

// input, size, alpha, beta, k: x / (k + alpha * mean of squares over `size` neighboring channels) ^ beta
void LocalResponseNorm(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const int64_t size = c.int_arg(1);
  if (x.dim() < 3) {
    return c.Fail(StrCat("Expected 3D or higher dimensionality input (got ", x.dim(), " dimensions)"));
  }
  if (size < 1 || size > kMaxExtent) return c.Fail("size must be positive");
  if (!RequireFloat(c, 0)) return;
  if (x.numel() == 0) return c.Return(x);
  const Tensor rows = lazy::Reshape(x * x, {x.size(0), 1, x.size(1), x.numel() / x.size(0) / x.size(1)});
  const Tensor padded = InvokeOp(Op::constant_pad_nd, rows, IntList{0, 0, size / 2, (size - 1) / 2}, 0);
  const Tensor mean = InvokeOp(Op::avg_pool2d, padded, IntList{size, 1}, IntList{1, 1});
  const Tensor scale = lazy::Pow(lazy::Add(lazy::Reshape(mean, Sizes(x)) * c.scalar(2), c.scalar(4)), c.scalar(3));
  c.Return(x / scale);
}

}  // namespace hlokit::lazy::kernel
