// SPDX-License-Identifier: Apache-2.0
// Topologies: the devices of a CPU or of a simulated TPU as callers see them, without a client.
#ifndef HLOKIT_PJRT_CLIENT_TOPOLOGY_H_
#define HLOKIT_PJRT_CLIENT_TOPOLOGY_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pjrt/c_api/types.h"
#include "pjrt/values/named_values.h"

struct PJRT_DeviceDescription {
  int id = 0;
  int process_index = 0;
  int local_id = 0;  // among the devices of the process
  std::string kind;
  std::string debug_string;
  std::string to_string;
  int64_t hbm_bytes = 0;  // of a simulated device; 0: as much as the process may use
  // Of a TPU.
  std::vector<int64_t> coords;
  int64_t core = 0;
  int64_t slice = 0;
  hlokit::pjrt::NamedValues attributes;
};

struct PJRT_TopologyDescription {
  std::string platform;
  std::string platform_version;
  std::string device;           // "cpu:8", "v5p:4x4x4"
  std::vector<int> process_of;  // by device; with the platform and the device, what Serialize gives back
  std::deque<PJRT_DeviceDescription> descriptions;
  std::vector<PJRT_DeviceDescription*> description_pointers;
  hlokit::pjrt::NamedValues attributes;
  uint64_t fingerprint = 0;
};

namespace hlokit::pjrt {

// Kinds of memory that every device has, the default one first. Their ids are their positions.
inline constexpr const char* kMemoryKinds[] = {"device", "pinned_host", "unpinned_host"};

// Version of this library as the platform version shows it.
std::string PlatformVersion();

// Creates the topology of `device`: "cpu", "cpu:8" (8 devices), or a TPU, "v5p:4x4x4". Returns an error for a device
// that does not exist, or too many. All devices are of process 0.
absl::StatusOr<std::unique_ptr<PJRT_TopologyDescription>> CreateTopology(std::string_view platform,
                                                                         std::string_view device);

// Gives each device to a process. Requires: no caller has the descriptions yet.
void SetProcesses(std::vector<int> process_of, PJRT_TopologyDescription* topology);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_TOPOLOGY_H_
