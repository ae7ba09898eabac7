// SPDX-License-Identifier: Apache-2.0
// Distinct elements and slices. Their number depends on the values: they are found on the host.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/ops/host_values.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::kernel {
namespace {

// Slices of an array, each of `width` elements, as rows.
class Slices {
 public:
  Slices(const Literal& value, int64_t width) : value_(value), width_(width) {}

  Scalar At(int64_t slice, int64_t k) const {
    const ElementType type = value_.shape().element_type();
    return LoadScalar(type, value_.data() + static_cast<size_t>(slice * width_ + k) * Bytes());
  }
  // Returns a negative number, 0 or a positive one, as slice i comes before, at or after slice j. NaN comes last; two
  // are not the same.
  int Compare(int64_t i, int64_t j) const {
    for (int64_t k = 0; k < width_; ++k) {
      const Scalar a = At(i, k), b = At(j, k);
      if (a.is_float()) {
        const double x = a.ToDouble(), y = b.ToDouble();
        if (std::isnan(x) || std::isnan(y)) return std::isnan(x) ? 1 : -1;
        if (x != y) return x < y ? -1 : 1;
      } else if (a.ToInt() != b.ToInt()) {
        return a.ToInt() < b.ToInt() ? -1 : 1;
      }
    }
    return 0;
  }
  // For sorting, which requires that NaN equals NaN.
  bool Before(int64_t i, int64_t j) const {
    for (int64_t k = 0; k < width_; ++k) {
      const Scalar a = At(i, k), b = At(j, k);
      if (a.is_float()) {
        const double x = a.ToDouble(), y = b.ToDouble();
        if (std::isnan(x) || std::isnan(y)) {
          if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
          continue;
        }
        if (x != y) return x < y;
      } else if (a.ToInt() != b.ToInt()) {
        return a.ToInt() < b.ToInt();
      }
    }
    return false;
  }
  void CopyTo(int64_t slice, std::byte* to) const {
    std::memcpy(to, value_.data() + static_cast<size_t>(slice * width_) * Bytes(),
                static_cast<size_t>(width_) * Bytes());
  }
  size_t Bytes() const { return static_cast<size_t>(BytesOf(value_.shape().element_type())); }

 private:
  const Literal& value_;
  int64_t width_;
};

struct DistinctGroups {
  std::vector<int64_t> first;    // a slice of each group
  std::vector<int64_t> inverse;  // the group of each slice
  std::vector<int64_t> counts;
};

// Groups equal slices: neighbors in the given order.
DistinctGroups GroupsOf(const Slices& slices, const std::vector<int64_t>& order) {
  DistinctGroups groups;
  groups.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slices.Compare(order[i - 1], order[i]) != 0) {
      groups.first.push_back(order[i]);
      groups.counts.push_back(0);
    }
    groups.inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(groups.first.size()) - 1;
    ++groups.counts.back();
  }
  return groups;
}

// `dim`: the slices along it are compared, without it the elements. Returns values, inverse, counts.
void DistinctSlices(OpKernelContext& c, std::optional<int64_t> dim, bool consecutive, bool with_inverse,
                    bool with_counts) {
  const Tensor& t = c.tensor(0);
  if (dim && t.dim() > 0 && t.numel() == 0 && t.size(*dim) != 0) {
    return c.Fail("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  }
  CountFallback(c);
  Tensor rows = dim && t.dim() > 0 ? InvokeOp(Op::movedim_int, t, *dim, 0) : lazy::Reshape(t, {t.numel()});
  const std::optional<Literal> value = FetchOnHost(c, rows);
  if (!value) return;
  const int64_t count = rows.size(0);
  int64_t width = 1;
  for (int64_t d = 1; d < rows.dim(); ++d) width *= rows.size(d);
  const Slices slices(*value, width);
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  if (!consecutive) {
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return slices.Before(i, j); });
  }
  const DistinctGroups groups = GroupsOf(slices, order);
  IntList sizes = Sizes(rows);
  sizes[0] = static_cast<int64_t>(groups.first.size());
  Literal kept = Literal::Zeros(c.device()->ArrayShape(t.dtype(), sizes));
  for (size_t i = 0; i < groups.first.size() && kept.size_bytes() != 0; ++i) {
    slices.CopyTo(groups.first[i], kept.data() + i * static_cast<size_t>(width) * slices.Bytes());
  }
  Tensor values = Upload(c, std::move(kept));
  if (dim && t.dim() > 0) values = InvokeOp(Op::movedim_int, values, 0, *dim);
  const IntList inverse_sizes = dim ? IntList{count} : Sizes(t);
  c.Return(values, with_inverse ? UploadS64(c, inverse_sizes, groups.inverse) : UploadS64(c, {0}, {}),
           with_counts ? UploadS64(c, {sizes[0]}, groups.counts) : UploadS64(c, {0}, {}));
}

std::optional<int64_t> SliceDim(OpKernelContext& c, size_t arg) {
  const int64_t dim = c.Dim(c.int_arg(arg), c.tensor(0).dim());
  return c.failed() ? std::nullopt : std::optional(dim);
}

}  // namespace

// The elements are sorted whether or not that is asked for.
void Unique(OpKernelContext& c) {
  DistinctSlices(c, std::nullopt, false, c.bool_arg(2), false);
  if (!c.failed() && c.outputs().size() == 3) c.outputs().pop_back();
}
void Unique2(OpKernelContext& c) { DistinctSlices(c, std::nullopt, false, c.bool_arg(2), c.bool_arg(3)); }
void UniqueDim(OpKernelContext& c) {
  if (const std::optional<int64_t> dim = SliceDim(c, 1)) DistinctSlices(c, dim, false, c.bool_arg(3), c.bool_arg(4));
}
void UniqueConsecutive(OpKernelContext& c) {
  if (!c.has(3)) return DistinctSlices(c, std::nullopt, true, c.bool_arg(1), c.bool_arg(2));
  if (const std::optional<int64_t> dim = SliceDim(c, 3)) DistinctSlices(c, dim, true, c.bool_arg(1), c.bool_arg(2));
}

}  // namespace hlokit::lazy::kernel
