// SPDX-License-Identifier: Apache-2.0
// Products with few rows on the left. They read the right operand once and are bound by that, so it is read as it is
// stored, in the order of its addresses.
#ifndef HLOKIT_INTERP_COMPILED_PRODUCTS_SKINNY_PRODUCT_H_
#define HLOKIT_INTERP_COMPILED_PRODUCTS_SKINNY_PRODUCT_H_

#include <cstddef>
#include <cstdint>

namespace hlokit::interp::compiled {

inline constexpr int64_t kMaxSkinnyRows = 16;
// Terms whose sum is one of f32, where rows are contiguous; such sums are added in double.
inline constexpr int64_t kSkinnyDepth = 128;
// Terms that are added before their sum joins that of the terms before: shorter sums have smaller errors.
inline constexpr int64_t kSkinnyGroup = 8;
// Terms of each lane of a vector whose sum is one of f32, where columns are contiguous; such sums are added in double.
inline constexpr int64_t kSkinnyLaneDepth = 64;
inline constexpr int64_t kMaxSkinnyLanes = 16;
// Columns whose sums are next to each other for all rows.
inline constexpr int64_t kSkinnyColumns = 32;

struct SkinnyProduct {
  int64_t m = 1;  // at most kMaxSkinnyRows
  int64_t n = 1;
  int64_t k = 1;
  bool bf16 = false;            // the right operand; f32 otherwise
  bool rows_contiguous = true;  // rhs[k, n] with elements of n next to each other, or of k
  int64_t lhs_row = 0;          // strides of rows in elements
  int64_t rhs_stride = 0;       // of the dimension that is not contiguous, in elements
  int64_t result_row = 0;

  // Partial sums are arrays [n / kSkinnyColumns, m, kSkinnyColumns], one for each kSkinnyDepth terms. None if rows are
  // not contiguous, or one row has so few terms.
  int64_t parts() const {
    return rows_contiguous && (m > 1 || k > kSkinnyDepth) ? (k + kSkinnyDepth - 1) / kSkinnyDepth : 0;
  }
  int64_t part_size() const { return (n + kSkinnyColumns - 1) / kSkinnyColumns * kSkinnyColumns * m; }
};

// A range of columns and of terms, which begins at multiples of kSkinnyColumns and kSkinnyDepth; all terms without
// parts.
struct SkinnyRange {
  int64_t columns_begin = 0, columns_end = 0;
  int64_t terms_begin = 0, terms_end = 0;
};

// Computes result[m, n] = lhs[m, k] * rhs[k, n] in this range, or its part of `parts`. All are f32 but the right
// operand; rows of `lhs` are contiguous. A result depends on its own row and column alone.
using SkinnyProductFunction = void (*)(const SkinnyProduct& product, const float* lhs, const std::byte* rhs,
                                       float* result, float* parts, const SkinnyRange& range);
// Returns the function for the vectors of this processor.
SkinnyProductFunction SkinnyProductOf();
// Computes columns [begin, end) of the result from all parts.
void AddSkinnyParts(const SkinnyProduct& product, const float* parts, float* result, int64_t begin, int64_t end);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PRODUCTS_SKINNY_PRODUCT_H_
