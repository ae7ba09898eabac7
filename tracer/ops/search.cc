// SPDX-License-Identifier: Apache-2.0
// Order statistics and places in sorted sequences.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy::kernel {
namespace {

struct Ordered {
  Tensor values, places;
};

Ordered SortedAlong(const Tensor& t, int64_t dim) {
  const NoGradGuard no_grad;
  const Outputs sorted = InvokeOpMultiOutput(Op::sort, t, dim, false);
  return {sorted[0], sorted[1]};
}

// Returns how many elements of the last dimension of `sorted` come before each value: smaller ones, with `right` also
// equal ones. NaN comes last. The leading dimensions are those of `values`, or there are none. A binary search of all
// values at once.
Tensor PlacesIn(const Tensor& sorted, const Tensor& values, bool right) {
  const NoGradGuard no_grad;
  const int64_t n = sorted.size(-1);
  Tensor low = lazy::Full(values.sizes(), 0, ElementType::kS64),
         high = lazy::Full(values.sizes(), n, ElementType::kS64);
  const auto at = [&](const Tensor& place) {
    if (sorted.dim() != 1) return lazy::Gather(sorted, -1, place);
    return lazy::Reshape(lazy::IndexSelect(sorted, 0, lazy::Reshape(place, {place.numel()})), Sizes(place));
  };
  const Tensor past = IsFloat(values.dtype()) ? InvokeOp(Op::isnan, values) : Tensor();
  for (int64_t left = n; left > 0 && low.defined(); left /= 2) {
    const Tensor middle = InvokeOp(Op::div_Tensor_mode, low + high, lazy::FullLike(low, 2), "floor");
    const Tensor element = at(InvokeOp(Op::clamp, middle, 0, n - 1));
    Tensor before = lazy::Not(right ? lazy::Gt(element, values) : lazy::Ge(element, values));
    if (IsFloat(sorted.dtype())) before = lazy::And(before, lazy::Not(InvokeOp(Op::isnan, element)));
    if (past.defined()) before = lazy::Or(before, past);
    const Tensor open = lazy::Lt(low, high);
    low = lazy::Where(lazy::And(open, before), lazy::Add(middle, 1), low);
    high = lazy::Where(lazy::And(open, lazy::Not(before)), middle, high);
  }
  return low;
}

// Returns the number of NaN along `dim`, which keeps size 1.
Tensor NanCount(const Tensor& t, int64_t dim) {
  const NoGradGuard no_grad;
  return lazy::Sum(InvokeOp(Op::isnan, t), {dim}, true);
}

// Returns elements at `place`, of size 1 along `dim`, and their places, without that dimension unless `keepdim`.
void ReturnAt(OpKernelContext& c, const Tensor& t, int64_t dim, Tensor place, bool keepdim) {
  const Tensor values = lazy::Gather(t, dim, place);
  if (keepdim) return c.Return(values, place);
  c.Return(lazy::Squeeze(values, dim), lazy::Squeeze(place, dim));
}

// Returns the position of the median in a sorted sequence of n elements that ends with `nans` NaN. NaN is the median of
// a sequence that has one, unless it is ignored.
Tensor MedianPosition(int64_t n, const Tensor& nans, bool ignore_nan) {
  const NoGradGuard no_grad;
  if (ignore_nan) {
    const Tensor position = InvokeOp(Op::div_Scalar_mode, lazy::Sub(lazy::Rsub(nans, n), 1), 2, "floor");
    return InvokeOp(Op::clamp, position, 0);
  }
  return lazy::Where(lazy::Gt(nans, 0), lazy::Rsub(nans, n), Scalar((n - 1) / 2));
}

// Checks the dimension of a reduction by `name`.
std::optional<int64_t> ReducedDim(OpKernelContext& c, int64_t given, std::string_view name) {
  const Tensor& t = c.tensor(0);
  const int64_t dim = c.Dim(given, t.dim());
  if (!c.failed() && t.dim() > 0 && t.size(dim) == 0) {
    c.Fail(StrCat(name, ": Expected reduction dim ", dim, " to have non-zero size."));
  }
  return c.failed() ? std::nullopt : std::optional(dim);
}

void ReturnNumber(OpKernelContext& c) {
  c.Return(InvokeOp(Op::clone, c.tensor(0)), lazy::Full({}, 0, ElementType::kS64));
}

}  // namespace

