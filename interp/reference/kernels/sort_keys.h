// Ordering elements by unsigned integer keys.
#ifndef HLOKIT_INTERP_REFERENCE_KERNELS_SORT_KEYS_H_
#define HLOKIT_INTERP_REFERENCE_KERNELS_SORT_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/element_type.h"

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
  // Returns the positions in order; they stay valid until the next call. `keys` is overwritten.
  const std::vector<uint32_t>& Sort(std::vector<uint64_t>& keys);

 private:
  std::vector<uint32_t> order_, other_order_;
  std::vector<uint64_t> other_keys_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_REFERENCE_KERNELS_SORT_KEYS_H_
