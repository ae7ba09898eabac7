// SPDX-License-Identifier: Apache-2.0
// Operations among several devices. A pair of start and done is the synchronous operation, at the place of the start.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "ir/sharding/replica_groups.h"
#include "parser/stablehlo/export/exporter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

NodeId Exporter::ChannelOf(Instruction instruction, int64_t type) {
  const int64_t names[] = {n().strings().Intern("handle").value, n().strings().Intern("type").value};
  const NodeId values[] = {I64(std::max<int64_t>(instruction.int_attr(Attr::kChannelId, 0), 0)), I64(type)};
  return n().Make(NodeKind::kFields, "stablehlo.channel_handle", names, values);
}

absl::StatusOr<NodeId> Exporter::GroupsOf(Instruction instruction) {
  constexpr int64_t kMaxDevices = 1 << 20;
  const auto groups =
      ExpandReplicaGroups(module_.context(), AttrReader(instruction).list_id(Attr::kReplicaGroups), kMaxDevices);
  if (!groups.ok()) return Unsupported(instruction, "its replica groups");
  size_t width = 0;
  for (const auto& group : *groups) width = std::max(width, group.size());
  Ints flat;
  for (const auto& group : *groups) {
    flat.insert(flat.end(), group.begin(), group.end());
    flat.insert(flat.end(), width - group.size(), -1);
  }
  const int64_t sizes[] = {static_cast<int64_t>(groups->size()), static_cast<int64_t>(width)};
  return Elements64(flat, sizes);
}

// Groups, channel and kind of ids.
absl::Status Exporter::AddDevices(Instruction instruction, Attributes* attributes) {
  absl::StatusOr<NodeId> groups = GroupsOf(instruction);
  if (!groups.ok()) return groups.status();
  attributes->push_back({"replica_groups", *groups});
  if (instruction.int_attr(Attr::kChannelId, 0) > 0) {
    attributes->push_back({"channel_handle", ChannelOf(instruction, options_.as_xla ? 0 : 1)});
  }
  if (instruction.bool_attr(Attr::kUseGlobalDeviceIds)) {
    attributes->push_back({"use_global_device_ids", n().Make(NodeKind::kUnit)});
  }
  return absl::OkStatus();
}

// The types of the results of what a start begins: those of its done.
std::vector<NodeId> Exporter::StartedTypes(Instruction instruction) {
  std::vector<Instruction> users = instruction.users();
  for (size_t i = 0; i < users.size(); ++i) {
    const Instruction user = users[i];
    const Opcode opcode = user.opcode();
    if (opcode == Opcode::kAsyncUpdate) {
      for (Instruction next : user.users()) users.push_back(next);
      continue;
    }
    if (EndsOperation(opcode)) {
      return ResultTypes(user);
    }
  }
  return {};
}

Instruction Exporter::DoneOf(Instruction start) {
  std::vector<Instruction> users = start.users();
  while (users.size() == 1 && users[0].opcode() == Opcode::kAsyncUpdate && !users[0].is_root()) {
    users = users[0].users();
  }
  if (users.size() != 1 || users[0].operand_count() != 1) return {};
  const Opcode done = users[0].opcode();
  const bool known = EndsOperation(done);
  if (!known || start.id() == start.parent().root().id()) return {};
  if (start.opcode() != Opcode::kAsyncStart) return users[0];
  const Computation called = start.computation_attr(Attr::kCalls);
  return called.parameter_count() == start.operand_count() ? users[0] : Instruction();
}

