// SPDX-License-Identifier: Apache-2.0
// Window functions for short-time transforms, and frequencies of transforms.
#include <numbers>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy::kernel {
namespace {

// Returns alpha - beta cos(2 pi k / n); a window that is not periodic ends with its first value.
void CosineWindow(OpKernelContext& c, size_t dtype_arg, bool periodic, double alpha, double beta) {
  const int64_t length = c.int_arg(0);
  const ElementType type = c.dtype(dtype_arg, kDefaultFloat);
  if (length < 0) return c.Fail(StrCat("requires non-negative window_length, got window_length=", length));
  if (!IsFloat(type)) return c.Fail("expects floating point dtypes");
  if (length <= 1) return c.Return(lazy::Full({length}, 1, type));
  const double step = 2 * std::numbers::pi / static_cast<double>(periodic ? length : length - 1);
  const Tensor angle = lazy::Arange(length, ElementType::kF64) * Scalar(step);
  c.Return(lazy::To(lazy::Add(InvokeOp(Op::cos, angle) * Scalar(-beta), alpha), type));
}

}  // namespace

// window_length, then periodic, alpha, beta by overload
void HannWindow(OpKernelContext& c) {
  const bool given = c.op() == Op::hann_window_periodic;
  CosineWindow(c, given ? 2 : 1, !given || c.bool_arg(1), 0.5, 0.5);
}
void HammingWindow(OpKernelContext& c) {
  const size_t dtype_arg = c.args().size() - 1;
  const bool periodic = dtype_arg < 2 || c.bool_arg(1);
  CosineWindow(c, dtype_arg, periodic, dtype_arg > 2 ? c.float_arg(2) : 0.54, dtype_arg > 3 ? c.float_arg(3) : 0.46);
}

namespace {

// n, d, dtype: the frequencies of a transform of n samples at a distance d.
void Frequencies(OpKernelContext& c, bool one_sided) {
  const int64_t n = c.int_arg(0);
  constexpr int64_t kMaxSize = int64_t{1} << 40;
  if (n < 0 || n > kMaxSize) return c.Fail(StrCat("n must be nonnegative and at most ", kMaxSize, ", but is ", n));
  const ElementType type = c.dtype(2, kDefaultFloat);
  if (!IsFloat(type)) return c.Fail("expects floating point dtypes");
  const double unit = 1 / (static_cast<double>(n) * c.float_arg(1));
  Tensor number = lazy::Arange(one_sided ? n / 2 + 1 : n, type);
  // Of both sides the upper half are negative frequencies.
  if (!one_sided) number = lazy::Where(lazy::Ge(number, (n + 1) / 2), lazy::Sub(number, n), number);
  c.Return(lazy::To(number * Scalar(unit), type));
}

}  // namespace

void FftFreq(OpKernelContext& c) { Frequencies(c, false); }
void RfftFreq(OpKernelContext& c) { Frequencies(c, true); }

}  // namespace hlokit::lazy::kernel
