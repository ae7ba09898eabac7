// SPDX-License-Identifier: Apache-2.0
// Tilings of reshaped arrays. A dimension is made of factors, major first, whose sizes multiply to its size; a reshape
// keeps the factors that both sides have. This file has the projection of axes on factors and back, with which sharding
// rules of all operations carry axes between their arrays.
#ifndef HLOKIT_IR_SHARDING_TILING_RESHAPE_H_
#define HLOKIT_IR_SHARDING_TILING_RESHAPE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "ir/sharding/tiling.h"

namespace hlokit {

// The factors of both sides of a reshape: indices of `sizes`, for each dimension, major first.
struct ReshapeFactors {
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> from;
  std::vector<std::vector<int64_t>> to;
};
// Walks both shapes from the major end: what both have in common of the sizes left is a factor of both; where nothing
// is, both sides have factors of their own until their products meet again. Requires: both have the same number of
// elements, and no dimension is empty.
ReshapeFactors FactorReshape(absl::Span<const int64_t> from, absl::Span<const int64_t> to);

// Distributes the axes of a dimension on its factors, major first. A factor takes axes while they divide it, of one
// that shares only a divisor the major part; the next one takes axes only if it is full. A dimension of one factor
// gives it all. Nothing goes over if the tiles of several factors do not divide the dimension. What does not fit is
// left out.
std::vector<AxisList> AxesByFactor(const AxisList& axes, absl::Span<const int64_t> factor_sizes);
// Returns the axes of a dimension: those of its factors up to the first that is not full.
AxisList AxesOfFactors(absl::Span<const AxisList> axes, absl::Span<const int64_t> factor_sizes);

// Returns the tiling of the reshaped array that moves no data, with the dimensions that can be kept and the others
// replicated.
Tiling ReshapeOrReplicate(absl::Span<const int64_t> from, absl::Span<const int64_t> to, const Tiling& tiling);
// As ReshapeOrReplicate; nullopt if nothing of a tiled array can be kept.
std::optional<Tiling> Reshape(absl::Span<const int64_t> from, absl::Span<const int64_t> to, const Tiling& tiling);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_TILING_RESHAPE_H_