absl::Status Exporter::DefineStart(Instruction instruction, OpKind kind, const Attributes& attributes) {
  const std::vector<NodeId> types = ResultTypes(DoneOf(instruction));
  for (NodeId type : types) {
    if (!type.valid()) return Unsupported(instruction, "its type");
  }
  const std::vector<mlir::RegionId> regions = frames_.back().regions;
  Frame frame;
  frame.region = mlir::RegionId(static_cast<uint32_t>(out_->regions.size()));
  frame.block = mlir::BlockId(static_cast<uint32_t>(out_->blocks.size()));
  out_->regions.push_back({});
  out_->blocks.push_back({});
  out_->blocks.back().region = frame.region;
  out_->regions.back().first = out_->regions.back().last = frame.block;
  const mlir::RegionId region = frame.region;
  const mlir::BlockId block = frame.block;
  std::vector<NodeId> inputs;
  for (Instruction operand : instruction.operands()) inputs.push_back(TypeOf(operand.shape()));
  frames_.push_back(std::move(frame));
  Values arguments;
  for (NodeId type : inputs) {
    if (!type.valid()) return Unsupported(instruction, "the type of an operand");
    arguments.push_back(NewArgument(block, type));
  }
  Emit(OpKind::kStablehloReturn, Emit(kind, arguments, attributes, types, regions), {}, {});
  frames_.pop_back();
  Attributes kept;
  if (instruction.opcode() == Opcode::kCopyStart) {
    AddKept(instruction, {Attr::kCrossProgramPrefetchIndex}, &kept);
  }
  return EmitStart(instruction, region, kept);
}

absl::Status Exporter::EmitStart(Instruction instruction, mlir::RegionId region, const Attributes& kept) {
  const std::vector<NodeId> types = ResultTypes(DoneOf(instruction));
  for (NodeId type : types) {
    if (!type.valid()) return Unsupported(instruction, "its type");
    if (n().kind(type) != NodeKind::kTensorType) return Unsupported(instruction, "a future of more than arrays");
  }
  Attributes discardable = Discardable(instruction);
  discardable.insert(discardable.end(), kept.begin(), kept.end());
  const auto same = [](const NamedAttribute& attribute) { return attribute.name == "xla_shape"; };
  if (std::none_of(discardable.begin(), discardable.end(), same)) {
    discardable.push_back({"xla_shape", n().String(ToString(instruction.shape()))});
  }
  const uint32_t id = instruction.id().value;
  values_[id] =
      Emit(OpKind::kStablehloAsyncStart, OperandsOf(instruction), {}, {n().Make(NodeKind::kFutureType, "", {}, types)},
           {region}, discardable, LocationOf(instruction))[0];
  elements_[id].clear();
  futures_[id] = 1;
  return absl::OkStatus();
}

absl::Status Exporter::DefineCollective(Instruction instruction, OpKind kind, const Attributes& attributes) {
  const Opcode opcode = instruction.opcode();
  const bool starts = HasTrait(opcode, kCollective) && HasTrait(opcode, kStartsAsync);
  if (!starts) return Define(instruction, kind, OperandsOf(instruction), attributes);
  if (DoneOf(instruction).valid()) return DefineStart(instruction, kind, attributes);
  const std::vector<NodeId> types = StartedTypes(instruction);
  if (types.empty()) return Unsupported(instruction, "it is never done");
  return DefineAs(instruction, kind, OperandsOf(instruction), attributes, types);
}

absl::Status Exporter::ExportAllGather(Instruction instruction) {
  Attributes attributes = {{"all_gather_dim", DimensionOf(instruction)}};
  if (absl::Status status = AddDevices(instruction, &attributes); !status.ok()) return status;
  return DefineCollective(instruction, OpKind::kStablehloAllGather, attributes);
}

absl::Status Exporter::ExportAllReduce(Instruction instruction) {
  Attributes attributes;
  if (absl::Status status = AddDevices(instruction, &attributes); !status.ok()) return status;
  return DefineCollective(instruction, OpKind::kStablehloAllReduce, attributes);
}

absl::Status Exporter::ExportReduceScatter(Instruction instruction) {
  if (instruction.operand_count() != 1) return Unsupported(instruction, "several operands");
  Attributes attributes = {{"scatter_dimension", DimensionOf(instruction)}};
  if (absl::Status status = AddDevices(instruction, &attributes); !status.ok()) return status;
  return DefineCollective(instruction, OpKind::kStablehloReduceScatter, attributes);
}

