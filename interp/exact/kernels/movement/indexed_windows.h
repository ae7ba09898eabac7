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
  // A component of an index vector: the start of windows in a dimension of the array. Components of batching dimensions
  // are not listed: there the position among the index vectors is the start.
  struct Component {
    int64_t offset;        // from the first component, in elements of the indices
    int64_t array_stride;  // in elements
    int64_t limit;         // largest start for which the window is in bounds; negative: none
    bool is_point;         // the window has one element in this dimension
  };
  // A batching dimension in which the indices are longer than the array, so that windows may be out of bounds.
  struct LongBatch {
    int64_t array_stride;
    int64_t limit;  // the last position in the array; negative: none
  };
  ElementType index_type = ElementType::kS32;
  std::vector<Component> components;
  std::vector<LongBatch> long_batches;
  // Operands: indices, array (other batching dimensions), each of the windows, then the position in each long batch.
  LoopNest outer;
  Dims window_sizes;                  // of the array dimensions that have windows, in order
  Dims array_strides;                 // in those dimensions
  std::vector<Dims> windows_strides;  // in those dimensions, for each of the windows
  bool empty = false;                 // no windows, or windows or an array without elements

  // Returns false if the numbers do not match the shapes. All `windows` have the same dimensions.
  bool Init(const IndexedDims& dims, absl::Span<const int64_t> array_dims, const Dims& array_strides_in,
            const View& indices, absl::Span<const int64_t> windows_dims, absl::Span<const Dims> windows_strides_in);

  // Returns the start in the array, in elements, of window `i` of a run of `outer` at these offsets with these strides,
  // clamped to be in bounds.
  int64_t ClampedStart(const std::byte* indices, const int64_t* at, const int64_t* strides, int64_t i) const {
    const int64_t offset = at[0] + i * strides[0];
    int64_t start = at[1] + i * strides[1];
    for (const Component& c : components) {
      start +=
          std::clamp<int64_t>(Index(indices, offset + c.offset), 0, std::max<int64_t>(0, c.limit)) * c.array_stride;
    }
    for (size_t k = 0; k < long_batches.size(); ++k) {
      const LongBatch& batch = long_batches[k];
      start += std::clamp<int64_t>(BatchPosition(at, strides, i, k), 0, batch.limit) * batch.array_stride;
    }
    return start;
  }
  // As ClampedStart. Returns false if the window is not in bounds.
  bool Start(const std::byte* indices, const int64_t* at, const int64_t* strides, int64_t i, int64_t* start) const {
    const int64_t offset = at[0] + i * strides[0];
    *start = at[1] + i * strides[1];
    for (const Component& c : components) {
      const int64_t index = Index(indices, offset + c.offset);
      if (index < 0 || index > c.limit) return false;
      *start += index * c.array_stride;
    }
    for (size_t k = 0; k < long_batches.size(); ++k) {
      const int64_t position = BatchPosition(at, strides, i, k);
      if (position > long_batches[k].limit) return false;
      *start += position * long_batches[k].array_stride;
    }
    return true;
  }

 private:
  int64_t Index(const std::byte* indices, int64_t offset) const {
    return LoadIndex(index_type, indices + offset * BytesOf(index_type));
  }
  int64_t BatchPosition(const int64_t* at, const int64_t* strides, int64_t i, size_t batch) const {
    const size_t operand = 2 + windows_strides.size() + batch;
    return at[operand] + i * strides[operand];
  }
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_MOVEMENT_INDEXED_WINDOWS_H_
