// SPDX-License-Identifier: Apache-2.0
// Machines as users name them on command lines.
#ifndef HLOKIT_TOOLS_CLI_DEVICE_FLAG_H_
#define HLOKIT_TOOLS_CLI_DEVICE_FLAG_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/target/device_description.h"
#include "passes/target/topology.h"
#include "tools/cli/cli.h"

namespace hlokit::cli {

// A machine by installed name or from a file. Errors are shown.
std::optional<tpu::DeviceDescription> LoadDeviceDescription(const std::string& name, DiagnosticReporter* diagnostics);

// "197 TFLOP/s bf16, 16 GiB HBM at 819 GB/s, up to 256 chips".
std::string DeviceSummary(const tpu::DeviceDescription& machine);

// "v5p:4x4x4" -> "v5p", "4x4x4".
std::pair<std::string, std::string> SplitDeviceFlag(const std::string& device);

// The chips that `text` names; empty: as many as the module is made for. Errors: no topology (invalid argument), fewer
// devices than the module is made for (failed precondition). `device` is how messages call it.
absl::StatusOr<tpu::Topology> TopologyOfFlag(const tpu::DeviceDescription& machine, const std::string& text,
                                             const Module& module, const std::string& device);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_DEVICE_FLAG_H_
