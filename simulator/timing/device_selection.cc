// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/device_selection.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <vector>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit::tpu {

namespace {

// Returns the built-in description of the same generation with the nearest name, or "".
std::string_view NearestDevice(std::string_view name) {
  constexpr size_t kGeneration = 2;  // characters: "v5"
  std::vector<std::string_view> same;
  for (std::string_view known : BuiltinDeviceDescriptions()) {
    if (known.substr(0, kGeneration) == name.substr(0, kGeneration)) same.push_back(known);
  }
  return FindNearest(name, same);
}

// Short names of frequent parameters.
constexpr std::pair<std::string_view, std::string_view> kShortNames[] = {
    {"hbm", "hbm_rate"},   {"mxu", "mxu_rows_per_cycle"}, {"ici", "ici_rate"}, {"dcn", "dcn_rate"},
    {"host", "host_rate"}, {"vmem", "vmem_rate"},         {"vpu", "vpu_alus"}};
constexpr double kMaxScale = 1e6;

// Names of generations in accelerator types of Google Cloud, where they differ.
constexpr std::pair<std::string_view, std::string_view> kCloudNames[] = {{"v5litepod", "v5e"}, {"tpu7x", "v7x"}};

// An accelerator type: "v5litepod-8", "v5p-128".
struct CloudSlice {
  std::string_view machine;
  int64_t cores_per_chip = 1;
  int64_t chips = 0;  // 0: the number of cores is not that of whole chips
};

// Reads an accelerator type. Its number counts cores: two on each chip of v2, v3, v4, v5p and v7x.
std::optional<CloudSlice> ReadCloudSlice(std::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  CloudSlice slice = {.machine = name.substr(0, dash)};
  for (const auto& [cloud, machine] : kCloudNames) {
    if (slice.machine == cloud) slice.machine = machine;
  }
  const std::optional<DeviceDescription> machine = BuiltinDeviceDescription(slice.machine);
  if (!machine) return std::nullopt;
  int64_t cores = 0;
  const std::string_view number = name.substr(dash + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), cores);
  slice.cores_per_chip = std::max<int64_t>(static_cast<int64_t>(machine->cores_per_chip), 1);
  if (error != std::errc() || end != number.data() + number.size()) return slice;
  if (cores > 0 && cores % slice.cores_per_chip == 0) slice.chips = cores / slice.cores_per_chip;
  return slice;
}

}  // namespace

std::vector<std::string_view> ScalableParameters() {
  std::vector<std::string_view> names;
  for (const auto& [name, field] : kShortNames) names.push_back(name);
  for (const DeviceDescriptionField& field : DeviceDescriptionFields()) names.push_back(field.name);
  return names;
}

absl::Status ScaleParameter(std::string_view name, double factor, DeviceDescription* machine) {
  std::string_view field_name = name;
  for (const auto& [from, to] : kShortNames) {
    if (name == from) field_name = to;
  }
  const DeviceDescriptionField* field = FindDeviceDescriptionField(field_name);
  if (field == nullptr) {
    return absl::InvalidArgumentError(
        StrCat("unknown parameter `", name, "`", DidYouMeanSuffix(name, ScalableParameters())));
  }
  if (!(factor > 0) || factor > kMaxScale) {
    return absl::InvalidArgumentError(StrCat("expected a positive factor of at most ", FormatDouble(kMaxScale, 6),
                                             " for `", name, "`, found ", FormatDouble(factor, 6)));
  }
  const double value = machine->*field->member * factor;
  if (value < field->minimum || value > field->maximum) {
    return absl::InvalidArgumentError(
        StrCat("`", name, "=", FormatDouble(factor, 6), "` is out of range for ", field->name));
  }
  machine->*field->member = value;
  return absl::OkStatus();
}

absl::Status ApplyScale(std::string_view text, DeviceDescription* machine) {
  const size_t equal = std::min(text.find('='), text.size());
  double factor = 0;
  const char* const begin = text.data() + std::min(equal + 1, text.size());
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), factor);
  const bool valid = error == std::errc() && end == text.data() + text.size() && factor > 0;
  // An unknown name is the first thing to say.
  const absl::Status status = ScaleParameter(text.substr(0, equal), valid ? factor : 1, machine);
  if (!status.ok() || valid) return status;
  return absl::InvalidArgumentError(StrCat("expected PARAMETER=FACTOR with a positive factor, found `", text, "`"));
}

