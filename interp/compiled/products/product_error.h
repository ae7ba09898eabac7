// SPDX-License-Identifier: Apache-2.0
// Bounds of the errors of products of f32, derived from the order in which the kernels add, in units of 2^-24 of the
// sum of the magnitudes of the terms of an element. A term that is rounded n times, as a product and in the sums that
// it is part of, adds n units of its magnitude at most, but for terms of higher order. Products below the least normal
// number have an error of their own, ProductUnderflow.
#ifndef HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_ERROR_H_
#define HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_ERROR_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "interp/compiled/products/skinny_product.h"
#include "interp/compiled/products/tile_product.h"

namespace hlokit::interp::compiled {

// Returns the units of `n` roundings: n / (1 - n * 2^-24).
inline double UnitsOfRoundings(double n) {
  const double rest = 1 - std::ldexp(n, -24);
  return rest > 0 ? n / rest : std::numeric_limits<double>::infinity();
}

// Sums of `terms` terms in any order: each is rounded once as a product, and in at most terms - 1 additions.
inline double AnyOrderUnits(int64_t terms) { return UnitsOfRoundings(static_cast<double>(terms)); }

// A tile adds up to kTileTerms terms in registers, two such sums at most, and the sums of other tiles one by one.
inline double TileProductUnits(int64_t terms) {
  const int64_t tiles = (terms + kTileDepth - 1) / kTileDepth;
  const int64_t roundings = kTileTerms + kTileDepth / kTileTerms - 1 + std::max<int64_t>(tiles - 1, 0);
  return UnitsOfRoundings(static_cast<double>(std::min(terms, roundings)));
}

// Sums of f32, which are added in double and rounded once. By rows, a term is rounded as a product, in its group, and
// with each later group or single term of its kSkinnyDepth terms. By columns, it is rounded as a product and in its
// lane, with the other lanes, and with the terms that fill no vector.
inline double SkinnyProductUnits(int64_t terms, bool rows_contiguous) {
  constexpr int64_t kByRows = kSkinnyGroup + kSkinnyDepth / kSkinnyGroup - 1 + kSkinnyGroup - 2;
  constexpr int64_t kByColumns = kSkinnyLaneDepth + 4 + kMaxSkinnyLanes - 1;
  static_assert(kMaxSkinnyLanes == 1 << 4);
  const int64_t roundings = std::min(terms, rows_contiguous ? kByRows : kByColumns) + 1;
  // The sum in double has at most one addition for each term.
  return UnitsOfRoundings(static_cast<double>(roundings) + std::ldexp(static_cast<double>(terms), -28));
}

// Any kernel of dot and convolution, those of the library and of the exact engine among them.
inline double ProductUnits(int64_t terms) {
  return std::max({AnyOrderUnits(terms), TileProductUnits(terms), SkinnyProductUnits(terms, true),
                   SkinnyProductUnits(terms, false)});
}

// The difference of two kernels, each in its own order.
inline double ProductDifferenceUnits(int64_t terms) { return 2 * ProductUnits(terms); }

// The absolute error of terms whose products are denormal.
inline double ProductUnderflow(int64_t terms) { return std::ldexp(static_cast<double>(terms), -149); }

// Measured on random terms: no bounds, but what tests expect so that a kernel does not become less exact unseen.
inline constexpr double kMeasuredUnits = 4;            // terms of mixed signs
inline constexpr double kMeasuredUnitsOfOneSign = 18;  // of the library
inline constexpr double kMeasuredUnitsOfOneSignInTiles = 10;
inline constexpr double kMeasuredUnitsOfOneSignWithFewRows = 6;

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PRODUCTS_PRODUCT_ERROR_H_
