// SPDX-License-Identifier: Apache-2.0
// Devices in command-line flags.
#ifndef HLOKIT_TOOLS_CLI_DEVICE_FLAG_H_
#define HLOKIT_TOOLS_CLI_DEVICE_FLAG_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "ir/graph/module_fwd.h"
#include "passes/target/device_description.h"
#include "passes/target/topology.h"
#include "tools/cli/cli.h"

namespace hlokit::cli {

// Loads a device description by builtin name or from a file. Prints errors.
std::optional<tpu::DeviceDescription> LoadDeviceDescription(const std::string& name, DiagnosticReporter* diagnostics);

// Returns "197 TFLOP/s bf16, 16 GiB HBM at 819 GB/s, up to 256 chips".
std::string DeviceSummary(const tpu::DeviceDescription& machine);

// Splits "v5p:4x4x4" into "v5p" and "4x4x4".
std::pair<std::string, std::string> SplitDeviceFlag(const std::string& device);

// Returns the topology in `text`; empty: as many chips as the module requires. Returns an error for an invalid topology
// (invalid argument), or fewer devices than the module requires (failed precondition). `device`: the word for the
// device in messages.
absl::StatusOr<tpu::Topology> TopologyOfFlag(const tpu::DeviceDescription& machine, const std::string& text,
                                             const Module& module, const std::string& device);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_DEVICE_FLAG_H_
