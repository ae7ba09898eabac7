// SPDX-License-Identifier: Apache-2.0
// Ordering elements by unsigned integer keys.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_SORT_KEYS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_SORT_KEYS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interp/exact/run_context.h"
#include "ir/types/element_type.h"

namespace hlokit::interp {

// How the keys of one element type are made: ascending keys are the wanted order.
struct KeyOrder {
  ElementType type = ElementType::kF32;
  bool descending = false;
  // Floats: IEEE 754 totalOrder. Otherwise zeros of both signs are equal and NaNs come last.
  bool total_order = false;

  // False for types without an order (complex).
  bool Supported() const;
  // Keys of n elements, `stride` elements apart.
  void MakeKeys(const std::byte* elements, int64_t stride, int64_t n, uint64_t* keys) const;
};

// Sorts positions 0 .. n-1 by keys[position], equal keys in order of position.
class KeySorter {
 public:
  // Returns the positions in order; they stay valid until the next call. `keys` is overwritten. With a context, by all
  // of its threads: the caller is then no piece of other work of it.
  const std::vector<uint32_t>& Sort(std::vector<uint64_t>& keys, RunContext* context = nullptr);

 private:
  // How many keys have each value of 8 bits, in a part of the keys; then where the next of them goes.
  using Counts = std::array<uint32_t, 256>;

  std::vector<uint32_t> order_, other_order_;
  std::vector<uint64_t> other_keys_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_SORT_KEYS_H_
