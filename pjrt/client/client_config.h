// SPDX-License-Identifier: Apache-2.0
// Options of a client: those of the caller, then environment variables, then defaults. kOptions in client_config.cc has
// them, one a row.
#ifndef HLOKIT_PJRT_CLIENT_CLIENT_CONFIG_H_
#define HLOKIT_PJRT_CLIENT_CLIENT_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pjrt/c_api/types.h"

namespace hlokit::pjrt {

struct ClientConfig {
  std::string platform = "hlokit";
  std::string device = "cpu";    // "cpu", or a simulated TPU: "v5p:4x4x4"
  int64_t num_devices = 0;       // of the CPU; 0: 1. A TPU has those of its topology
  std::string engine = "exact";  // or "fast"
  std::string dump_to;           // directory for programs as received and compiled; "": none
  std::string report;            // directory for reports of what runs would take on the simulated device; "": none
  int64_t num_threads = 0;
  int64_t max_bytes = 0;           // of arguments and live values of a run; 0: the default
  int64_t max_seconds = 0;         // of a run; 0: no limit
  int64_t callback_seconds = 600;  // how long a device waits for a value of a callback; 0: no limit
  // How long a program waits for other processes; 0: no limit.
  // As seconds; very many where there is no limit.
  double CollectiveLimit() const { return collective_seconds > 0 ? static_cast<double>(collective_seconds) : 1e9; }
  int64_t collective_seconds = 600;
  // Of several processes that run programs together: this one, and their number.
  int64_t node_id = 0;
  int64_t num_nodes = 1;
  int64_t partition_index = -1;  // what devices of this process show as their partition; negative: nothing
};

// Returns an error for an unknown option, which names those that exist, and for a value of the wrong form.
absl::StatusOr<ClientConfig> ReadClientConfig(absl::Span<const PJRT_NamedValue> options);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_CLIENT_CONFIG_H_
