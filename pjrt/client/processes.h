// SPDX-License-Identifier: Apache-2.0
// Several processes of one machine, each with a client, that run programs together: what they tell each other, through
// the key-value store of the framework, before they are connected.
#ifndef HLOKIT_PJRT_CLIENT_PROCESSES_H_
#define HLOKIT_PJRT_CLIENT_PROCESSES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "interp/processes/process_network.h"
#include "pjrt/c_api/types.h"
#include "pjrt/client/client_config.h"

namespace hlokit::pjrt {

// The callbacks of a caller.
struct KeyValueStore {
  PJRT_KeyValueGetCallback get = nullptr;
  void* get_arg = nullptr;
  PJRT_KeyValuePutCallback put = nullptr;
  void* put_arg = nullptr;
};

struct Processes {
  std::string device;                 // of all processes together: "cpu:8"
  std::vector<int> process_of;        // by device
  std::vector<int64_t> partition_of;  // by process; negative: none
  std::unique_ptr<interp::ProcessNetwork> network;
};

// Waits for all processes and connects with them. `device`: that of this one. Of "cpu:N" each process has N devices of
// its own; of a TPU each has a part of the chips, which all name alike. Returns an error that names a process that does
// not come, or that cannot run programs together with this one.
absl::StatusOr<Processes> MeetProcesses(const KeyValueStore& store, const ClientConfig& config,
                                        const std::string& device);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_PROCESSES_H_
