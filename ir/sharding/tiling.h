// SPDX-License-Identifier: Apache-2.0
// Shardings of one array as lists of device axes (device_axes.h), in which propagation and partitioning calculate.
// Every text form of a sharding has one: a tile assignment, a mesh with named axes, a list of devices. Lists of devices
// are never written out for assignments with a pattern, whatever their size.
#ifndef HLOKIT_IR_SHARDING_TILING_H_
#define HLOKIT_IR_SHARDING_TILING_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/sharding/device_axes.h"
#include "ir/sharding/sharding.h"

namespace hlokit {

struct Tiling {
  ShardingKind kind = ShardingKind::kReplicated;  // never kNamed
  ReductionOp reduction = ReductionOp::kSum;
  ShardGroup group = ShardGroup::kNone;
  int64_t group_id = 0;
  int64_t device = 0;  // maximal

  // Tiled: the axes of each dimension and of each subgroup. Axes in none of the lists are replicated. At least one
  // dimension or subgroup has axes.
  int64_t device_count = 0;
  std::vector<int64_t> order;  // the device at each position; empty: the position itself
  std::vector<AxisList> dims;
  AxisList maximal, manual, unreduced;
  AxisList replicated;  // those that the text calls replicated: others must not use them. Not part of equality

  std::vector<MetadataId> metadata;

  static Tiling Of(ShardingKind kind) {
    Tiling tiling;
    tiling.kind = kind;
    return tiling;
  }
  bool tiled() const { return kind == ShardingKind::kTiled; }
  bool replicated_everywhere() const { return kind == ShardingKind::kReplicated; }
  bool has_subgroups() const { return !maximal.empty() || !manual.empty() || !unreduced.empty(); }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  // Returns the number of tiles of a dimension, or of all; one unless tiled.
  int64_t tiles(int64_t dim) const { return tiled() ? SizeOf(dims[static_cast<size_t>(dim)]) : 1; }
  int64_t tiles() const;
  // Returns the axes that neither tile the data nor belong to a subgroup.
  AxisList FreeAxes() const;
  bool IsPartiallyReplicated() const { return tiled() && !FreeAxes().empty(); }
  int64_t DeviceAt(int64_t position) const { return order.empty() ? position : order[static_cast<size_t>(position)]; }
  // Becomes replicated, manual or unreduced if no dimension is tiled and all devices have that in common.
  void Normalize();

  // Ignores metadata, explicitly replicated axes, and the order of devices within equal parts.
  friend bool operator==(const Tiling& a, const Tiling& b);
};

// Returns the tiling of a leaf for an array of rank `rank`. Named leaves that do not have all dimensions get the
// others untiled. Returns nullopt if devices must be listed and are more than kMaxExpandedDevices. Requires: the leaf
// is canonical.
std::optional<Tiling> TilingOf(const ShardingLeaf& leaf, int64_t rank);

// Returns the canonical leaf with a tile assignment, whose devices are an iota where they can be.
ShardingLeaf LeafOf(const Tiling& tiling);
// Returns the leaf over the axes of `mesh`; nullopt if one of the axes is no part of those of the mesh.
std::optional<ShardingLeaf> NamedLeafOf(const Tiling& tiling, const Mesh& mesh);
// Returns the leaf over a mesh made of the axes of the tiling, 'axis_0', 'axis_1', …, major first.
ShardingLeaf NamedLeafOf(Context* context, const Tiling& tiling);

// Returns true if both shardings put the same parts on the same devices, whatever their spelling and metadata. A leaf
// that is no tuple holds for all.
bool SameSharding(const Context& context, ListId a, ListId b);

// Returns both tilings with axes of one order of devices; nullopt if none is known in which both have axes. Requires:
// both are tiled.
std::optional<std::pair<Tiling, Tiling>> InOneOrder(const Tiling& a, const Tiling& b);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_TILING_H_
