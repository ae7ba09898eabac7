// SPDX-License-Identifier: Apache-2.0
// What is known of values that differ between devices: those of index arithmetic on every device, and those that are
// equal on all devices of a group.
//
// A program may run on more devices than its header says: a count of one means that it does not say. The functions then
// take the counts that the groups of the collective imply, and return nullopt where these do not suffice.
#ifndef HLOKIT_PASSES_COLLECTIVE_DEVICE_VALUES_H_
#define HLOKIT_PASSES_COLLECTIVE_DEVICE_VALUES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

// Device `replica * partitions + partition` runs one partition of one replica.
struct DeviceCounts {
  int64_t replicas = 1;
  int64_t partitions = 1;
  int64_t devices() const { return replicas * partitions; }
};

struct DeviceGroups {
  DeviceCounts counts;
  std::vector<std::vector<int64_t>> groups;  // of equal size; every device is in one of them
  int64_t group_size() const { return static_cast<int64_t>(groups[0].size()); }
};

// Returns the groups of an all-gather, all-reduce, reduce-scatter or all-to-all, each in the order of its shards, or
// nullopt if they are not known, differ in size or do not have every device once.
std::optional<DeviceGroups> DeviceGroupsOf(Instruction collective);

// Returns the value of an integer with one element on each device, by device, or nullopt if it is not a function of
// constants, replica-id and partition-id. Results of operations wrap around as they do on a device.
std::optional<std::vector<int64_t>> ScalarByDevice(Instruction scalar, const DeviceCounts& counts);

// Finds values that are equal on all devices of each group.
class UniformValues {
 public:
  explicit UniformValues(const Module* module) : module_(*module) {}

  // Returns true if `value` is known to be equal on all devices of each group of `collective`, in each execution.
  // Requires: the module has not been changed since the first call, except by replacing values by equal ones.
  bool IsUniform(Instruction value, Instruction collective);

 private:
  std::vector<uint8_t> Analyze(Instruction collective) const;

  const Module& module_;
  // By the groups of a collective and what their ids mean; then by instruction.
  std::map<std::pair<uint32_t, int>, std::vector<uint8_t>> uniform_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_COLLECTIVE_DEVICE_VALUES_H_
