// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "ir/core/saturating.h"
#include "ir/graph/attribute_views.h"
#include "passes/analysis/cost_counter.h"

namespace hlokit {
namespace {

int64_t Dim(Shape shape, int64_t dim) {
  return dim >= 0 && dim < shape.rank() && !shape.is_unbounded(dim) ? shape.dim(dim) : 1;
}

// Returns x with a*x = gcd(a, m) mod m, by the extended Euclidean algorithm.
int64_t InverseUpToGcd(int64_t a, int64_t m) {
  int64_t r0 = m, r1 = a, x0 = 0, x1 = 1;
  while (r1 != 0) {
    const int64_t q = r0 / r1;
    r0 = std::exchange(r1, r0 - q * r1);
    x0 = std::exchange(x1, x0 - q * x1);
  }
  return x0;
}

// Returns the number of n in [0, count) with offset + n * step = dilation * i for some i in [0, limit). Requires: step
// and dilation are positive.
int64_t Hits(int64_t count, int64_t step, __int128 offset, int64_t dilation, int64_t limit) {
  if (count <= 0 || limit <= 0) return 0;
  const int64_t gcd = std::gcd(step, dilation);
  if (offset % gcd != 0) return 0;
  const int64_t period = dilation / gcd;
  // n must be -offset/step mod the period.
  const auto target = static_cast<int64_t>((((-offset) / gcd) % period + period) % period);
  __int128 first = static_cast<__int128>(target) * InverseUpToGcd((step / gcd) % period, period) % period;
  if (first < 0) first += period;
  // And 0 <= offset + n * step <= dilation * (limit - 1).
  const __int128 top = static_cast<__int128>(dilation) * (limit - 1) - offset;
  if (top < 0) return 0;
  __int128 low = offset >= 0 ? 0 : (-offset + step - 1) / step;
  const __int128 high = std::min<__int128>(top / step, count - 1);
  low = first + (low > first ? (low - first + period - 1) / period : 0) * period;
  return low > high ? 0 : static_cast<int64_t>((high - low) / period + 1);
}

// Returns the pairs of an output position and a window position that read an element of the input rather than padding
// or a hole.
int64_t ValidPositions(const WindowDim& window, int64_t input, int64_t kernel, int64_t output) {
  constexpr int64_t kMaxSteps = int64_t{1} << 20;
  const int64_t stride = std::max<int64_t>(1, window.stride), holes = std::max<int64_t>(1, window.window_dilation);
  const int64_t dilation = std::max<int64_t>(1, window.base_dilation);
  const __int128 start = -static_cast<__int128>(window.padding_low);
  int64_t valid = 0;
  if (kernel <= output && kernel <= kMaxSteps) {
    for (int64_t k = 0; k < kernel; ++k) {
      valid += Hits(output, stride, start + static_cast<__int128>(k) * holes, dilation, input);
    }
    return valid;
  }
  if (output <= kMaxSteps) {
    for (int64_t o = 0; o < output; ++o) {
      valid += Hits(kernel, holes, start + static_cast<__int128>(o) * stride, dilation, input);
    }
    return valid;
  }
  return SaturatingMultiply(kernel, output) / dilation;
}

}  // namespace

int64_t DotFlops(Instruction dot) {
  int64_t flops = SaturatingMultiply(2, std::max<int64_t>(0, dot.shape().element_count()));
  const Shape lhs = dot.operand(0).shape();
  for (int64_t dim : DotDims::Of(dot).lhs_contracting) flops = SaturatingMultiply(flops, Dim(lhs, dim));
  return flops;
}

int64_t ConvolutionFlops(Instruction convolution) {
  const AttrReader attrs(convolution);
  const ConvolutionDims dims = ConvolutionDims::Of(attrs);
  const WindowView window = WindowView::Of(attrs);
  if (!dims.ok()) return 0;
  const Shape lhs = convolution.operand(0).shape(), rhs = convolution.operand(1).shape();
  const Shape result = convolution.shape();
  const int64_t feature_groups = std::max<int64_t>(1, attrs.int_attr(Attr::kFeatureGroupCount, 1));
  const int64_t batch_groups = std::max<int64_t>(1, attrs.int_attr(Attr::kBatchGroupCount, 1));
  int64_t products =
      SaturatingMultiply(Dim(lhs, dims.input_feature) / feature_groups, Dim(result, dims.output_feature));
  products = SaturatingMultiply(products, Dim(lhs, dims.input_batch) / batch_groups);
  for (int64_t d = 0; d < std::min(window.rank(), dims.spatial_rank()); ++d) {
    products = SaturatingMultiply(
        products, ValidPositions(window[d], Dim(lhs, dims.input_spatial[d]), Dim(rhs, dims.kernel_spatial[d]),
                                 Dim(result, dims.output_spatial[d])));
  }
  return SaturatingMultiply(2, products);
}

}  // namespace hlokit
