// SPDX-License-Identifier: Apache-2.0
// Products with few rows on the left. They read the right operand once and are bound by that, so it is read as it is
// stored, in the order of its addresses.
#ifndef HLOKIT_INTERP_COMPILED_SKINNY_PRODUCT_H_
#define HLOKIT_INTERP_COMPILED_SKINNY_PRODUCT_H_

#include <cstddef>
#include <cstdint>

namespace hlokit::interp::compiled {

inline constexpr int64_t kMaxSkinnyRows = 16;

struct SkinnyProduct {
  int64_t m = 1;  // at most kMaxSkinnyRows
  int64_t k = 1;
  bool bf16 = false;            // the right operand; f32 otherwise
  bool rows_contiguous = true;  // rhs[k, n] with elements of n next to each other, or of k
  int64_t rhs_stride = 0;       // of the other dimension, in elements
  int64_t result_row = 0;
};

// Computes columns [begin, end) of result[m, n] = lhs[m, k] * rhs[k, n], all f32 but the right operand; `lhs` is dense.
// A result depends on its own row and column alone. `sums`: memory for m * (end - begin) numbers if rows are
// contiguous.
using SkinnyProductFunction = void (*)(const SkinnyProduct& product, const float* lhs, const std::byte* rhs,
                                       float* result, double* sums, int64_t begin, int64_t end);
// Returns the function for the vectors of this processor.
SkinnyProductFunction SkinnyProductOf();

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_SKINNY_PRODUCT_H_