absl::Status Exporter::ExportRooted(Instruction instruction, OpKind kind) {
  Attributes attributes;
  if (instruction.bool_attr(Attr::kHasDynamicRoot)) {
    attributes.push_back({"has_dynamic_root", n().Make(NodeKind::kUnit)});
  }
  if (absl::Status status = AddDevices(instruction, &attributes); !status.ok()) return status;
  return DefineCollective(instruction, kind, attributes);
}

absl::Status Exporter::ExportCollectiveBroadcast(Instruction instruction) {
  return ExportRooted(instruction, OpKind::kStablehloCollectiveBroadcast);
}

absl::Status Exporter::ExportCollectiveReduce(Instruction instruction) {
  return ExportRooted(instruction, OpKind::kStablehloCollectiveReduce);
}

absl::Status Exporter::ExportCollectivePermute(Instruction instruction) {
  if (instruction.operand_count() != 1) return Unsupported(instruction, "several operands");
  const absl::Span<const int64_t> encoded = instruction.list_attr(Attr::kSourceTargetPairs);
  Ints pairs;
  for (size_t i = 0; i + 2 < encoded.size(); i += 3) pairs.insert(pairs.end(), {encoded[i + 1], encoded[i + 2]});
  const int64_t sizes[] = {static_cast<int64_t>(pairs.size() / 2), 2};
  Attributes attributes = {{"source_target_pairs", Elements64(pairs, sizes)}};
  if (instruction.int_attr(Attr::kChannelId, 0) > 0) {
    attributes.push_back({"channel_handle", ChannelOf(instruction, options_.as_xla ? 0 : 1)});
  }
  return DefineCollective(instruction, OpKind::kStablehloCollectivePermute, attributes);
}

absl::Status Exporter::ExportAllToAll(Instruction instruction) {
  Attributes attributes;
  if (absl::Status status = AddDevices(instruction, &attributes); !status.ok()) return status;
  if (instruction.list_attr(Attr::kDimensions).empty()) {
    // A tuple of the parts for each device: only the operation of MHLO has several operands.
    if (!instruction.shape().IsTuple()) return Unsupported(instruction, "an array of chunks");
    for (NamedAttribute& attribute : attributes) {
      if (attribute.name != "channel_handle") continue;
      const mlir::NodeTable& nodes = n();
      const Ints names(nodes.ints(attribute.value).begin(), nodes.ints(attribute.value).end());
      attribute.value = n().Make(NodeKind::kFields, "mhlo.channel_handle", names, nodes.children(attribute.value));
    }
    if (!IsUnpacked(instruction.shape())) return Unsupported(instruction, "a tuple of one chunk");
    return Define(instruction, OpKind::kMhloAllToAll, OperandsOf(instruction), attributes);
  }
  const ReplicaGroupCounts counts =
      CountReplicaGroups(module_.context(), AttrReader(instruction).list_id(Attr::kReplicaGroups));
  attributes.push_back({"split_dimension", DimensionOf(instruction)});
  attributes.push_back({"concat_dimension", DimensionOf(instruction)});
  attributes.push_back({"split_count", I64(std::max<int64_t>(counts.group_size, 1))});
  return DefineCollective(instruction, OpKind::kStablehloAllToAll, attributes);
}

absl::Status Exporter::ExportRaggedAllToAll(Instruction instruction) {
  absl::StatusOr<NodeId> groups = GroupsOf(instruction);
  if (!groups.ok()) return groups.status();
  const int64_t names[] = {n().strings().Intern("channel_id").value, n().strings().Intern("replica_groups").value};
  const NodeId values[] = {I64(std::max<int64_t>(instruction.int_attr(Attr::kChannelId, 0), 0)), *groups};
  return Define(instruction, OpKind::kStablehloCustomCall, OperandsOf(instruction),
                {{"call_target_name", n().String("ragged_all_to_all")},
                 {"api_version", I32(4)},
                 {"backend_config", n().Make(NodeKind::kDictionary, "", names, values)}});
}

}  // namespace hlokit::stablehlo
