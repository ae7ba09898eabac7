// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/sharding_proto.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/sharding/reduction_note.h"
#include "ir/sharding/replica_groups.h"
#include "ir/sharding/sharding.h"

namespace hlokit {
namespace {

using google::protobuf::RepeatedField;
using google::protobuf::RepeatedPtrField;

constexpr int64_t kMaxTupleLeaves = int64_t{1} << 20;  // of one sharding in a message

absl::Status Bad(std::string_view what) { return absl::InvalidArgumentError(StrCat("sharding: ", what)); }

template <typename T>
std::vector<int64_t> ToVector(const RepeatedField<T>& field) {
  return {field.begin(), field.end()};
}
template <typename T>
void AddInts(absl::Span<const int64_t> values, RepeatedField<T>* field) {
  for (int64_t v : values) field->Add(static_cast<T>(v));
}

// ---- writing ----

xla::OpSharding::Type TypeOf(SubgroupType type) {
  switch (type) {
    case SubgroupType::kMaximal:
      return xla::OpSharding::MAXIMAL;
    case SubgroupType::kManual:
      return xla::OpSharding::MANUAL;
    case SubgroupType::kUnreduced:
      return xla::OpSharding::UNREDUCED;
    case SubgroupType::kReplicated:
      return xla::OpSharding::REPLICATED;
  }
  return xla::OpSharding::REPLICATED;
}

void WriteTiles(const ShardingLeaf& leaf, xla::OpSharding* out) {
  AddInts(leaf.tiles.dims, out->mutable_tile_assignment_dimensions());
  if (leaf.tiles.is_iota()) {
    AddInts(leaf.tiles.iota.reshape, out->mutable_iota_reshape_dims());
    AddInts(leaf.tiles.iota.perm, out->mutable_iota_transpose_perm());
  } else {
    AddInts(leaf.tiles.devices, out->mutable_tile_assignment_devices());
  }
  if (leaf.subgroups.size() == 1 && leaf.subgroups[0] == SubgroupType::kReplicated) {
    out->set_replicate_on_last_tile_dim(true);
    return;
  }
  for (SubgroupType type : leaf.subgroups) out->add_last_tile_dims(TypeOf(type));
}

void WriteAxes(absl::Span<const AxisRef> axes, RepeatedPtrField<xla::AxisRefProto>* out) {
  for (const AxisRef& axis : axes) {
    xla::AxisRefProto* to = out->Add();
    to->set_mesh_axis_index(axis.axis);
    if (axis.whole()) continue;
    to->mutable_sub_axis_info()->set_pre_size(axis.pre_size);
    to->mutable_sub_axis_info()->set_size(axis.size);
  }
}

void WriteMesh(const Context& context, const Mesh& mesh, xla::MeshProto* out) {
  for (int64_t axis = 0; axis < mesh.rank(); ++axis) {
    xla::MeshProto::MeshAxis* to = out->add_axes();
    to->set_name(std::string(context.str(mesh.names[static_cast<size_t>(axis)])));
    to->set_size(mesh.axis_size(axis));
  }
  const TileAssignment& devices = mesh.devices;
  if (!devices.is_iota()) {
    AddInts(devices.devices, out->mutable_device_ids());
  } else if (!devices.iota.IsIdentity()) {
    AddInts(devices.iota.reshape, out->mutable_iota_transform()->mutable_reshape_dims());
    AddInts(devices.iota.perm, out->mutable_iota_transform()->mutable_transpose_perm());
  }
}

void WriteNamed(const Context& context, const ShardingLeaf& leaf, xla::NamedShardingProto* out) {
  WriteMesh(context, leaf.mesh, out->mutable_mesh());
  for (const DimSharding& dim : leaf.dims) {
    xla::NamedShardingProto::DimensionSharding* to = out->add_dim_shardings();
    WriteAxes(dim.axes, to->mutable_axes());
    to->set_is_closed(!dim.open);
  }
  WriteAxes(leaf.replicated, out->mutable_replicated_axes());
  WriteAxes(leaf.unreduced, out->mutable_unreduced_axes());
  WriteAxes(leaf.manual, out->mutable_manual_axes());
  out->set_reduction_op(static_cast<xla::NamedShardingProto::ReductionOpProto>(leaf.reduction));
}

void WriteLeaf(const Context& context, const ShardingLeaf& leaf, const WriteMetadataFn& write_metadata,
               xla::OpSharding* out) {
  if (leaf.over_mesh) {
    WriteNamed(context, leaf, out->mutable_named_sharding());
    for (MetadataId id : leaf.metadata) write_metadata(id, out->mutable_named_sharding()->add_metadata());
    return;
  }
  switch (leaf.kind) {
    case ShardingKind::kReplicated:
      out->set_type(xla::OpSharding::REPLICATED);
      break;
    case ShardingKind::kManual:
      out->set_type(xla::OpSharding::MANUAL);
      break;
    case ShardingKind::kUnknown:
      out->set_type(xla::OpSharding::UNKNOWN);
      break;
    case ShardingKind::kUnreduced:
      out->set_type(xla::OpSharding::UNREDUCED);
      break;
    case ShardingKind::kMaximal:
      out->set_type(xla::OpSharding::MAXIMAL);
      out->add_tile_assignment_dimensions(1);
      out->add_tile_assignment_devices(leaf.device);
      break;
    case ShardingKind::kTiled:
      out->set_type(xla::OpSharding::OTHER);
      WriteTiles(leaf, out);
      break;
    case ShardingKind::kNamed:
      WriteNamed(context, leaf, out->mutable_named_sharding());
      for (MetadataId id : leaf.metadata) write_metadata(id, out->mutable_named_sharding()->add_metadata());
      return;
  }
  for (MetadataId id : leaf.metadata) write_metadata(id, out->add_metadata());
  if (leaf.reduction != ReductionOp::kSum) {
    xla::OpMetadata* note = out->add_metadata();
    note->set_op_type(std::string(kReductionNote));
    note->set_op_name(std::string(kReductionNames[static_cast<size_t>(leaf.reduction)]));
  }
  if (leaf.group == ShardGroup::kNone) return;
  out->set_is_shard_group(true);
  out->set_shard_group_id(leaf.group_id);
  out->set_shard_group_type(leaf.group == ShardGroup::kLike ? xla::OpSharding::LIKE : xla::OpSharding::AS);
}

// ---- reading ----

std::optional<SubgroupType> SubgroupOf(int type) {
  switch (type) {
    case xla::OpSharding::MAXIMAL:
      return SubgroupType::kMaximal;
    case xla::OpSharding::MANUAL:
      return SubgroupType::kManual;
    case xla::OpSharding::UNREDUCED:
      return SubgroupType::kUnreduced;
    case xla::OpSharding::REPLICATED:
      return SubgroupType::kReplicated;
    default:
      return std::nullopt;
  }
}

// Returns an error unless it is a permutation of as many devices as `count`.
absl::Status ReadIota(std::vector<int64_t> reshape, std::vector<int64_t> perm, int64_t count,
                      IotaTileAssignment* iota) {
  *iota = {std::move(reshape), std::move(perm)};
  if (!iota->Valid()) return Bad("expected a permutation of the dimensions of the iota");
  const std::optional<int64_t> devices = DeviceCount(iota->reshape);
  if (devices != count) {
    return Bad(StrCat("expected as many devices as tiles: ", count, " tiles, but an iota of ", devices.value_or(0)));
  }
  iota->Canonicalize();
  return absl::OkStatus();
}

absl::Status ReadTiles(const xla::OpSharding& proto, ShardingLeaf* leaf) {
  leaf->kind = ShardingKind::kTiled;
  leaf->tiles.dims = ToVector(proto.tile_assignment_dimensions());
  const std::optional<int64_t> count = DeviceCount(leaf->tiles.dims);
  if (!count || leaf->tiles.dims.empty()) return Bad("the dimensions of the tiles must be positive");
  if (proto.iota_reshape_dims_size() != 0) {
    absl::Status status =
        ReadIota(ToVector(proto.iota_reshape_dims()), ToVector(proto.iota_transpose_perm()), *count, &leaf->tiles.iota);
    if (!status.ok()) return status;
  } else {
    leaf->tiles.devices = ToVector(proto.tile_assignment_devices());
    if (leaf->tiles.devices.size() != static_cast<uint64_t>(*count)) {
      return Bad(StrCat("expected as many devices as tiles: ", *count, " tiles, but ", leaf->tiles.devices.size(),
                        " devices"));
    }
  }
  if (*count == 1) {
    leaf->kind = ShardingKind::kReplicated;
    leaf->tiles = {};
    return absl::OkStatus();
  }
  if (proto.replicate_on_last_tile_dim()) leaf->subgroups.push_back(SubgroupType::kReplicated);
  for (int type : proto.last_tile_dims()) {
    const std::optional<SubgroupType> subgroup = SubgroupOf(type);
    if (!subgroup) return Bad(StrCat("unknown type ", type, " in last_tile_dims"));
    leaf->subgroups.push_back(*subgroup);
  }
  if (std::optional<std::string> error = NormalizeTiled(leaf)) return Bad(*error);
  return absl::OkStatus();
}

std::vector<AxisRef> ReadAxes(const RepeatedPtrField<xla::AxisRefProto>& protos) {
  std::vector<AxisRef> axes;
  for (const xla::AxisRefProto& proto : protos) {
    AxisRef& axis = axes.emplace_back();
    axis.axis = proto.mesh_axis_index();
    if (!proto.has_sub_axis_info()) continue;
    axis.pre_size = proto.sub_axis_info().pre_size();
    axis.size = proto.sub_axis_info().size();
    if (axis.pre_size < 1 || axis.size < 2) axis.axis = -1;  // which the check of the axes refuses
  }
  return axes;
}

absl::Status ReadMesh(const xla::MeshProto& proto, Context* context, Mesh* mesh) {
  for (const xla::MeshProto::MeshAxis& axis : proto.axes()) {
    mesh->names.push_back(context->strings.Intern(axis.name()));
    mesh->devices.dims.push_back(axis.size());
  }
  if (proto.has_iota_transform()) {
    const std::optional<int64_t> count = DeviceCount(mesh->devices.dims);
    if (!count) return Bad("the axis sizes of the mesh must be positive");
    return ReadIota(ToVector(proto.iota_transform().reshape_dims()), ToVector(proto.iota_transform().transpose_perm()),
                    *count, &mesh->devices.iota);
  }
  mesh->devices.devices = ToVector(proto.device_ids());
  if (!mesh->devices.devices.empty()) return absl::OkStatus();
  if (const std::optional<int64_t> count = DeviceCount(mesh->devices.dims)) mesh->devices.iota = {{*count}, {0}};
  return absl::OkStatus();
}

absl::Status ReadNamed(const xla::NamedShardingProto& proto, const ReadMetadataFn& read_metadata, Context* context,
                       ShardingLeaf* leaf) {
  leaf->kind = ShardingKind::kNamed;
  if (absl::Status status = ReadMesh(proto.mesh(), context, &leaf->mesh); !status.ok()) return status;
  for (const xla::NamedShardingProto::DimensionSharding& dim : proto.dim_shardings()) {
    leaf->dims.push_back({ReadAxes(dim.axes()), !dim.is_closed()});
  }
  leaf->replicated = ReadAxes(proto.replicated_axes());
  leaf->unreduced = ReadAxes(proto.unreduced_axes());
  leaf->manual = ReadAxes(proto.manual_axes());
  if (proto.reduction_op() < 0 || proto.reduction_op() > 2) {
    return Bad(StrCat("unknown reduction ", static_cast<int>(proto.reduction_op())));
  }
  leaf->reduction = static_cast<ReductionOp>(proto.reduction_op());
  for (const xla::OpMetadata& metadata : proto.metadata()) leaf->metadata.push_back(read_metadata(metadata));
  if (std::optional<std::string> error = NormalizeNamed(*context, leaf)) return Bad(*error);
  return absl::OkStatus();
}

absl::StatusOr<ListId> ReadLeaf(const xla::OpSharding& proto, const ReadMetadataFn& read_metadata, Context* context) {
  ShardingLeaf leaf;
  if (proto.has_named_sharding()) {
    if (absl::Status status = ReadNamed(proto.named_sharding(), read_metadata, context, &leaf); !status.ok()) {
      return status;
    }
    return EncodeLeaf(context, leaf);
  }
  switch (proto.type()) {
    case xla::OpSharding::REPLICATED:
      leaf.kind = ShardingKind::kReplicated;
      break;
    case xla::OpSharding::MANUAL:
      leaf.kind = ShardingKind::kManual;
      break;
    case xla::OpSharding::UNKNOWN:
      leaf.kind = ShardingKind::kUnknown;
      break;
    case xla::OpSharding::UNREDUCED:
      leaf.kind = ShardingKind::kUnreduced;
      break;
    case xla::OpSharding::MAXIMAL:
      leaf.kind = ShardingKind::kMaximal;
      if (proto.tile_assignment_devices_size() == 1) {
        leaf.device = proto.tile_assignment_devices(0);
      } else if (proto.iota_reshape_dims_size() == 0 || proto.tile_assignment_devices_size() != 0) {
        return Bad("expected one device in a maximal sharding");
      }
      break;
    case xla::OpSharding::OTHER:
      if (absl::Status status = ReadTiles(proto, &leaf); !status.ok()) return status;
      break;
    case xla::OpSharding::TUPLE:
      return Bad("the elements of a tuple are listed flat");
    default:
      return Bad(StrCat("unknown type ", static_cast<int>(proto.type())));
  }
  for (const xla::OpMetadata& metadata : proto.metadata()) {
    const auto name = std::find(std::begin(kReductionNames) + 1, std::end(kReductionNames), metadata.op_name());
    if (metadata.op_type() == kReductionNote && name != std::end(kReductionNames)) {
      leaf.reduction = static_cast<ReductionOp>(name - std::begin(kReductionNames));
      continue;
    }
    leaf.metadata.push_back(read_metadata(metadata));
  }
  if (proto.is_shard_group()) {
    leaf.group = proto.shard_group_type() == xla::OpSharding::LIKE ? ShardGroup::kLike : ShardGroup::kAs;
    leaf.group_id = proto.shard_group_id();
  }
  NoteReduction(context, &leaf);
  return EncodeLeaf(context, leaf);
}

ListId Groups(Context* context, const RepeatedPtrField<xla::ReplicaGroup>& protos) {
  ReplicaGroups groups;
  for (const xla::ReplicaGroup& group : protos) groups.groups.push_back(ToVector(group.replica_ids()));
  return EncodeReplicaGroups(context, groups);
}

absl::StatusOr<ListId> ReadIotaGroups(const xla::IotaReplicaGroupListProto& proto, Context* context) {
  ReplicaGroups groups;
  groups.kind = ReplicaGroups::Kind::kIota;
  groups.tiles.dims = {proto.num_replica_groups(), proto.num_devices_per_group()};
  const std::optional<int64_t> count = DeviceCount(groups.tiles.dims);
  if (!count) {
    return absl::InvalidArgumentError("replica groups: expected a positive number of groups and of devices in each");
  }
  absl::Status status =
      ReadIota(ToVector(proto.iota_reshape_dims()), ToVector(proto.iota_transpose_perm()), *count, &groups.tiles.iota);
  if (!status.ok()) return status;
  return EncodeReplicaGroups(context, groups);
}

}  // namespace

absl::Status WriteSharding(const Context& context, ListId id, const WriteMetadataFn& write_metadata,
                           xla::OpSharding* out) {
  const Sharding sharding = DecodeSharding(context, id);
  if (!sharding.is_tuple) {
    WriteLeaf(context, sharding.leaf(), write_metadata, out);
    return absl::OkStatus();
  }
  out->set_type(xla::OpSharding::TUPLE);
  if (sharding.leaf_count() > kMaxTupleLeaves) {
    return absl::ResourceExhaustedError("the sharding of a tuple has too many leaves for a message");
  }
  for (const Sharding::Run& run : sharding.runs) {
    for (int64_t k = 0; k < run.count; ++k) WriteLeaf(context, run.leaf, write_metadata, out->add_tuple_shardings());
  }
  return absl::OkStatus();
}

absl::StatusOr<ListId> ReadSharding(const xla::OpSharding& proto, const ReadMetadataFn& read_metadata,
                                    Context* context) {
  if (proto.type() != xla::OpSharding::TUPLE || proto.has_named_sharding()) {
    return ReadLeaf(proto, read_metadata, context);
  }
  std::vector<ListId> leaves;
  leaves.reserve(static_cast<size_t>(proto.tuple_shardings_size()));
  for (const xla::OpSharding& leaf : proto.tuple_shardings()) {
    absl::StatusOr<ListId> id = ReadLeaf(leaf, read_metadata, context);
    if (!id.ok()) return id.status();
    leaves.push_back(*id);
  }
  return EncodeTupleSharding(context, leaves);
}

void WriteReplicaGroups(const Context& context, ListId id, xla::HloInstructionProto* out) {
  const ReplicaGroups groups = DecodeReplicaGroups(context, id);
  switch (groups.kind) {
    case ReplicaGroups::Kind::kList: {
      xla::CollectiveDeviceListProto* list = out->mutable_collective_device_list();
      for (const std::vector<int64_t>& group : groups.groups) {
        AddInts(group, list->add_replica_groups()->mutable_replica_ids());
      }
      return;
    }
    case ReplicaGroups::Kind::kIota: {
      xla::IotaReplicaGroupListProto* iota = out->mutable_iota_collective_device_list();
      iota->set_num_replica_groups(groups.tiles.dims[0]);
      iota->set_num_devices_per_group(groups.tiles.dims[1]);
      AddInts(groups.tiles.iota.reshape, iota->mutable_iota_reshape_dims());
      AddInts(groups.tiles.iota.perm, iota->mutable_iota_transpose_perm());
      return;
    }
    case ReplicaGroups::Kind::kMesh: {
      xla::MeshAxesReplicaGroupListProto* mesh = out->mutable_mesh_axes_replica_group_list();
      WriteMesh(context, groups.mesh, mesh->mutable_mesh());
      WriteAxes(groups.axes, mesh->mutable_axes());
      return;
    }
  }
}

absl::StatusOr<ListId> ReadReplicaGroups(const xla::HloInstructionProto& proto, Context* context) {
  if (proto.has_iota_collective_device_list()) return ReadIotaGroups(proto.iota_collective_device_list(), context);
  if (proto.has_mesh_axes_replica_group_list()) {
    ReplicaGroups groups;
    groups.kind = ReplicaGroups::Kind::kMesh;
    const xla::MeshAxesReplicaGroupListProto& mesh = proto.mesh_axes_replica_group_list();
    if (absl::Status status = ReadMesh(mesh.mesh(), context, &groups.mesh); !status.ok()) return status;
    groups.axes = ReadAxes(mesh.axes());
    if (std::optional<std::string> error = CheckMeshGroups(*context, &groups)) {
      return absl::InvalidArgumentError(StrCat("replica groups: ", *error));
    }
    return EncodeReplicaGroups(context, groups);
  }
  if (!proto.has_collective_device_list()) return Groups(context, proto.replica_groups());
  // In older files the iota form is field 2 of the list.
  const google::protobuf::UnknownFieldSet& others =
      proto.collective_device_list().GetReflection()->GetUnknownFields(proto.collective_device_list());
  for (int k = 0; k < others.field_count(); ++k) {
    const google::protobuf::UnknownField& field = others.field(k);
    if (field.number() != 2 || field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) continue;
    xla::IotaReplicaGroupListProto iota;
    if (!iota.ParseFromString(field.length_delimited())) {
      return absl::InvalidArgumentError("replica groups: field 2 is no iota");
    }
    return ReadIotaGroups(iota, context);
  }
  return Groups(context, proto.collective_device_list().replica_groups());
}

}  // namespace hlokit
