// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/collective_groups.h"

#include <numeric>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/sharding/replica_groups.h"

namespace hlokit {

CollectiveOpGroupMode GetCollectiveOpGroupMode(Instruction i) {
  if (!i.has(Attr::kChannelId)) return CollectiveOpGroupMode::kCrossReplica;
  if (FindAttrSpec(i.opcode(), Attr::kUseGlobalDeviceIds) == nullptr) return CollectiveOpGroupMode::kCrossPartition;
  return i.bool_attr(Attr::kUseGlobalDeviceIds) ? CollectiveOpGroupMode::kFlattenedId
                                                : CollectiveOpGroupMode::kCrossReplicaAndPartition;
}

std::vector<std::vector<int64_t>> DeviceRows(CollectiveOpGroupMode mode, int64_t replicas, int64_t partitions) {
  std::vector<std::vector<int64_t>> rows;
  switch (mode) {
    case CollectiveOpGroupMode::kCrossReplica:
      rows.resize(static_cast<size_t>(partitions));
      for (int64_t p = 0; p < partitions; ++p) {
        for (int64_t r = 0; r < replicas; ++r) rows[static_cast<size_t>(p)].push_back(r * partitions + p);
      }
      break;
    case CollectiveOpGroupMode::kCrossPartition:
      rows.resize(static_cast<size_t>(replicas));
      for (int64_t r = 0; r < replicas; ++r) {
        for (int64_t p = 0; p < partitions; ++p) rows[static_cast<size_t>(r)].push_back(r * partitions + p);
      }
      break;
    case CollectiveOpGroupMode::kCrossReplicaAndPartition:
    case CollectiveOpGroupMode::kFlattenedId:
      rows.resize(1);
      rows[0].resize(static_cast<size_t>(replicas * partitions));
      std::iota(rows[0].begin(), rows[0].end(), 0);
      break;
  }
  return rows;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> GetParticipatingDevicesGroups(Instruction i, int64_t replicas,
                                                                                int64_t partitions) {
  const CollectiveOpGroupMode mode = GetCollectiveOpGroupMode(i);
  const ListId list = AttrReader(i).list_id(Attr::kReplicaGroups);
  const int64_t devices = replicas * partitions;
  if (CountReplicaGroups(i.module().context(), list).groups == 0) {
    return DeviceRows(mode, replicas, partitions);
  }
  const int64_t limit =
      mode == CollectiveOpGroupMode::kCrossReplica || mode == CollectiveOpGroupMode::kCrossReplicaAndPartition
          ? replicas
      : mode == CollectiveOpGroupMode::kCrossPartition ? partitions
                                                       : devices;
  const std::string_view unit =
      mode == CollectiveOpGroupMode::kCrossReplica || mode == CollectiveOpGroupMode::kCrossReplicaAndPartition
          ? "replica"
      : mode == CollectiveOpGroupMode::kCrossPartition ? "partition"
                                                       : "device";
  absl::StatusOr<std::vector<std::vector<int64_t>>> groups = ExpandReplicaGroups(i.module().context(), list, 1 << 20);
  if (!groups.ok()) return groups.status();
  std::vector<std::vector<int64_t>> result;
  for (const std::vector<int64_t>& group : *groups) {
    for (int64_t id : group) {
      if (id >= 0 && id < limit) continue;
      return absl::InvalidArgumentError(StrCat("replica_groups contain ", unit, " ", id, ", but there are ", replicas,
                                               " x ", partitions, " devices (replicas x partitions)"));
    }
    switch (mode) {
      case CollectiveOpGroupMode::kCrossReplica:
        for (int64_t p = 0; p < partitions; ++p) {
          std::vector<int64_t>& to = result.emplace_back();
          for (int64_t r : group) to.push_back(r * partitions + p);
        }
        break;
      case CollectiveOpGroupMode::kCrossPartition:
        for (int64_t r = 0; r < replicas; ++r) {
          std::vector<int64_t>& to = result.emplace_back();
          for (int64_t p : group) to.push_back(r * partitions + p);
        }
        break;
      case CollectiveOpGroupMode::kCrossReplicaAndPartition: {
        std::vector<int64_t>& to = result.emplace_back();
        for (int64_t r : group) {
          for (int64_t p = 0; p < partitions; ++p) to.push_back(r * partitions + p);
        }
        break;
      }
      case CollectiveOpGroupMode::kFlattenedId:
        result.push_back(group);
        break;
    }
  }
  return result;
}

}  // namespace hlokit
