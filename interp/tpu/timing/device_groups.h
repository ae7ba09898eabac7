// SPDX-License-Identifier: Apache-2.0
// Who takes part in each collective of a module, device by device.
#ifndef HLOKIT_INTERP_TPU_TIMING_DEVICE_GROUPS_H_
#define HLOKIT_INTERP_TPU_TIMING_DEVICE_GROUPS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "interp/tpu/timing/simulator.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

struct DeviceGroupSet {
  std::vector<std::vector<uint32_t>> groups;          // of devices that meet; a device in none does not take part
  std::vector<std::pair<uint32_t, uint32_t>> routes;  // of a permute instead: from, to
};

class DeviceGroupTable {
 public:
  DeviceGroupTable(const Module& module, const SimulationOptions& options);
  // That run the program: as many as the module is made for, or all of the topology if it does not say.
  int64_t devices() const { return devices_; }
  const DeviceGroupSet& GroupsOf(Instruction collective);

 private:
  DeviceGroupSet Expand(Instruction collective) const;

  int64_t replicas_ = 1;
  int64_t partitions_ = 1;
  int64_t devices_ = 1;
  using Key = std::tuple<uint32_t, uint32_t, int>;  // lists of groups and pairs, what their numbers mean
  std::map<Key, std::unique_ptr<DeviceGroupSet>> known_;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_DEVICE_GROUPS_H_
