// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/device_flag.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "interp/tpu/timing/simulator.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit::cli {

namespace {

// Returns the built-in target of the same generation with the nearest name, or "".
std::string_view NearestDevice(std::string_view name) {
  constexpr size_t kGeneration = 2;  // characters: "v5"
  std::vector<std::string_view> same;
  for (std::string_view known : tpu::BuiltinDeviceDescriptions()) {
    if (known.substr(0, kGeneration) == name.substr(0, kGeneration)) same.push_back(known);
  }
  return FindNearest(name, same);
}

}  // namespace

std::optional<tpu::DeviceDescription> LoadDeviceDescription(const std::string& name, DiagnosticReporter* diagnostics) {
  if (std::optional<tpu::DeviceDescription> machine = tpu::BuiltinDeviceDescription(name)) return machine;
  if (name.find('/') == std::string::npos && name.find('.') == std::string::npos) {
    std::string message = StrCat("unknown target `", name, "`");
    if (const std::string_view near = NearestDevice(name); !near.empty()) {
      StrAppend(&message, "; did you mean `", near, "`?");
    }
    StrAppend(&message, "; expected one of");
    for (std::string_view known : tpu::BuiltinDeviceDescriptions()) StrAppend(&message, " ", known);
    diagnostics->ShowError("--device", StrCat(message, ", or a file with a `.` or `/` in its name"), kUsage);
    return std::nullopt;
  }
  const std::vector<cli::InputPart> parts = diagnostics->Read(name);
  if (parts.empty()) return std::nullopt;
  DiagnosticSink sink;
  std::optional<tpu::DeviceDescription> machine = tpu::ParseDeviceDescription(*parts[0].source, &sink);
  diagnostics->Show(sink, *parts[0].source);
  return machine;
}

std::string DeviceSummary(const tpu::DeviceDescription& machine) {
  const double per_chip = static_cast<double>(machine.devices_per_chip());
  const auto rounded = [](double value) { return static_cast<int64_t>(value + 0.5); };
  return StrCat(rounded(machine.PeakFlops() * per_chip / 1e12), " TFLOP/s bf16, ",
                rounded(machine.hbm_size / (1 << 30)), " GiB HBM at ", rounded(machine.hbm_rate / 1e9), " GB/s, up to ",
                static_cast<int64_t>(machine.max_chips), " chips");
}

std::pair<std::string, std::string> SplitDeviceFlag(const std::string& device) {
  const size_t colon = device.rfind(':');
  if (colon == std::string::npos) return {device, ""};
  return {device.substr(0, colon), device.substr(colon + 1)};
}

absl::StatusOr<tpu::Topology> TopologyOfFlag(const tpu::DeviceDescription& machine, const std::string& text,
                                             const Module& module, const std::string& device) {
  const int64_t devices = tpu::DevicesOf(module);
  const int64_t per_chip = machine.devices_per_chip();
  if (text.empty()) return tpu::TopologyFor(machine, (devices + per_chip - 1) / per_chip);
  absl::StatusOr<tpu::Topology> parsed = tpu::ParseTopology(machine, text);
  if (!parsed.ok()) return absl::InvalidArgumentError(parsed.status().message());
  if (parsed->Chips() * per_chip < devices) {
    const std::string message =
        StrCat("the module requires ", devices, " devices, but ", device, " has ", parsed->Chips() * per_chip);
    return absl::FailedPreconditionError(message);
  }
  return parsed;
}

}  // namespace hlokit::cli