// The derivative spreads over all elements equal to the median.
void Median(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (t.numel() == 0) {
    if (!IsFloat(t.dtype())) return c.Fail("the median of no integers is not defined");
    return c.Return(lazy::Full({}, std::numeric_limits<double>::quiet_NaN(), t.dtype()));
  }
  const Tensor flat = lazy::Reshape(t, {t.numel()});
  const Tensor position = MedianPosition(t.numel(), NanCount(flat, 0), c.op() == Op::nanmedian);
  c.Return(lazy::Reshape(lazy::Gather(SortedAlong(flat, 0).values, 0, position), {}));
}
void MedianDim(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const std::optional<int64_t> dim = ReducedDim(c, c.int_arg(1), "median()");
  if (!dim) return;
  if (t.dim() == 0) return ReturnNumber(c);
  const Tensor position = MedianPosition(t.size(*dim), NanCount(t, *dim), c.op() == Op::nanmedian_dim);
  ReturnAt(c, t, *dim, lazy::Gather(SortedAlong(t, *dim).places, *dim, position), c.bool_arg(2));
}
// self, k, dim, keepdim
void Kthvalue(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const std::optional<int64_t> dim = ReducedDim(c, c.int_arg(2), "kthvalue()");
  if (!dim) return;
  const int64_t k = c.int_arg(1), n = t.dim() == 0 ? 1 : t.size(*dim);
  if (k < 1 || k > n) return c.Fail(StrCat("kthvalue(): selected number k out of range for dimension ", *dim));
  if (t.dim() == 0) return ReturnNumber(c);
  ReturnAt(c, t, *dim, lazy::Slice(SortedAlong(t, *dim).places, *dim, k - 1, k), c.bool_arg(3));
}
// The smallest of the most frequent values, and its last place.
void Mode(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const std::optional<int64_t> dim = ReducedDim(c, c.int_arg(1), "mode()");
  if (!dim) return;
  if (t.dim() == 0) return ReturnNumber(c);
  Tensor place;
  {
    const NoGradGuard no_grad;
    // In sorted order, the run of each element is from the first equal one to the last one.
    const Ordered sorted = SortedAlong(InvokeOp(Op::movedim_int, t, *dim, -1), -1);
    const Tensor end = PlacesIn(sorted.values, sorted.values, true);
    const Tensor counts = end - PlacesIn(sorted.values, sorted.values, false);
    const Tensor first = InvokeOp(Op::argmax, counts, -1, true);
    const Tensor last = InvokeOp(Op::clamp, lazy::Sub(lazy::Gather(end, -1, first), 1), 0);
    place = InvokeOp(Op::movedim_int, lazy::Gather(sorted.places, -1, last), -1, *dim);
  }
  ReturnAt(c, t, *dim, place, c.bool_arg(2));
}

// ---- quantiles ----

