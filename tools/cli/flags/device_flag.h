// SPDX-License-Identifier: Apache-2.0
// Devices in command-line flags.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_DEVICE_FLAG_H_
#define HLOKIT_TOOLS_CLI_FLAGS_DEVICE_FLAG_H_

#include <optional>
#include <string>
#include <string_view>

#include "passes/target/device_description.h"
#include "simulator/report/instruction_times.h"
#include "simulator/timing/simulator.h"
#include "tools/cli/cli.h"

namespace hlokit::cli {

// Loads a device description by builtin name or from a file. Prints errors, which name the flag.
std::optional<tpu::DeviceDescription> LoadDeviceDescription(const std::string& name, DiagnosticReporter* diagnostics,
                                                            std::string_view flag = "--device");

// Times the module on a device such as "v5e" or "mine.tpu:4x4", compiled as hlo-run does (TimeInstructions). Prints
// errors and warnings; those of the module are about `label`.
std::optional<tpu::InstructionTimes> TimeOnDevice(const std::string& device, std::string_view label,
                                                  const Module& module, DiagnosticReporter* diagnostics,
                                                  RemarkCollector* remarks = nullptr);

// Returns "197 TFLOP/s bf16, 16 GiB HBM at 819 GB/s, up to 256 chips".
std::string DeviceSummary(const tpu::DeviceDescription& machine);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_DEVICE_FLAG_H_
