// SPDX-License-Identifier: Apache-2.0
// Products of small matrices, as of heads of attention, that stay in the cache. The left operand is read element by
// element, so that it may be transposed; neither operand is packed, unless the right one is.
#ifndef HLOKIT_INTERP_COMPILED_PRODUCTS_TILE_PRODUCT_H_
#define HLOKIT_INTERP_COMPILED_PRODUCTS_TILE_PRODUCT_H_

#include <cstdint>

namespace hlokit::interp::compiled {

// Terms whose sum is one of registers; these sums are added in memory. A sum has an error that grows with its number of
// additions.
inline constexpr int64_t kTileTerms = 64;
// Most terms of a tile, so that its part of the right operand stays in the cache.
inline constexpr int64_t kTileDepth = 128;

struct TileProduct {
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  // Strides in elements. One stride of the right operand is 1.
  int64_t lhs_row = 0, lhs_column = 0;
  int64_t rhs_row = 0, rhs_column = 0;
  int64_t result_row = 0;

  // Elements of scratch memory.
  int64_t scratch_size() const;
};

// Computes result[m, n] = lhs[m, k] * rhs[k, n], all f32. `scratch`, aligned to 64 bytes, is not read again.
using TileProductFunction = void (*)(const TileProduct& product, const float* lhs, const float* rhs, float* result,
                                     float* scratch);
// Returns the function for the vectors of this processor; null without AVX2.
TileProductFunction TileProductOf();

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PRODUCTS_TILE_PRODUCT_H_
