// SPDX-License-Identifier: Apache-2.0
// Reads computed indices: start indices of dynamic slices, gathers and scatters.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_INDEX_OPERAND_H_
#define HLOKIT_INTERP_EXACT_KERNELS_INDEX_OPERAND_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ir/types/element_type.h"

namespace hlokit::interp {

// Returns the integer at `data`; u64 values above int64 are clamped to its maximum.
inline int64_t LoadIndex(ElementType type, const std::byte* data) {
  switch (BytesOf(type)) {
    case 1:
      return IsSigned(type) ? int64_t{*reinterpret_cast<const int8_t*>(data)}
                            : int64_t{*reinterpret_cast<const uint8_t*>(data)};
    case 2:
      return IsSigned(type) ? int64_t{*reinterpret_cast<const int16_t*>(data)}
                            : int64_t{*reinterpret_cast<const uint16_t*>(data)};
    case 4:
      return IsSigned(type) ? int64_t{*reinterpret_cast<const int32_t*>(data)}
                            : int64_t{*reinterpret_cast<const uint32_t*>(data)};
    default:
      if (IsSigned(type)) return *reinterpret_cast<const int64_t*>(data);
      return static_cast<int64_t>(
          std::min<uint64_t>(*reinterpret_cast<const uint64_t*>(data), std::numeric_limits<int64_t>::max()));
  }
}

inline bool IsIndexType(ElementType type) { return IsInteger(type) && BitsOf(type) >= 8; }

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_INDEX_OPERAND_H_
