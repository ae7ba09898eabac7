// SPDX-License-Identifier: Apache-2.0
// Transposes of 16 x 16 elements in registers.
#ifndef HLOKIT_INTERP_PROCESSOR_TILE_TRANSPOSE_H_
#define HLOKIT_INTERP_PROCESSOR_TILE_TRANSPOSE_H_

#include <cstdint>

namespace hlokit::interp {

inline constexpr int64_t kTransposeTile = 16;

// to[i * to_stride + j] = from[j * from_stride + i] for i, j < kTransposeTile. Strides are in elements.
void TransposeTile(uint32_t* to, int64_t to_stride, const uint32_t* from, int64_t from_stride);
void TransposeTile(uint16_t* to, int64_t to_stride, const uint16_t* from, int64_t from_stride);

// Elements of other sizes, one by one.
template <typename T>
void TransposeTile(T* to, int64_t to_stride, const T* from, int64_t from_stride) {
  for (int64_t i = 0; i < kTransposeTile; ++i) {
    for (int64_t j = 0; j < kTransposeTile; ++j) to[i * to_stride + j] = from[j * from_stride + i];
  }
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSOR_TILE_TRANSPOSE_H_
