// SPDX-License-Identifier: Apache-2.0
#include "interp/processor/tile_transpose.h"

#include <initializer_list>

#include "interp/processor/instruction_set.h"
#include "interp/processor/vector_transpose.h"

namespace hlokit::interp {
namespace {

typedef uint32_t Words4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint16_t Halves8 __attribute__((vector_size(16), aligned(2), may_alias));

#if defined(__x86_64__)
typedef float Words16 __attribute__((vector_size(64), aligned(4), may_alias));

__attribute__((target("avx512f"))) void TransposeWords16(uint32_t* to, int64_t to_stride, const uint32_t* from,
                                                         int64_t from_stride) {
  WordVector rows[16];
  for (int k = 0; k < 16; ++k) rows[k] = *reinterpret_cast<const Words16*>(from + k * from_stride);
  TransposeVectors(rows);
  for (int k = 0; k < 16; ++k) *reinterpret_cast<Words16*>(to + k * to_stride) = rows[k];
}
#endif

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
#if defined(__x86_64__)
  if (HostInstructionSet() == InstructionSet::kAvx512) return TransposeWords16(to, to_stride, from, from_stride);
#endif
  TransposeWords4(to, to_stride, from, from_stride);
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
