// SPDX-License-Identifier: Apache-2.0
// Moves elements by width, independent of their type.
#ifndef HLOKIT_INTERP_EXACT_PROGRAM_ELEMENT_WIDTH_H_
#define HLOKIT_INTERP_EXACT_PROGRAM_ELEMENT_WIDTH_H_

#include <cstdint>

namespace hlokit::interp {

// Calls `visit` with a value of a type of this width in bytes: 1, 2, 4, 8 or 16.
template <typename F>
inline void VisitWidth(int64_t bytes, F&& visit) {
  struct Wide {
    uint64_t low, high;
  };
  switch (bytes) {
    case 1:
      return visit(uint8_t{});
    case 2:
      return visit(uint16_t{});
    case 4:
      return visit(uint32_t{});
    case 8:
      return visit(uint64_t{});
    default:
      return visit(Wide{});
  }
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_PROGRAM_ELEMENT_WIDTH_H_
