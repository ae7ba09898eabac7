// SPDX-License-Identifier: Apache-2.0
// Orders elements by unsigned integer keys.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_SORT_KEYS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_SORT_KEYS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "interp/exact/machine/run_context.h"
#include "ir/types/element_type.h"

namespace hlokit::interp {

// Keys of one element type: ascending keys are in the requested order.
struct KeyOrder {
  ElementType type = ElementType::kF32;
  bool descending = false;
  // Floats: IEEE 754 totalOrder. Otherwise zeros of both signs are equal and NaNs sort last.
  bool total_order = false;

  // Returns false for types without an order (complex).
  bool Supported() const;
  // Returns true if the keys have at most 32 bits.
  bool Narrow() const { return BitsOf(type) <= 32; }
  // Computes keys of n contiguous elements. Key: uint64_t, or uint32_t if they are narrow.
  template <typename Key>
  void MakeKeys(const std::byte* elements, int64_t n, Key* keys) const;
};

// Sorts positions 0 .. n-1 by keys[position], equal keys in order of position.
class KeySorter {
 public:
  // Storage for the keys of n elements, to be filled before Sort.
  absl::Span<uint64_t> Keys(size_t n);
  // Returns the positions in order, valid until the next call. If `together`, uses all threads of the context: the
  // caller must then not be part of its parallel work. If the run is to stop, they
  // are of no use.
  absl::Span<const uint32_t> Sort(RunContext& context, bool together);

 private:
  // Number of keys with each 8-bit digit in a chunk of the keys; then the position of the next of them.
  using Counts = std::array<uint32_t, 256>;

  // Allocated without initialization, which takes long for large arrays.
  template <typename T>
  struct Buffer {
    std::unique_ptr<T[]> data;
    size_t size = 0;
    T* Resize(size_t n) {
      if (n > size) data = std::make_unique_for_overwrite<T[]>(n);
      size = std::max(size, n);
      return data.get();
    }
  };

  size_t n_ = 0;
  Buffer<uint32_t> order_, other_order_;
  Buffer<uint64_t> keys_, other_keys_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_SORT_KEYS_H_