namespace {

// self, q [Q] or [], dim, keepdim, interpolation
void QuantileOf(OpKernelContext& c, Tensor q, bool ignore_nan) {
  const std::string name = ignore_nan ? "nanquantile()" : "quantile()";
  const Tensor& self = c.tensor(0);
  const std::string_view how = c.str(4);
  if (self.numel() == 0) return c.Fail(name + " input tensor must be non-empty");
  if (q.dim() > 1) return c.Fail(StrCat(name, " q must be a scalar or 1D tensor"));
  if (self.dtype() != ElementType::kF32 && self.dtype() != ElementType::kF64) {
    return c.Fail(name + " input tensor must be either float or double dtype");
  }
  if (q.dtype() != self.dtype()) return c.Fail(name + " q tensor must be same dtype as the input tensor");
  if (how != "linear" && how != "lower" && how != "higher" && how != "midpoint" && how != "nearest") {
    return c.Fail(
        StrCat(name, " interpolation must be one of linear, lower, higher, midpoint or nearest, but got ", how));
  }
  const int64_t dim = c.has(2) ? c.Dim(c.int_arg(2), self.dim()) : 0;
  if (c.failed()) return;
  Tensor t = self;
  if (!c.has(2) || self.dim() == 0) {
    t = lazy::Reshape(self, {self.numel()});
  } else {
    t = InvokeOp(Op::movedim_int, self, dim, -1);
  }
  const Tensor sorted = InvokeOpMultiOutput(Op::sort, t, -1, false)[0];
  const int64_t n = t.size(-1);
  const Tensor levels = lazy::Reshape(q, {q.numel()}), nans = NanCount(t, t.dim() - 1);
  Tensor rank;  // [.., Q]
  if (ignore_nan) {
    const Tensor last = InvokeOp(Op::clamp, lazy::Rsub(nans, n - 1), 0);
    rank = levels * lazy::To(last, q.dtype());
  } else {
    // NaN, which is last, is every quantile of a sequence that has one.
    rank = lazy::Where(lazy::Gt(nans, 0), lazy::Full({}, n - 1, q.dtype()), levels * Scalar(n - 1));
  }
  if (how == "higher") rank = InvokeOp(Op::ceil, rank);
  if (how == "lower") rank = InvokeOp(Op::floor, rank);
  if (how == "nearest") rank = InvokeOp(Op::round, rank);
  const Tensor below = InvokeOp(Op::floor, rank);
  const auto element = [&](const Tensor& at) {
    return lazy::Gather(sorted, -1, InvokeOp(Op::clamp, lazy::To(at, ElementType::kS64), 0, n - 1));
  };
  Tensor value = element(below);
  if (how == "linear" || how == "midpoint") {
    const Tensor weight = how == "linear" ? rank - below : lazy::FullLike(rank, 0.5);
    value = InvokeOp(Op::lerp_Tensor, value, element(InvokeOp(Op::ceil, rank)), weight);
  }
  // The levels come first; a single one has no dimension.
  IntList sizes;
  if (q.dim() == 1) sizes.push_back(q.size(0));
  if (q.dim() == 1) value = InvokeOp(Op::movedim_int, value, -1, 0);
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool reduced = !c.has(2) || d == dim;
    if (!reduced) sizes.push_back(self.size(d));
    if (reduced && c.bool_arg(3)) sizes.push_back(1);
  }
  c.Return(lazy::Reshape(value, sizes));
}

void QuantileOfNumber(OpKernelContext& c, bool ignore_nan) {
  const double q = c.float_arg(1);
  if (!(q >= 0 && q <= 1))
    return c.Fail(StrCat("quantile() q must be in the range [0, 1] but got ", FormatDouble(q, 9)));
  QuantileOf(c, lazy::Full({}, q, c.tensor(0).dtype()), ignore_nan);
}

}  // namespace

void Quantile(OpKernelContext& c) { QuantileOf(c, c.tensor(1), false); }
void Nanquantile(OpKernelContext& c) { QuantileOf(c, c.tensor(1), true); }
void QuantileScalar(OpKernelContext& c) { QuantileOfNumber(c, false); }
void NanquantileScalar(OpKernelContext& c) { QuantileOfNumber(c, true); }

// ---- places in sorted sequences ----

