// SPDX-License-Identifier: Apache-2.0
// Participating devices of each collective of a module.
#ifndef HLOKIT_SIMULATOR_TIMING_DEVICE_GROUPS_H_
#define HLOKIT_SIMULATOR_TIMING_DEVICE_GROUPS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/graph/module_fwd.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

struct DeviceGroupSet {
  std::vector<std::vector<uint32_t>> groups;  // devices that synchronize; a device in no group does not participate
  std::vector<std::pair<uint32_t, uint32_t>> routes;  // for collective-permute: source and target
};

class DeviceGroupTable {
 public:
  DeviceGroupTable(const Module& module, const SimulationOptions& options);
  // Returns the number of devices that run the program: the module's device count; that of the topology if the module
  // has none and communicates.
  int64_t devices() const { return devices_; }
  const DeviceGroupSet& GroupsOf(Instruction collective);

 private:
  DeviceGroupSet Expand(Instruction collective) const;

  int64_t replicas_ = 1;
  int64_t partitions_ = 1;
  int64_t devices_ = 1;
  using Key = std::tuple<uint32_t, uint32_t, int>;  // ids of the groups and the pairs, group mode
  std::map<Key, std::unique_ptr<DeviceGroupSet>> known_;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_DEVICE_GROUPS_H_
