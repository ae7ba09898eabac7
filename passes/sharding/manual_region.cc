// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/manual_region.h"

#include <algorithm>
#include <utility>

namespace hlokit::sharding {
namespace {

// Returns the axes of both lists, major first.
std::optional<AxisList> Joined(const AxisList& a, const AxisList& b, int64_t count) {
  std::optional<AxisList> added = Subtract(b, a, count);
  if (!added) return std::nullopt;
  added->insert(added->end(), a.begin(), a.end());
  std::sort(added->begin(), added->end(), [](const DeviceAxis& x, const DeviceAxis& y) { return x.stride > y.stride; });
  AxisList joined;
  AppendAxes(&joined, *added);
  return joined;
}

}  // namespace

std::optional<ManualRegion> Union(const ManualRegion& outer, const ManualRegion& inner) {
  if (outer.IsAll() || inner.empty()) return outer;
  if (inner.IsAll() || outer.empty()) return inner;
  if (outer.device_count != inner.device_count || outer.order != inner.order) return std::nullopt;
  std::optional<AxisList> axes = Joined(outer.axes, inner.axes, outer.device_count);
  if (!axes) return std::nullopt;
  return ManualRegion{*std::move(axes), outer.device_count, outer.order};
}

Tiling InRegion(Tiling tiling, int64_t rank, const ManualRegion& region) {
  if (region.empty() || tiling.kind == ShardingKind::kManual) return tiling;
  Tiling result;
  result.metadata = tiling.metadata;
  result.group = tiling.group;
  result.group_id = tiling.group_id;
  if (region.IsAll()) {
    result.kind = ShardingKind::kManual;
    return result;
  }
  result.kind = ShardingKind::kTiled;
  result.device_count = region.device_count;
  result.order = region.order;
  result.manual = region.axes;
  result.dims.resize(static_cast<size_t>(std::max<int64_t>(rank, 0)));
  if (tiling.tiled() && tiling.order != region.order) {
    Tiling frame = result;
    if (const auto both = InOneOrder(frame, tiling)) {
      if (both->first.order == region.order) tiling = both->second;
    }
  }
  if (tiling.tiled() && tiling.order == region.order && tiling.device_count == region.device_count) {
    // What is divided among the devices of the region is divided in the program around it.
    for (size_t d = 0; d < result.dims.size() && d < tiling.dims.size(); ++d) {
      result.dims[d] = Subtract(tiling.dims[d], region.axes, region.device_count).value_or(AxisList());
    }
    result.unreduced = Subtract(tiling.unreduced, region.axes, region.device_count).value_or(AxisList());
    result.reduction = tiling.reduction;
    if (std::optional<AxisList> manual = Joined(region.axes, tiling.manual, region.device_count)) {
      result.manual = *std::move(manual);
    }
  } else if (tiling.kind == ShardingKind::kUnreduced) {
    result.unreduced = Complement({&region.axes}, region.device_count).value_or(AxisList());
    result.reduction = tiling.reduction;
  }
  result.Normalize();
  return result;
}

}  // namespace hlokit::sharding
