// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/device_groups.h"

#include <algorithm>
#include <numeric>

#include "ir/graph/attribute_views.h"
#include "ir/sharding/collective_groups.h"

namespace hlokit::tpu {

namespace {

constexpr int64_t kMaxDevices = int64_t{1} << 20;

bool HasCollective(const Module& module) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (HasTrait(i.opcode(), kCollective)) return true;
    }
  }
  return false;
}

}  // namespace

DeviceGroupTable::DeviceGroupTable(const Module& module, const SimulationOptions& options) {
  const int64_t of_topology = std::min(options.topology.Chips() * options.machine.devices_per_chip(), kMaxDevices);
  replicas_ = std::clamp<int64_t>(module.header().replica_count, 1, kMaxDevices);
  partitions_ = std::clamp<int64_t>(module.header().num_partitions, 1, kMaxDevices / replicas_);
  const int64_t named = std::min(DevicesOf(module), kMaxDevices);
  devices_ = std::max(replicas_ * partitions_, named);
  // A collective without groups is one of all devices there are.
  if (devices_ == 1 && HasCollective(module)) devices_ = of_topology;
}

const DeviceGroupSet& DeviceGroupTable::GroupsOf(Instruction collective) {
  const AttrReader attrs(collective);
  const Key key = {attrs.list_id(Attr::kReplicaGroups).value, attrs.list_id(Attr::kSourceTargetPairs).value,
                   static_cast<int>(GetCollectiveOpGroupMode(collective))};
  std::unique_ptr<DeviceGroupSet>& set = known_[key];
  if (set == nullptr) set = std::make_unique<DeviceGroupSet>(Expand(collective));
  return *set;
}

DeviceGroupSet DeviceGroupTable::Expand(Instruction collective) const {
  // Without device counts in the header the group mode determines whether all devices are replicas or partitions.
  const CollectiveOpGroupMode mode = GetCollectiveOpGroupMode(collective);
  int64_t replicas = replicas_;
  int64_t partitions = partitions_;
  if (replicas * partitions != devices_) {
    replicas = mode == CollectiveOpGroupMode::kCrossPartition ? 1 : devices_;
    partitions = mode == CollectiveOpGroupMode::kCrossPartition ? devices_ : 1;
  }
  DeviceGroupSet result;
  const absl::Span<const int64_t> pairs = collective.list_attr(Attr::kSourceTargetPairs);
  if (!pairs.empty()) {
    for (const std::vector<int64_t>& row : DeviceRows(mode, replicas, partitions)) {
      const int64_t size = static_cast<int64_t>(row.size());
      for (size_t k = 0; k + 1 < pairs.size(); k += 2) {
        if (pairs[k] < 0 || pairs[k] >= size || pairs[k + 1] < 0 || pairs[k + 1] >= size) continue;
        result.routes.push_back({static_cast<uint32_t>(row[static_cast<size_t>(pairs[k])]),
                                 static_cast<uint32_t>(row[static_cast<size_t>(pairs[k + 1])])});
      }
    }
    return result;
  }
  const absl::StatusOr<std::vector<std::vector<int64_t>>> groups =
      GetParticipatingDevicesGroups(collective, replicas, partitions);
  if (!groups.ok()) {
    // Invalid groups: one group of all devices.
    result.groups.resize(1);
    result.groups[0].resize(static_cast<size_t>(devices_));
    std::iota(result.groups[0].begin(), result.groups[0].end(), 0u);
    return result;
  }
  std::vector<uint8_t> taken(static_cast<size_t>(devices_), 0);
  for (const std::vector<int64_t>& group : *groups) {
    std::vector<uint32_t> members;
    for (int64_t d : group) {
      if (d < 0 || d >= devices_ || taken[static_cast<size_t>(d)] != 0) continue;
      taken[static_cast<size_t>(d)] = 1;
      members.push_back(static_cast<uint32_t>(d));
    }
    if (!members.empty()) result.groups.push_back(std::move(members));
  }
  return result;
}

}  // namespace hlokit::tpu
