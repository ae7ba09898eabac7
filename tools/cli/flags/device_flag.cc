// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/device_flag.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/device_selection.h"

namespace hlokit::cli {

std::optional<tpu::DeviceDescription> LoadDeviceDescription(const std::string& name, DiagnosticReporter* diagnostics,
                                                            std::string_view flag) {
  if (std::optional<tpu::DeviceDescription> machine = tpu::BuiltinDeviceDescription(name)) return machine;
  if (name.empty()) {
    diagnostics->ShowError(std::string(flag), "expected the name of a target before `:`", kUsage);
    return std::nullopt;
  }
  if (name.find('/') == std::string::npos && name.find('.') == std::string::npos) {
    const std::string message(tpu::NamedDevice(name).status().message());
    diagnostics->ShowError(std::string(flag), StrCat(message, ", or a file with a `.` or `/` in its name"), kUsage);
    return std::nullopt;
  }
  const std::vector<cli::InputPart> parts = diagnostics->Read(name);
  if (parts.empty()) return std::nullopt;
  DiagnosticSink sink;
  std::optional<tpu::DeviceDescription> machine = tpu::ParseDeviceDescription(*parts[0].source, &sink);
  diagnostics->Show(sink, *parts[0].source);
  return machine;
}

namespace {

// Returns options to simulate the module on the device. Prints errors.
std::optional<tpu::SimulationOptions> LoadDevice(const std::string& device, const Module& module,
                                                 DiagnosticReporter* diagnostics) {
  const auto [name, chips] = tpu::SplitDeviceName(device);
  std::optional<tpu::DeviceDescription> machine = LoadDeviceDescription(name, diagnostics);
  if (!machine) return std::nullopt;
  absl::StatusOr<tpu::Topology> topology = tpu::TopologyFor(*machine, chips, module, device);
  if (!topology.ok()) {
    diagnostics->ShowError("--device", std::string(topology.status().message()), kUsage);
    return std::nullopt;
  }
  tpu::SimulationOptions options;
  options.machine = *std::move(machine);
  options.topology = *std::move(topology);
  return options;
}

}  // namespace

std::optional<tpu::InstructionTimes> TimeOnDevice(const std::string& device, std::string_view label,
                                                  const Module& module, DiagnosticReporter* diagnostics,
                                                  RemarkCollector* remarks) {
  const std::optional<tpu::SimulationOptions> options = LoadDevice(device, module, diagnostics);
  if (!options) return std::nullopt;
  if (tpu::IsCompiledForOtherDevice(module)) diagnostics->ShowWarning(label, tpu::kCompiledAgain);
  absl::StatusOr<tpu::InstructionTimes> times = tpu::TimeInstructions(*options, module, remarks);
  if (times.ok()) return *std::move(times);
  diagnostics->ShowError(label, std::string(times.status().message()), kRejected);
  return std::nullopt;
}

std::string DeviceSummary(const tpu::DeviceDescription& machine) {
  const double per_chip = static_cast<double>(machine.devices_per_chip());
  const auto rounded = [](double value) { return static_cast<int64_t>(value + 0.5); };
  return StrCat(rounded(machine.PeakFlops() * per_chip / 1e12), " TFLOP/s bf16, ",
                rounded(machine.hbm_size / (1 << 30)), " GiB HBM at ", rounded(machine.hbm_rate / 1e9), " GB/s, up to ",
                static_cast<int64_t>(machine.max_chips), " chips");
}

}  // namespace hlokit::cli
