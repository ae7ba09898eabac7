// SPDX-License-Identifier: Apache-2.0
// Groups of devices in collectives. A run has R replicas of a program with P partitions; device `replica * P +
// partition` runs one partition of one replica.
#ifndef HLOKIT_IR_SHARDING_COLLECTIVE_GROUPS_H_
#define HLOKIT_IR_SHARDING_COLLECTIVE_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module_fwd.h"

namespace hlokit {

// Meaning of the ids in the groups (or source-target pairs) of a collective.
enum class CollectiveOpGroupMode : uint8_t {
  kCrossReplica,              // replicas; every partition has separate groups. No channel_id
  kCrossPartition,            // partitions; every replica has separate groups
  kCrossReplicaAndPartition,  // replicas, each with all its partitions: all-gather, all-reduce, reduce-scatter
  kFlattenedId,               // devices: use_global_device_ids
};
CollectiveOpGroupMode GetCollectiveOpGroupMode(Instruction collective);

// Returns the groups of devices, each in the order that gathering and scattering follow. Empty groups in the text are
// one group of all devices. Returns InvalidArgument if the groups exceed R or P, or are too large to expand.
absl::StatusOr<std::vector<std::vector<int64_t>>> GetParticipatingDevicesGroups(Instruction collective,
                                                                                int64_t replicas, int64_t partitions);

// Returns, for source-target pairs, one group for each set of devices that the ids enumerate.
std::vector<std::vector<int64_t>> DeviceRows(CollectiveOpGroupMode mode, int64_t replicas, int64_t partitions);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_COLLECTIVE_GROUPS_H_
