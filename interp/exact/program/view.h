// SPDX-License-Identifier: Apache-2.0
// Location of the elements of an array value: a slot of the frame, an offset into its bytes, and a stride for each
// dimension. Reshape, broadcast, slice, transpose and reverse are views of the same slot without run-time cost.
#ifndef HLOKIT_INTERP_EXACT_PROGRAM_VIEW_H_
#define HLOKIT_INTERP_EXACT_PROGRAM_VIEW_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "ir/types/shape.h"

namespace hlokit::interp {

using Dims = absl::InlinedVector<int64_t, 6>;

inline constexpr uint32_t kNoSlot = 0xffffffffu;

struct View {
  Shape shape;  // an array; other leaves (tokens) have no elements
  uint32_t slot = kNoSlot;
  const int64_t* strides = nullptr;  // [rank], in elements; null: dense, row-major
  int64_t offset = 0;                // of the first element, in bytes

  bool dense() const { return strides == nullptr; }
  ElementType type() const { return shape.element_type(); }
  absl::Span<const int64_t> dims() const { return shape.dims(); }
  int64_t count() const { return shape.IsArray() ? shape.element_count() : 0; }
};

// Returns the strides of a dense row-major array.
inline Dims DenseStrides(absl::Span<const int64_t> dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

inline Dims StridesOf(const View& view) {
  if (view.strides != nullptr) return Dims(view.strides, view.strides + view.shape.rank());
  return DenseStrides(view.dims());
}

inline int64_t ElementCount(absl::Span<const int64_t> dims) {
  int64_t p = 1;
  for (int64_t d : dims) p *= d;
  return p;
}

// Returns true for the strides of a dense array, ignoring dimensions of size 1.
inline bool AreDense(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides) {
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != stride) return false;
    stride *= dims[i];
  }
  return true;
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_PROGRAM_VIEW_H_
