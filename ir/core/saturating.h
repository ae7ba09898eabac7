// SPDX-License-Identifier: Apache-2.0
// Saturating arithmetic for counts derived from untrusted shapes.
#ifndef HLOKIT_IR_CORE_SATURATING_H_
#define HLOKIT_IR_CORE_SATURATING_H_

#include <cstdint>
#include <limits>

namespace hlokit {

constexpr int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

constexpr int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_SATURATING_H_
