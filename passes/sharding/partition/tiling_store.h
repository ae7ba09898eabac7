// SPDX-License-Identifier: Apache-2.0
// Interned tilings: equal ones are the same object, so that plans and values are memoized by pointers.
#ifndef HLOKIT_PASSES_SHARDING_PARTITION_TILING_STORE_H_
#define HLOKIT_PASSES_SHARDING_PARTITION_TILING_STORE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/sharding/tiling.h"
#include "ir/types/shape.h"

namespace hlokit::spmd {

// A tiling of a TilingStore.
using TilingRef = const Tiling*;

class TilingStore {
 public:
  // Returns the tiling in the form in which the partitioner calculates: without metadata, groups and the axes that the
  // text calls replicated; a value on one device, and one of unknown sharding, is replicated.
  TilingRef Intern(Tiling tiling);
  TilingRef Replicated() { return Intern(Tiling()); }

 private:
  absl::flat_hash_map<std::vector<int64_t>, std::unique_ptr<Tiling>> tilings_;
};

// Returns the sizes of the part of one device, padding included: equal on all devices.
std::vector<int64_t> LocalSizes(absl::Span<const int64_t> sizes, const Tiling& tiling);
// Returns the shape of the part, with the layout of the whole.
Shape LocalShape(ShapeTable* shapes, Shape whole, const Tiling& tiling);

// Returns a tiled tiling over the axes `dims`, with the devices and subgroups of `frame`, which is tiled; replicated if
// nothing is tiled.
Tiling WithDims(const Tiling& frame, std::vector<AxisList> dims);
// Returns the axes of the dimensions; empty lists for a tiling that is not tiled.
std::vector<AxisList> DimsOf(const Tiling& tiling, int64_t rank);

// Returns the position that differs from `position` only along `axes`, where it has this tile.
int64_t PositionWithTile(const AxisList& axes, int64_t position, int64_t tile);

inline std::vector<int64_t> ToVector(absl::Span<const int64_t> span) { return {span.begin(), span.end()}; }
inline int64_t CeilOfRatio(int64_t a, int64_t b) { return a == 0 ? 0 : (a - 1) / b + 1; }

}  // namespace hlokit::spmd

#endif  // HLOKIT_PASSES_SHARDING_PARTITION_TILING_STORE_H_
