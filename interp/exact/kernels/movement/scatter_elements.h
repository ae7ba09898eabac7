// SPDX-License-Identifier: Apache-2.0
// Scatter of elements, or of contiguous rows, at one index each (histograms, sums of segments, `x.at[i].add(y)`),
// compiled for the usual types and functions.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_MOVEMENT_SCATTER_ELEMENTS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_MOVEMENT_SCATTER_ELEMENTS_H_

#include <cstddef>
#include <cstdint>

#include "interp/exact/builder/scalar_function.h"
#include "ir/types/element_type.h"

namespace hlokit::interp {

// The windows of one of `parts` workers: all those with the same starts.
struct ScatterShare {
  int64_t part = 0;
  int64_t parts = 1;
  bool Has(int64_t start) const {
    if (parts == 1) return true;
    return static_cast<int64_t>((static_cast<uint64_t>(start) * 0x9e3779b97f4a7c15u >> 40) %
                                static_cast<uint64_t>(parts)) == part;
  }
};

// A run of windows: addresses of the first index and update, distances in elements of their types.
struct ScatterRun {
  const std::byte* indices;
  int64_t index_stride;
  const std::byte* updates;
  int64_t update_stride;
  // The element of the result at index 0 of update 0, its distance to that of the next update, and to that of the next
  // index, all in elements; indices that are negative or above `limit` are skipped.
  int64_t start;
  int64_t start_stride;
  int64_t index_step;
  int64_t limit;
  int64_t length;  // elements of a window, contiguous in the result and in the updates
};

using ScatterElementsFn = void (*)(const ScatterRun& run, std::byte* out, int64_t n, ScatterShare share);

// Returns the loop for a function of elements of this type, in order of the updates; null: there is none.
ScatterElementsFn ScatterElementsOf(ScalarFunction::RecognizedOp op, ElementType type, ElementType index_type);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_MOVEMENT_SCATTER_ELEMENTS_H_
