// SPDX-License-Identifier: Apache-2.0
// Elements of an array that a sliding window covers, shared by reduce-window, select-and-scatter and convolution.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_WINDOW_GEOMETRY_H_
#define HLOKIT_INTERP_EXACT_KERNELS_WINDOW_GEOMETRY_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/saturating.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp {

// One dimension of a window over an array dimension of size `input`.
struct WindowDimension {
  WindowDim window;
  int64_t input = 0;   // size of the array
  int64_t output = 0;  // number of window positions

  // Replaces numbers that do not matter, which may be large.
  void Normalize() {
    if (output <= 1) window.stride = 1;
    if (window.size <= 1) window.window_dilation = 1;
    if (input <= 1) window.base_dilation = 1;
  }
  // Returns true if arithmetic on positions cannot overflow.
  bool Valid() const {
    constexpr int64_t kMax = int64_t{1} << 40;
    const auto small = [](int64_t v) { return v >= -kMax && v <= kMax; };
    return window.size >= 0 && window.stride >= 1 && window.base_dilation >= 1 && window.window_dilation >= 1 &&
           small(window.size) && small(window.stride) && small(window.base_dilation) && small(window.window_dilation) &&
           small(window.padding_low) && small(window.padding_high) && small(input) && small(output) &&
           SaturatingMultiply(window.size, window.window_dilation) < INT64_MAX &&
           SaturatingMultiply(output, window.stride) < INT64_MAX &&
           SaturatingMultiply(input, window.base_dilation) < INT64_MAX;
  }

  // Returns the element at offset `at` of the window in position `position`; -1 in padding and between dilated
  // elements.
  int64_t ElementAt(int64_t position, int64_t at) const {
    const int64_t dilated = position * window.stride - window.padding_low + at * window.window_dilation;
    if (dilated < 0) return -1;
    if (window.base_dilation == 1) return dilated < input ? dilated : -1;
    if (dilated % window.base_dilation != 0) return -1;
    const int64_t element = dilated / window.base_dilation;
    return element < input ? element : -1;
  }

  // Positions for which window offset `at` covers an element: first, first + step, ... below end; the element advances
  // by element_step for each.
  struct Range {
    int64_t first = 0;
    int64_t end = 0;
    int64_t step = 1;
    int64_t element = 0;  // at `first`
    int64_t element_step = 1;
  };
  Range PositionsCovering(int64_t at) const {
    Range r;
    const int64_t stride = window.stride;
    const int64_t dilation = window.base_dilation;
    const int64_t shift = at * window.window_dilation - window.padding_low;  // dilated = position * stride + shift
    // Where dilated is a multiple of the base dilation: every `step` positions, from the first one.
    int64_t step = 1;
    int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    if (dilation != 1) {
      const int64_t divisor = std::gcd(stride, dilation);
      if (shift % divisor != 0) return r;
      step = dilation / divisor;
      // position * (stride / divisor) = -shift / divisor modulo step
      const int64_t residue = Modulo(-(shift / divisor), step);
      const int64_t solution =
          static_cast<int64_t>(static_cast<__int128>(residue) * Inverse(stride / divisor, step) % step);
      first += Modulo(solution - first, step);
    }
    if (first >= output) return r;
    const int64_t limit = (input - 1) * dilation - shift;  // position * stride <= limit
    if (input == 0 || limit < 0) return r;
    r.first = first;
    r.end = std::min(output, limit / stride + 1);
    r.step = step;
    r.element = (first * stride + shift) / dilation;
    r.element_step = step * stride / dilation;
    if (r.end <= r.first) r.end = r.first = 0;
    return r;
  }

 private:
  static int64_t Modulo(int64_t v, int64_t m) {
    const int64_t r = v % m;
    return r < 0 ? r + m : r;
  }
  // Returns the inverse of v modulo m. Requires: v and m are coprime.
  static int64_t Inverse(int64_t v, int64_t m) {
    int64_t a = Modulo(v, m), b = m, x = 1, y = 0;
    while (b != 0) {
      const int64_t quotient = a / b;
      a = std::exchange(b, a - quotient * b);
      x = std::exchange(y, x - quotient * y);
    }
    return Modulo(x, m);
  }
};

// Results in rows along the minor dimension, the last of the window.
struct WindowRows {
  std::vector<WindowDimension::Range> minor;  // by window offset in the minor dimension
  int64_t num_offsets = 1;                    // of the window in the other dimensions
  int64_t rows = 1;
  int64_t width = 1;  // results of a row

  // Returns false if the window is too large to enumerate. Requires: at least one dimension.
  bool Init(absl::Span<const WindowDimension> axes) {
    for (const WindowDimension& axis : axes.first(axes.size() - 1)) {
      num_offsets *= axis.window.size;
      rows *= axis.output;
    }
    const WindowDimension& last = axes.back();
    width = last.output;
    constexpr int64_t kMaxMinorWindow = int64_t{1} << 24;
    if (last.window.size > kMaxMinorWindow) return false;
    for (int64_t i = 0; i < last.window.size; ++i) minor.push_back(last.PositionsCovering(i));
    return true;
  }
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_WINDOW_GEOMETRY_H_
