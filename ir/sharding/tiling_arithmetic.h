// SPDX-License-Identifier: Apache-2.0
// Arithmetic of tilings: containment, merging, dimensions that move, appear and vanish, shapes of parts. Unless stated
// otherwise, tilings that are not tiled (replicated, manual, maximal, …) come back unchanged, and metadata is kept.
#ifndef HLOKIT_IR_SHARDING_TILING_ARITHMETIC_H_
#define HLOKIT_IR_SHARDING_TILING_ARITHMETIC_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "ir/sharding/tiling.h"

namespace hlokit {

// ---- relations ----

// Returns true if each device's part of an array of these sizes under `sub` lies within its part under `super`, with
// the same subgroups.
bool IsSubTilingOrEqual(absl::Span<const int64_t> sizes, const Tiling& sub, const Tiling& super);

// Returns true if `a` says more about where data are than `b`: manual more than tiled, that more than replicated, and
// of two tiled ones the one with more tiles. (A comparison of numbers, as XLA's: the tiles need not be related.)
bool IsMoreSpecific(const Tiling& a, const Tiling& b);

// Returns true if one collective-permute turns one into the other: other devices have the same parts.
bool CanPermute(const Tiling& source, const Tiling& target);

// How lists of axes of one dimension merge: only if they are equal or one is empty, as tile assignments do in XLA; or
// also if one is a prefix of the other.
enum class MergePolicy : uint8_t { kWholeDimensions, kPrefixes };

// Returns a tiling that has the tiles of both, or nullopt if they conflict: dimensions with different axes, axes in two
// dimensions, subgroups that differ, device orders that are not related. Axes of `source` that another dimension of
// `into` has, and those minor to them, are left out if the dimension still gains some (kPrefixes).
std::optional<Tiling> Merge(const Tiling& source, const Tiling& into, MergePolicy policy);

// ---- dimensions ----

// Returns the tiling of the transposed array, whose dimension i is dimension dims[i].
Tiling Transpose(const Tiling& tiling, absl::Span<const int64_t> dims);
// As Transpose, for a target of other rank: to_from[i] is the dimension that becomes dimension i, -1 for a new, untiled
// one. Returns nullopt if a dimension that is tiled vanishes.
std::optional<Tiling> TransposeWithCollapsedDims(const Tiling& tiling, absl::Span<const int64_t> to_from);
// Returns a tiling of `rank` dimensions, of which to[i] is the dimension from[i] of `tiling`; others are not tiled, and
// axes of other dimensions are replicated.
Tiling CarryDims(const Tiling& tiling, absl::Span<const int64_t> from, absl::Span<const int64_t> to, int64_t rank);
// Returns the tiling with the axes of these dimensions replicated.
Tiling ReplicateDims(const Tiling& tiling, absl::Span<const int64_t> dims);
Tiling ReplicateDimsExcept(const Tiling& tiling, absl::Span<const int64_t> dims);
// Returns a tiling of an array of `rank` dimensions with the same subgroups, all data replicated.
Tiling ReplicateAllDims(const Tiling& tiling, int64_t rank);
// Inserts `count` untiled dimensions before dimension `dim`.
Tiling AddDims(const Tiling& tiling, int64_t dim, int64_t count);
// Moves the tiles of dimension `from` to dimension `to`, as its minor tiles.
Tiling MoveTiles(const Tiling& tiling, int64_t from, int64_t to);
// Joins dimension `dim` and the next one, which are adjacent in a larger dimension.
Tiling MergeDimWithNext(const Tiling& tiling, int64_t dim);
// Splits a dimension into one with `tiles` tiles, and one with the rest. Returns nullopt if the axes do not divide so.
std::optional<Tiling> SplitDim(const Tiling& tiling, int64_t dim, int64_t tiles);
// Reverses the order of devices along the dimensions, so that a device that reverses its part has its part of the
// reversed array. Returns nullopt if the devices must be listed and are too many.
std::optional<Tiling> Reverse(const Tiling& tiling, absl::Span<const int64_t> dims);
// Returns the first other dimension that can have the tiles of dimension `dim` besides its own, in equal parts.
std::optional<int64_t> DimToMoveTilesTo(absl::Span<const int64_t> sizes, const Tiling& tiling, int64_t dim);

// ---- parts ----

// Returns the sizes of a part: of the first, if they differ; or of the whole whose parts have `sizes`.
std::vector<int64_t> TileSizes(const Tiling& tiling, absl::Span<const int64_t> sizes);
std::vector<int64_t> UntileSizes(const Tiling& tiling, absl::Span<const int64_t> sizes);
// Returns where the part of a device begins and ends; both within the array. Returns nullopt if the device has none.
struct TileBounds {
  std::vector<int64_t> offset;
  std::vector<int64_t> limit;
};
std::optional<TileBounds> BoundsOf(const Tiling& tiling, absl::Span<const int64_t> sizes, int64_t device);

// ---- resharding ----

// Returns a tiling with as many tiles as `target` in each dimension, in which each device's part lies within its part
// of `partial`: slicing leads to it, one permute leads from it to `target`. Of the axes that `partial` replicates those
// of `target` come first. Returns nullopt if there is none.
std::optional<Tiling> FinerCompatible(const Tiling& partial, const Tiling& target);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_TILING_ARITHMETIC_H_
