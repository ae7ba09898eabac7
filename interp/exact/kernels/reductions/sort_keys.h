// SPDX-License-Identifier: Apache-2.0
// Orders elements by unsigned integer keys.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_SORT_KEYS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_SORT_KEYS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interp/exact/run_context.h"
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
  // Computes keys of n elements, `stride` elements apart.
  void MakeKeys(const std::byte* elements, int64_t stride, int64_t n, uint64_t* keys) const;
};

// Sorts positions 0 .. n-1 by keys[position], equal keys in order of position.
class KeySorter {
 public:
  // Returns the positions in order, valid until the next call. Overwrites `keys`. With a context uses all of its
  // threads; the caller must then not be part of its parallel work.
  const std::vector<uint32_t>& Sort(std::vector<uint64_t>& keys, RunContext* context = nullptr);

 private:
  // Number of keys with each 8-bit digit in a chunk of the keys; then the position of the next of them.
  using Counts = std::array<uint32_t, 256>;

  std::vector<uint32_t> order_, other_order_;
  std::vector<uint64_t> other_keys_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_REDUCTIONS_SORT_KEYS_H_