namespace {

// A number gets the type of the sequence; its sizes are none.
void SearchIn(OpKernelContext& c, Tensor sorted, Tensor values, bool right, bool int32) {
  if (sorted.dim() == 0) return c.Fail("torch.searchsorted(): boundaries tensor should have positive dimension");
  const IntList sizes = Sizes(values);
  if (sorted.dim() == 1) {
    values = lazy::Reshape(values, {values.numel()});
  } else {
    const bool same =
        values.dim() == sorted.dim() && std::equal(sizes.begin(), sizes.end() - 1, sorted.sizes().begin());
    if (!same) {
      return c.Fail(
          StrCat("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                 "boundaries tensor and input value tensor must match, but we got boundaries tensor ",
                 ListToString(sorted.sizes()), " and input value tensor ", ListToString(sizes)));
    }
  }
  const Tensor places = lazy::Reshape(PlacesIn(sorted, values, right), sizes);
  c.Return(int32 ? lazy::To(places, ElementType::kS32) : places);
}

}  // namespace

// sorted_sequence, self, out_int32, right, side, sorter
void Searchsorted(OpKernelContext& c) {
  Tensor sorted = c.tensor(0);
  const bool number = !c.tensor(1).defined();
  bool right = c.bool_arg(3);
  if (c.has(4)) {
    const std::string_view side = c.str(4);
    if (side != "left" && side != "right") {
      return c.Fail(StrCat("torch.searchsorted(): side can only be 'left' or 'right' but got ", side));
    }
    if (right && side == "left") {
      return c.Fail(
          "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was "
          "True");
    }
    right = side == "right";
  }
  if (number && sorted.dim() != 1) {
    return c.Fail(
        StrCat("torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, "
               "but we got boundaries tensor dim(",
               sorted.dim(), ") and input value's dim(0) numel(1)"));
  }
  if (c.has(5)) {
    const Tensor& sorter = c.tensor(5);
    if (sorter.sizes() != sorted.sizes()) {
      return c.Fail("torch.searchsorted(): boundary and sorter must have the same size");
    }
    if (sorter.dtype() != ElementType::kS64) {
      return c.Fail("torch.searchsorted(): sorter must be a tensor of long dtype");
    }
    sorted = lazy::Gather(sorted, -1, sorter);
  }
  const Tensor values = number ? lazy::Full({}, c.scalar(1), sorted.dtype()) : c.tensor(1);
  SearchIn(c, sorted, values, right, c.bool_arg(2));
}
// self, boundaries, out_int32, right
void Bucketize(OpKernelContext& c) {
  const Tensor& boundaries = c.tensor(1);
  if (boundaries.dim() != 1) {
    return c.Fail(StrCat("boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")"));
  }
  const bool number = !c.tensor(0).defined();
  const Tensor values = number ? lazy::Full({}, c.scalar(0), boundaries.dtype()) : c.tensor(0);
  SearchIn(c, boundaries, values, c.bool_arg(3), c.bool_arg(2));
}
// elements, test elements; assume_unique does not matter
void Isin(OpKernelContext& c) {
  const auto tensor = [&](size_t i) {
    return c.tensor(i).defined() ? c.tensor(i) : lazy::Full({}, c.scalar(i), TypeOf(c.scalar(i)));
  };
  const Tensor elements = tensor(0), wanted = lazy::Reshape(tensor(1), {tensor(1).numel()});
  Tensor found;
  constexpr int64_t kFew = 16;
  if (wanted.numel() <= kFew || elements.dtype() != wanted.dtype() || elements.dtype() == ElementType::kPred) {
    found = InvokeOp(Op::any_dim, lazy::Eq(lazy::Unsqueeze(elements, -1), wanted), -1, false);
  } else {
    const Tensor sorted = SortedAlong(wanted, 0).values;
    const Tensor flat = lazy::Reshape(elements, {elements.numel()});
    const Tensor place = InvokeOp(Op::clamp, PlacesIn(sorted, flat, false), 0, wanted.numel() - 1);
    found = lazy::Reshape(lazy::Eq(lazy::IndexSelect(sorted, 0, place), flat), Sizes(elements));
  }
  c.Return(c.bool_arg(3) ? lazy::Not(found) : found);
}

}  // namespace hlokit::lazy::kernel
