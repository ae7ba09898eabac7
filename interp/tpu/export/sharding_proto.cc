// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/export/sharding_proto.h"

#include <algorithm>
#include <string>
#include <vector>

#include "interp/tpu/report/ascii.h"
#include "ir/sharding/replica_groups.h"
#include "ir/sharding/sharding.h"

namespace hlokit::tpu {

namespace {

// Longer device lists are not expanded.
constexpr int64_t kMaxDevices = int64_t{1} << 16;

enum OpShardingType {
  kReplicated = 0,
  kMaximal = 1,
  kTuple = 2,
  kOther = 3,
  kManual = 4,
  kUnknown = 5,
  kUnreduced = 6
};

int TypeOf(SubgroupType type) {
  switch (type) {
    case SubgroupType::kMaximal:
      return kMaximal;
    case SubgroupType::kManual:
      return kManual;
    case SubgroupType::kUnreduced:
      return kUnreduced;
    case SubgroupType::kReplicated:
      return kReplicated;
  }
  return kReplicated;
}

void WriteTiles(const ShardingLeaf& leaf, xla::OpSharding* out) {
  for (int64_t d : leaf.tiles.dims) out->add_tile_assignment_dimensions(d);
  if (leaf.tiles.is_iota()) {
    for (int64_t d : leaf.tiles.iota.reshape) out->add_iota_reshape_dims(d);
    for (int64_t d : leaf.tiles.iota.perm) out->add_iota_transpose_perm(static_cast<int>(d));
  } else {
    for (int64_t d : leaf.tiles.devices) out->add_tile_assignment_devices(d);
  }
  if (leaf.subgroups.size() == 1 && leaf.subgroups[0] == SubgroupType::kReplicated) {
    out->set_replicate_on_last_tile_dim(true);
    return;
  }
  for (SubgroupType type : leaf.subgroups) out->add_last_tile_dims(TypeOf(type));
}

void WriteAxis(const AxisRef& axis, xla::AxisRefProto* out) {
  out->set_mesh_axis_index(axis.axis);
  if (axis.whole()) return;
  out->mutable_sub_axis_info()->set_pre_size(axis.pre_size);
  out->mutable_sub_axis_info()->set_size(axis.size);
}

void WriteNamed(const Context& context, const ShardingLeaf& leaf, xla::NamedShardingProto* out) {
  for (int64_t axis = 0; axis < leaf.mesh.rank(); ++axis) {
    xla::MeshProto::Axis* to = out->mutable_mesh()->add_axes();
    to->set_name(Ascii(context.str(leaf.mesh.names[axis])));
    to->set_size(leaf.mesh.axis_size(axis));
  }
  const TileAssignment& devices = leaf.mesh.devices;
  if (!(devices.is_iota() && devices.iota.IsIdentity())) {
    const int64_t count = std::min(leaf.mesh.device_count(), kMaxDevices);
    for (int64_t k = 0; k < count; ++k) out->mutable_mesh()->add_device_ids(devices.At(k));
  }
  for (const DimSharding& dim : leaf.dims) {
    xla::NamedShardingProto::DimensionSharding* to = out->add_dim_shardings();
    for (const AxisRef& axis : dim.axes) WriteAxis(axis, to->add_axes());
    to->set_is_closed(!dim.open);
  }
  for (const AxisRef& axis : leaf.replicated) WriteAxis(axis, out->add_replicated_axes());
  for (const AxisRef& axis : leaf.unreduced) WriteAxis(axis, out->add_unreduced_axes());
}

void WriteLeaf(const Context& context, const ShardingLeaf& leaf, xla::OpSharding* out) {
  switch (leaf.kind) {
    case ShardingKind::kReplicated:
      out->set_type(kReplicated);
      break;
    case ShardingKind::kManual:
      out->set_type(kManual);
      break;
    case ShardingKind::kUnknown:
      out->set_type(kUnknown);
      break;
    case ShardingKind::kUnreduced:
      out->set_type(kUnreduced);
      break;
    case ShardingKind::kMaximal:
      out->set_type(kMaximal);
      out->add_tile_assignment_dimensions(1);
      out->add_tile_assignment_devices(leaf.device);
      break;
    case ShardingKind::kTiled:
      out->set_type(kOther);
      WriteTiles(leaf, out);
      break;
    case ShardingKind::kNamed:
      WriteNamed(context, leaf, out->mutable_named_sharding());
      break;
  }
  if (leaf.group == ShardGroup::kNone) return;
  out->set_is_shard_group(true);
  out->set_shard_group_id(leaf.group_id);
  out->set_shard_group_type(leaf.group == ShardGroup::kLike ? 1 : 0);
}

void WriteGroups(const std::vector<std::vector<int64_t>>& groups, xla::HloInstructionProto* out) {
  for (const std::vector<int64_t>& group : groups) {
    xla::ReplicaGroup* old = out->add_replica_groups();
    xla::ReplicaGroup* now = out->mutable_collective_device_list()->add_replica_groups();
    for (int64_t device : group) {
      old->add_replica_ids(device);
      now->add_replica_ids(device);
    }
  }
}

}  // namespace

void WriteSharding(const Context& context, ListId id, xla::OpSharding* out) {
  const Sharding sharding = DecodeSharding(context, id);
  if (!sharding.is_tuple) {
    WriteLeaf(context, sharding.leaf(), out);
    return;
  }
  out->set_type(kTuple);
  int64_t left = kMaxDevices;
  for (const Sharding::Run& run : sharding.runs) {
    for (int64_t k = 0; k < run.count && left > 0; ++k, --left)
      WriteLeaf(context, run.leaf, out->add_tuple_shardings());
  }
}

void WriteReplicaGroups(const Context& context, ListId id, xla::HloInstructionProto* out) {
  const ReplicaGroups groups = DecodeReplicaGroups(context, id);
  if (groups.kind == ReplicaGroups::Kind::kList) {
    out->mutable_collective_device_list();
    WriteGroups(groups.groups, out);
    return;
  }
  if (groups.kind == ReplicaGroups::Kind::kIota && groups.tiles.is_iota() && groups.tiles.rank() == 2) {
    xla::CollectiveDeviceListProto::Iota* iota =
        out->mutable_collective_device_list()->mutable_iota_replica_group_list();
    iota->set_num_replica_groups(groups.tiles.dims[0]);
    iota->set_num_devices_per_group(groups.tiles.dims[1]);
    for (int64_t d : groups.tiles.iota.reshape) iota->add_iota_reshape_dims(d);
    for (int64_t d : groups.tiles.iota.perm) iota->add_iota_transpose_perm(static_cast<int>(d));
    return;
  }
  absl::StatusOr<std::vector<std::vector<int64_t>>> list = ExpandReplicaGroups(context, id, kMaxDevices);
  if (list.ok()) WriteGroups(*list, out);
}

}  // namespace hlokit::tpu
