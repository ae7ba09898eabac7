// SPDX-License-Identifier: Apache-2.0
// Windows of an array at computed indices, shared by gather and scatter.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_MOVEMENT_INDEXED_WINDOWS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_MOVEMENT_INDEXED_WINDOWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/kernels/index_operand.h"
#include "interp/exact/program/loop_nest.h"
#include "interp/exact/program/view.h"

namespace hlokit::interp {

// Dimension numbers of gather and scatter in common terms: `array` is gather's operand or scatter's input, `windows` is
// gather's result or scatter's update.
struct IndexedDims {
  absl::Span<const int64_t> window_dims;     // of `windows` (offset_dims, update_window_dims)
  absl::Span<const int64_t> collapsed_dims;  // of the array: window size 1, absent from `windows`
  absl::Span<const int64_t> index_map;       // array dimension of each component of an index vector
  absl::Span<const int64_t> array_batching;  // of the array
  absl::Span<const int64_t> index_batching;  // of the indices, in the same order
  int64_t index_vector_dim = 0;
};

struct IndexedWindows {
  // One index vector is at `indices[offset + component * stride]`; its windows begin at window and array offsets.
  struct Component {
    int64_t array_stride;  // in elements
    int64_t limit;         // largest start for which the window is in bounds; negative: none
  };
  ElementType index_type = ElementType::kS32;
  int64_t component_stride = 0;  // in elements of the indices
  std::vector<Component> components;
  LoopNest outer;                     // operands: indices, array (batching dimensions), then each of the windows
  Dims window_sizes;                  // of the array dimensions that have windows, in order
  Dims array_strides;                 // in those dimensions
  std::vector<Dims> windows_strides;  // in those dimensions, for each of the windows
  bool empty = false;                 // no windows, or windows without elements

  // Returns false if the numbers do not match the shapes. All `windows` have the same dimensions.
  bool Init(const IndexedDims& dims, absl::Span<const int64_t> array_dims, const Dims& array_strides_in,
            const View& indices, absl::Span<const int64_t> windows_dims, absl::Span<const Dims> windows_strides_in);

  // Returns the start of a window in the array, in elements, clamped to be in bounds.
  int64_t ClampedStart(const std::byte* indices, int64_t offset) const {
    int64_t start = 0;
    for (size_t i = 0; i < components.size(); ++i) {
      const Component& c = components[i];
      start += std::clamp<int64_t>(Index(indices, offset, i), 0, std::max<int64_t>(0, c.limit)) * c.array_stride;
    }
    return start;
  }
  // Returns false if the window is not in bounds.
  bool Start(const std::byte* indices, int64_t offset, int64_t* start) const {
    *start = 0;
    for (size_t i = 0; i < components.size(); ++i) {
      const Component& c = components[i];
      const int64_t index = Index(indices, offset, i);
      if (index < 0 || index > c.limit) return false;
      *start += index * c.array_stride;
    }
    return true;
  }

 private:
  int64_t Index(const std::byte* indices, int64_t offset, size_t component) const {
    return LoadIndex(index_type,
                     indices + (offset + static_cast<int64_t>(component) * component_stride) * BytesOf(index_type));
  }
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_MOVEMENT_INDEXED_WINDOWS_H_
