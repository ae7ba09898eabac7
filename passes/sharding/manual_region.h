// SPDX-License-Identifier: Apache-2.0
// A part of a program that is written for one device of those along some axes: shard_map of JAX.
#ifndef HLOKIT_PASSES_SHARDING_MANUAL_REGION_H_
#define HLOKIT_PASSES_SHARDING_MANUAL_REGION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/sharding/tiling.h"

namespace hlokit::sharding {

struct ManualRegion {
  AxisList axes;  // major first; none: no such part
  int64_t device_count = 0;
  std::vector<int64_t> order;  // of the devices, as in Tiling
  bool all = false;            // whatever the axes are called

  static ManualRegion All() {
    ManualRegion region;
    region.all = true;
    return region;
  }
  bool empty() const { return !IsAll() && axes.empty(); }
  bool IsAll() const { return all || (device_count > 0 && SizeOf(axes) == device_count); }
  friend bool operator==(const ManualRegion&, const ManualRegion&) = default;
};

// Returns the region along the axes of both; nullopt if their devices differ.
std::optional<ManualRegion> Union(const ManualRegion& outer, const ManualRegion& inner);

// Returns what a sharding that names no manual axes, or not all, says of an array in the region.
Tiling InRegion(Tiling tiling, int64_t rank, const ManualRegion& region);

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_MANUAL_REGION_H_
