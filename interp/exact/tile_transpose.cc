// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/tile_transpose.h"

#include <initializer_list>

#include "interp/exact/instruction_set.h"

namespace hlokit::interp {
namespace {

typedef uint32_t Words4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint32_t Words16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t Lanes16 __attribute__((vector_size(64)));
typedef uint16_t Halves8 __attribute__((vector_size(16), aligned(2), may_alias));

using TileFunction = void (*)(uint32_t* to, int64_t to_stride, const uint32_t* from, int64_t from_stride);

// In each step, rows of blocks of 1, 2, 4 and 8 elements exchange half of them.
__attribute__((target("avx512f"))) void TransposeWords16(uint32_t* to, int64_t to_stride, const uint32_t* from,
                                                         int64_t from_stride) {
  Words16 a[16], b[16];
  for (int k = 0; k < 16; ++k) a[k] = *reinterpret_cast<const Words16*>(from + k * from_stride);
  constexpr Lanes16 kLow1 = {0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30};
  constexpr Lanes16 kHigh1 = {1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31};
  constexpr Lanes16 kLow2 = {0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29};
  constexpr Lanes16 kHigh2 = {2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31};
  constexpr Lanes16 kLow4 = {0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27};
  constexpr Lanes16 kHigh4 = {4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31};
  constexpr Lanes16 kLow8 = {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};
  constexpr Lanes16 kHigh8 = {8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31};
#pragma GCC unroll 8
  for (int k = 0; k < 16; k += 2) {
    b[k] = __builtin_shuffle(a[k], a[k + 1], kLow1);
    b[k + 1] = __builtin_shuffle(a[k], a[k + 1], kHigh1);
  }
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    const int r = k / 2 * 4 + k % 2;
    a[r] = __builtin_shuffle(b[r], b[r + 2], kLow2);
    a[r + 2] = __builtin_shuffle(b[r], b[r + 2], kHigh2);
  }
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    const int r = k / 4 * 8 + k % 4;
    b[r] = __builtin_shuffle(a[r], a[r + 4], kLow4);
    b[r + 4] = __builtin_shuffle(a[r], a[r + 4], kHigh4);
  }
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    *reinterpret_cast<Words16*>(to + k * to_stride) = __builtin_shuffle(b[k], b[k + 8], kLow8);
    *reinterpret_cast<Words16*>(to + (k + 8) * to_stride) = __builtin_shuffle(b[k], b[k + 8], kHigh8);
  }
}

void TransposeWords4(uint32_t* to, int64_t to_stride, const uint32_t* from, int64_t from_stride) {
  for (int64_t j = 0; j < kTransposeTile; j += 4) {
    for (int64_t i = 0; i < kTransposeTile; i += 4) {
      Words4 r[4];
      for (int k = 0; k < 4; ++k) r[k] = *reinterpret_cast<const Words4*>(from + (j + k) * from_stride + i);
      const Words4 a = __builtin_shuffle(r[0], r[1], Words4{0, 4, 1, 5});
      const Words4 b = __builtin_shuffle(r[2], r[3], Words4{0, 4, 1, 5});
      const Words4 c = __builtin_shuffle(r[0], r[1], Words4{2, 6, 3, 7});
      const Words4 d = __builtin_shuffle(r[2], r[3], Words4{2, 6, 3, 7});
      uint32_t* const t = to + i * to_stride + j;
      *reinterpret_cast<Words4*>(t) = __builtin_shuffle(a, b, Words4{0, 1, 4, 5});
      *reinterpret_cast<Words4*>(t + to_stride) = __builtin_shuffle(a, b, Words4{2, 3, 6, 7});
      *reinterpret_cast<Words4*>(t + 2 * to_stride) = __builtin_shuffle(c, d, Words4{0, 1, 4, 5});
      *reinterpret_cast<Words4*>(t + 3 * to_stride) = __builtin_shuffle(c, d, Words4{2, 3, 6, 7});
    }
  }
}

}  // namespace

void TransposeTile(uint32_t* to, int64_t to_stride, const uint32_t* from, int64_t from_stride) {
  static const TileFunction function =
      HostInstructionSet() == InstructionSet::kAvx512 ? TransposeWords16 : TransposeWords4;
  function(to, to_stride, from, from_stride);
}

void TransposeTile(uint16_t* to, int64_t to_stride, const uint16_t* from, int64_t from_stride) {
  for (int64_t j = 0; j < kTransposeTile; j += 8) {
    for (int64_t i = 0; i < kTransposeTile; i += 8) {
      Halves8 a[8], b[8];
      for (int k = 0; k < 8; ++k) a[k] = *reinterpret_cast<const Halves8*>(from + (j + k) * from_stride + i);
      // Rows k and k + 4 are interleaved, three times.
      for (Halves8* step : {a, b, a}) {
        Halves8* const next = step == a ? b : a;
        for (int k = 0; k < 4; ++k) {
          next[2 * k] = __builtin_shuffle(step[k], step[k + 4], Halves8{0, 8, 1, 9, 2, 10, 3, 11});
          next[2 * k + 1] = __builtin_shuffle(step[k], step[k + 4], Halves8{4, 12, 5, 13, 6, 14, 7, 15});
        }
      }
      for (int k = 0; k < 8; ++k) *reinterpret_cast<Halves8*>(to + (i + k) * to_stride + j) = b[k];
    }
  }
}

}  // namespace hlokit::interp
