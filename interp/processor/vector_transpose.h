// SPDX-License-Identifier: Apache-2.0
// A transpose of 16 vectors of 16 words of 32 bits, for AVX-512.
#ifndef HLOKIT_INTERP_PROCESSOR_VECTOR_TRANSPOSE_H_
#define HLOKIT_INTERP_PROCESSOR_VECTOR_TRANSPOSE_H_

#if defined(__x86_64__)
namespace hlokit::interp {

// Words of any type: shuffles of floats keep all bits, and have instructions that those of integers have not.
typedef float WordVector __attribute__((vector_size(64)));

// r[i][j] becomes r[j][i]. Shuffles are within parts of 16 bytes, or of whole ones.
__attribute__((target("avx512f"), always_inline)) inline void TransposeVectors(WordVector (&r)[16]) {
  WordVector t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    const int i = k / 2 * 4, j = k % 2;
    const WordVector x = t[i + j], y = t[i + j + 2];
    r[i + 2 * j] = __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    r[i + 2 * j + 1] = __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  }
  // Now r[i] has, in its parts k of 4 words, elements i % 4 + 4 k of rows i / 4 * 4 to i / 4 * 4 + 3.
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    for (int half = 0; half < 16; half += 8) {
      const WordVector x = r[i + half], y = r[i + half + 4];
      t[i + half] = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
      t[i + half + 4] = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const WordVector x = t[i], y = t[i + 8];
    r[i] = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    r[i + 8] = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
}

}  // namespace hlokit::interp
#endif

#endif  // HLOKIT_INTERP_PROCESSOR_VECTOR_TRANSPOSE_H_
