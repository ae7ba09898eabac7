// SPDX-License-Identifier: Apache-2.0
// Which devices a collective runs among. A run has R replicas of a program that is cut into P partitions; device
// `replica * P + partition` runs one partition of one replica.
#ifndef HLOKIT_IR_SHARDING_COLLECTIVE_GROUPS_H_
#define HLOKIT_IR_SHARDING_COLLECTIVE_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit {

// What the numbers in the groups (or source-target pairs) of a collective are.
enum class CollectiveOpGroupMode : uint8_t {
  kCrossReplica,              // replicas; every partition has groups of its own. No channel_id
  kCrossPartition,            // partitions; every replica has groups of its own
  kCrossReplicaAndPartition,  // replicas, each with all its partitions: all-gather, all-reduce, reduce-scatter
  kFlattenedId,               // devices: use_global_device_ids
};
CollectiveOpGroupMode GetCollectiveOpGroupMode(Instruction collective);

// The groups of devices, each in the order that gathering and scattering follow. No groups in the text: one of all.
// InvalidArgument if the groups name what R and P do not have, or too much to write out.
absl::StatusOr<std::vector<std::vector<int64_t>>> GetParticipatingDevicesGroups(Instruction collective,
                                                                                int64_t replicas, int64_t partitions);

// For source-target pairs: one group for each set of devices that the numbers count through.
std::vector<std::vector<int64_t>> DeviceRows(CollectiveOpGroupMode mode, int64_t replicas, int64_t partitions);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_COLLECTIVE_GROUPS_H_
