// SPDX-License-Identifier: Apache-2.0
// Elementwise mathematics, sums and scans composed of other ops; histograms.
#include <algorithm>
#include <limits>
#include <numbers>
#include <optional>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/ops/host_values.h"

namespace hlokit::lazy::kernel {
namespace {

// Returns a tensor argument, or a number as a tensor of rank 0.
Tensor TensorOrNumber(OpKernelContext& c, size_t i) {
  return c.tensor(i).defined() ? c.tensor(i) : lazy::Full({}, c.scalar(i), TypeOf(c.scalar(i)));
}

}  // namespace

void Ldexp(OpKernelContext& c) { c.Return(c.tensor(0) * InvokeOp(Op::pow_Scalar, 2.0, c.tensor(1))); }
void FloatPower(OpKernelContext& c) {
  const auto wide = [&](size_t i) { return lazy::To(TensorOrNumber(c, i), ElementType::kF64); };
  if (!c.tensor(1).defined()) {
    return c.Return(lazy::Pow(wide(0), Scalar(c.float_arg(1))));
  }
  if (!c.tensor(0).defined()) return c.Return(InvokeOp(Op::pow_Scalar, c.float_arg(0), wide(1)));
  c.Return(lazy::Pow(wide(0), wide(1)));
}
void Deg2rad(OpKernelContext& c) { c.Return(c.tensor(0) * Scalar(std::numbers::pi / 180)); }
void Rad2deg(OpKernelContext& c) { c.Return(c.tensor(0) * Scalar(180 / std::numbers::pi)); }
void CopysignScalar(OpKernelContext& c) { c.Return(InvokeOp(Op::copysign_Tensor, c.tensor(0), TensorOrNumber(c, 1))); }
void XlogyScalar(OpKernelContext& c) {
  c.Return(InvokeOp(Op::xlogy_Tensor, TensorOrNumber(c, 0), TensorOrNumber(c, 1)));
}
void Xlog1pyScalar(OpKernelContext& c) {
  c.Return(InvokeOp(Op::special_xlog1py, TensorOrNumber(c, 0), TensorOrNumber(c, 1)));
}
void Ndtr(OpKernelContext& c) {
  c.Return(InvokeOp(Op::erfc, c.tensor(0) * Scalar(-std::numbers::sqrt2 / 2)) * Scalar(0.5));
}

// ---- comparisons of whole tensors: the results are tensors of rank 0 ----

void Allclose(OpKernelContext& c) {
  c.Return(InvokeOp(Op::all, InvokeOp(Op::isclose, c.args()[0], c.args()[1], c.args()[2], c.args()[3], c.args()[4])));
}
void Equal(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  if (x.dtype() != y.dtype()) {
    return c.Fail(StrCat("Expected all tensors to have the same type, but got ", TorchTypeName(x.dtype()), " and ",
                         TorchTypeName(y.dtype())));
  }
  if (x.sizes() != y.sizes()) return c.Return(lazy::Full({}, false, ElementType::kPred));
  c.Return(InvokeOp(Op::all, lazy::Eq(x, y)));
}

// ---- sums ----

void Nansum(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const Tensor present = IsFloat(x.dtype()) ? lazy::MaskedFill(x, InvokeOp(Op::isnan, x), 0) : x;
  c.Return(InvokeOp(Op::sum_dim_IntList, present, c.args()[1], c.args()[2], c.args()[3]));
}
void Nanmean(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  if (!IsFloat(x.dtype())) {
    return c.Fail(StrCat("nanmean(): expected input to have floating point dtype but got ", TorchTypeName(x.dtype())));
  }
  const Tensor count = InvokeOp(Op::sum_dim_IntList, lazy::Not(InvokeOp(Op::isnan, x)), c.args()[1], c.args()[2]);
  c.Return(InvokeOp(Op::nansum, c.args()[0], c.args()[1], c.args()[2], c.args()[3]) / count);
}

// log(sum of exp(x_i), i <= j): after each step, of the last 1, 2, 4, ... elements.
void LogCumsumExp(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const int64_t dim = c.Dim(c.int_arg(1), x.dim());
  if (c.failed()) return;
  if (!IsFloat(x.dtype())) {
    return c.Fail(StrCat("\"logcumsumexp_out_cpu\" not implemented for '", TorchTypeName(x.dtype()), "'"));
  }
  if (x.dim() == 0 || x.numel() == 0) return c.Return(InvokeOp(Op::clone, x));
  const int64_t n = x.size(dim);
  Tensor sums = x;
  for (int64_t reach = 1; reach < n && sums.defined(); reach = reach > n / 2 ? n : 2 * reach) {
    const Tensor before = lazy::Slice(sums, dim, 0, n - reach), after = lazy::Slice(sums, dim, reach, n);
    sums = lazy::Cat({lazy::Slice(sums, dim, 0, reach), InvokeOp(Op::logaddexp, after, before)}, dim);
  }
  c.Return(n == 1 ? InvokeOp(Op::clone, x) : sums);
}

// ---- histograms ----

// The number of bins depends on the largest element, which the host reads.
void Bincount(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &weights = c.tensor(1);
  const int64_t minlength = c.int_arg(2);
  constexpr int64_t kMaxBins = int64_t{1} << 30;
  if (!IsInteger(x.dtype())) {
    return c.Fail(StrCat("\"bincount_cpu\" not implemented for '", TorchTypeName(x.dtype()), "'"));
  }
  if (x.dim() != 1) {
    return c.Fail("bincount only supports 1-d non-negative integral inputs.");
  }
  if (minlength < 0) return c.Fail("minlength should be >= 0");
  if (weights.defined() && (weights.dim() != 1 || weights.numel() != x.numel())) {
    return c.Fail("weights should be 1-d and have the same length as input");
  }
  CountFallback(c);
  const std::optional<Literal> value = FetchOnHost(c, lazy::To(x, ElementType::kS64));
  if (!value) return;
  int64_t bins = minlength;
  for (const int64_t element : value->values<int64_t>()) {
    if (element < 0) return c.Fail("bincount only supports 1-d non-negative integral inputs.");
    if (element >= kMaxBins) return c.Fail(StrCat("at most ", kMaxBins, " bins are supported"));
    bins = std::max(bins, element + 1);
  }
  if (bins > kMaxBins) return c.Fail(StrCat("at most ", kMaxBins, " bins are supported"));
  const NoGradGuard no_grad;
  ElementType type = ElementType::kS64;
  if (weights.defined()) type = weights.dtype() == ElementType::kF32 ? ElementType::kF32 : ElementType::kF64;
  const Tensor added = weights.defined() ? lazy::To(weights, type) : lazy::Full(x.sizes(), 1, type);
  c.Return(InvokeOp(Op::index_add, lazy::Zeros({bins}, type), 0, lazy::To(x, ElementType::kS64), added));
}

// self, bins, min, max; equal bounds mean those of the elements.
void Histc(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const int64_t bins = c.int_arg(1);
  const double low = c.float_arg(2), high = c.float_arg(3);
  constexpr int64_t kMaxBins = int64_t{1} << 30;
  if (!IsFloat(x.dtype()) && !IsInteger(x.dtype())) {
    return c.Fail(StrCat("\"histogram_cpu\" not implemented for '", TorchTypeName(x.dtype()), "'"));
  }
  if (bins <= 0) {
    return c.Fail(StrCat("torch.histogram(): bins must be > 0, but got ", bins, " for dimension 0"));
  }
  if (bins > kMaxBins) return c.Fail(StrCat("at most ", kMaxBins, " bins are supported"));
  if (low > high) return c.Fail("torch.histc: max must be larger than min");
  const NoGradGuard no_grad;
  const Tensor flat = lazy::Reshape(x, {x.numel()});
  const Tensor counts = lazy::Zeros({bins}, x.dtype());
  if (x.numel() == 0) return c.Return(counts);
  // Integers are counted with integers, as torch does on a GPU.
  const bool whole = IsInteger(x.dtype());
  const Tensor values = whole ? lazy::To(flat, ElementType::kS64) : flat;
  Tensor from, to;
  if (low == high) {
    from = InvokeOp(Op::min, values);
    to = InvokeOp(Op::max, values);
    const Tensor same = lazy::To(lazy::Eq(from, to), values.dtype());
    from = from - same;
    to = to + same;
  } else {
    from = lazy::Full({}, whole ? Scalar(Scalar(low).ToInt()) : Scalar(low), values.dtype());
    to = lazy::Full({}, whole ? Scalar(Scalar(high).ToInt()) : Scalar(high), values.dtype());
  }
  const Tensor inside = lazy::And(lazy::Ge(values, from), lazy::Le(values, to));
  const Tensor scaled = (values - from) * Scalar(bins);
  const Tensor place = whole ? InvokeOp(Op::div_Tensor_mode, scaled, to - from, "floor")
                             : lazy::To(scaled / (to - from), ElementType::kS64);
  // The last bin includes the upper bound; elements outside add 0 to the first one.
  const Tensor bin = lazy::MaskedFill(InvokeOp(Op::clamp, place, 0, bins - 1), lazy::Not(inside), 0);
  c.Return(InvokeOp(Op::index_add, counts, 0, bin, lazy::To(inside, x.dtype())));
}

}  // namespace hlokit::lazy::kernel