absl::StatusOr<Straggler> ParseStraggler(std::string_view text) {
  Straggler straggler;
  const size_t colon = std::min(text.find(':'), text.size());
  const char* end = text.data() + text.size();
  bool good = colon < text.size();
  if (text.substr(0, colon) == "any") {
    straggler.device = -1;
  } else {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + colon, straggler.device);
    good = good && error == std::errc() && rest == text.data() + colon && straggler.device >= 0;
  }
  if (good) {
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, straggler.factor);
    good = error == std::errc() && rest == end && straggler.factor >= 0.01 && straggler.factor <= 1e6;
  }
  if (good) return straggler;
  return absl::InvalidArgumentError(StrCat("expected DEVICE:FACTOR or any:FACTOR, as in 3:1.5, found `", text, "`"));
}

absl::Status CheckStragglers(const SimulationOptions& options) {
  const int64_t devices = options.topology.Chips() * options.machine.devices_per_chip();
  for (const Straggler& s : options.variation.stragglers) {
    if (s.device < devices) continue;
    return absl::OutOfRangeError(StrCat("device ", s.device, " is out of range: there are ", devices));
  }
  return absl::OkStatus();
}

absl::StatusOr<DeviceDescription> NamedDevice(std::string_view name) {
  if (std::optional<DeviceDescription> machine = BuiltinDeviceDescription(name)) return *std::move(machine);
  std::string message = StrCat("unknown target `", name, "`");
  if (const std::optional<CloudSlice> slice = ReadCloudSlice(name)) {
    return absl::NotFoundError(StrCat(message, "; expected a number of cores after `-`, ", slice->cores_per_chip,
                                      " on a chip of ", slice->machine, ", or chips after `:`, as in ", slice->machine,
                                      ":2x2"));
  }
  if (const std::string_view near = NearestDevice(name); !near.empty()) {
    StrAppend(&message, "; did you mean `", near, "`?");
  }
  StrAppend(&message, "; expected one of");
  for (std::string_view known : BuiltinDeviceDescriptions()) StrAppend(&message, " ", known);
  return absl::NotFoundError(message);
}

std::pair<std::string, std::string> SplitDeviceName(std::string_view device) {
  const size_t colon = device.rfind(':');
  if (colon == std::string_view::npos) {
    if (const std::optional<CloudSlice> slice = ReadCloudSlice(device); slice && slice->chips > 0) {
      return {std::string(slice->machine), std::to_string(slice->chips)};
    }
    return {std::string(device), ""};
  }
  return {std::string(device.substr(0, colon)), std::string(device.substr(colon + 1))};
}

absl::StatusOr<Topology> TopologyFor(const DeviceDescription& machine, std::string_view text, const Module& module,
                                     std::string_view device) {
  const int64_t devices = DevicesOf(module);
  const int64_t per_chip = machine.devices_per_chip();
  if (text.empty()) return TopologyFor(machine, (devices + per_chip - 1) / per_chip);
  absl::StatusOr<Topology> parsed = ParseTopology(machine, text);
  if (!parsed.ok()) return absl::InvalidArgumentError(parsed.status().message());
  if (parsed->Chips() * per_chip < devices) {
    return absl::FailedPreconditionError(
        StrCat("the module requires ", devices, " devices, but ", device, " has ", parsed->Chips() * per_chip));
  }
  return parsed;
}

absl::StatusOr<SimulationOptions> OptionsForDevice(std::string_view device, const Module& module) {
  const auto [name, topology_text] = SplitDeviceName(device);
  absl::StatusOr<DeviceDescription> machine = NamedDevice(name);
  if (!machine.ok()) return machine.status();
  absl::StatusOr<Topology> topology = TopologyFor(*machine, topology_text, module, device);
  if (!topology.ok()) return topology.status();
  SimulationOptions options;
  options.machine = *std::move(machine);
  options.topology = *std::move(topology);
  return options;
}

}  // namespace hlokit::tpu
