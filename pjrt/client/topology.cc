// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/topology.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/hashing.h"
#include "ir/core/str_cat.h"
#include "ir/digest/digest.h"
#include "passes/target/topology.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/functions.h"
#include "simulator/timing/device_selection.h"

namespace hlokit::pjrt {
namespace {

constexpr int64_t kDeviceLimit = interp::EvaluatorOptions::kMaxDevices;
constexpr char kSerializedMagic[] = "hlokit topology 2\n";

// JAX's names of the generations, by which it recognizes them.
struct KindName {
  std::string_view generation, kind;
};
constexpr KindName kKindNames[] = {
    {"v2", "TPU v2"},       {"v3", "TPU v3"},  {"v4", "TPU v4"},       {"v4i", "TPU v4 lite"},
    {"v5e", "TPU v5 lite"}, {"v5p", "TPU v5"}, {"v6e", "TPU v6 lite"}, {"v7x", "TPU7x"},
};

std::string KindOf(const std::string& generation) {
  for (const KindName& row : kKindNames) {
    if (row.generation == generation) return std::string(row.kind);
  }
  return StrCat("TPU ", generation);
}

PJRT_DeviceDescription& AddDevice(std::string kind, PJRT_TopologyDescription* topology) {
  PJRT_DeviceDescription& device = topology->descriptions.emplace_back();
  device.id = static_cast<int>(topology->descriptions.size()) - 1;
  device.kind = std::move(kind);
  topology->description_pointers.push_back(&device);
  return device;
}

// Returns the process of each device, comma-separated.
std::string ProcessesText(const PJRT_TopologyDescription& topology) {
  std::string text;
  for (const int process : topology.process_of) StrAppend(&text, text.empty() ? "" : ",", process);
  return text;
}

absl::Status AddCpuDevices(std::string_view count_text, PJRT_TopologyDescription* topology) {
  int64_t count = 1;
  if (!count_text.empty() &&
      (!absl::SimpleAtoi(std::string(count_text), &count) || count < 1 || count > kDeviceLimit)) {
    return absl::InvalidArgumentError(
        StrCat("device cpu: expected a number of devices from 1 to ", kDeviceLimit, ", found `", count_text, "`"));
  }
  topology->device = StrCat("cpu:", count);
  for (int64_t i = 0; i < count; ++i) {
    AddDevice("cpu", topology).to_string = StrCat("HlokitDevice(id=", i, ")");
  }
  return absl::OkStatus();
}

absl::Status AddTpuDevices(std::string_view generation, std::string_view chips, PJRT_TopologyDescription* topology) {
  absl::StatusOr<tpu::DeviceDescription> machine = tpu::NamedDevice(generation);
  if (!machine.ok()) return absl::InvalidArgumentError(machine.status().message());
  absl::StatusOr<tpu::Topology> mesh = tpu::ParseTopology(*machine, chips.empty() ? "1" : chips);
  if (!mesh.ok()) return absl::InvalidArgumentError(mesh.status().message());
  const int64_t per_chip = machine->devices_per_chip();
  if (mesh->Chips() * per_chip > kDeviceLimit) {
    return absl::InvalidArgumentError(StrCat("device ", generation, ":", chips, " has ", mesh->Chips() * per_chip,
                                             " devices; the limit is ", kDeviceLimit));
  }
  topology->device = StrCat(generation, ":", tpu::ToString(*mesh));
  for (int64_t chip = 0; chip < mesh->Chips(); ++chip) {
    // Chips count along the first axis first. Callers expect three coordinates.
    std::vector<int64_t> coords;
    int64_t rest = chip % mesh->ChipsPerSlice();
    for (const int64_t extent : mesh->axes) {
      coords.push_back(rest % extent);
      rest /= extent;
    }
    coords.resize(3);
    for (int64_t core = 0; core < per_chip; ++core) {
      PJRT_DeviceDescription& device = AddDevice(KindOf(std::string(generation)), topology);
      device.coords = coords;
      device.core = core;
      device.slice = chip / mesh->ChipsPerSlice();
      device.hbm_bytes = static_cast<int64_t>(machine->HbmBytes());
      device.attributes.Add("coords", coords);
      device.attributes.Add("core_on_chip", core);
      device.attributes.Add("num_cores", machine->cores_per_device());
      device.attributes.Add("slice_index", device.slice);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string PlatformVersion() { return "hlokit " HLOKIT_VERSION; }

absl::StatusOr<std::unique_ptr<PJRT_TopologyDescription>> CreateTopology(std::string_view platform,
                                                                         std::string_view device) {
  auto topology = std::make_unique<PJRT_TopologyDescription>();
  topology->platform = std::string(platform);
  topology->platform_version = PlatformVersion();
  const auto [name, rest] = tpu::SplitDeviceName(device);
  absl::Status status = name == "cpu" ? AddCpuDevices(rest, topology.get()) : AddTpuDevices(name, rest, topology.get());
  if (!status.ok()) return status;
  topology->attributes.Add("device", topology->device);
  SetProcesses(std::vector<int>(topology->descriptions.size()), topology.get());
  return topology;
}

void SetProcesses(std::vector<int> process_of, PJRT_TopologyDescription* topology) {
  topology->process_of = std::move(process_of);
  std::map<int, int> count;
  for (PJRT_DeviceDescription& device : topology->descriptions) {
    const int process = topology->process_of[static_cast<size_t>(device.id)];
    device.process_index = process;
    device.local_id = count[process]++;
    if (device.coords.empty()) {
      device.debug_string = StrCat(topology->platform, "_", device.id, "(process=", process, ",cpu)");
      continue;
    }
    const std::string place = StrCat(device.coords[0], ",", device.coords[1], ",", device.coords[2]);
    device.debug_string = StrCat("TPU_", device.id, "(process=", process, ",(", place, ",", device.core, "))");
    device.to_string = StrCat("TpuDevice(id=", device.id, ", process_index=", process, ", coords=(", place,
                              "), core_on_chip=", device.core, ")");
  }
  std::string identity = StrCat(topology->platform, "\n", topology->device);
  if (count.size() > 1) StrAppend(&identity, "\n", ProcessesText(*topology));
  topology->fingerprint = HashBytes(identity);
}

absl::Status DeviceDescription_Id(PJRT_DeviceDescription_Id_Args* args) {
  args->id = args->device_description->id;
  return absl::OkStatus();
}

absl::Status DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args* args) {
  args->process_index = args->device_description->process_index;
  return absl::OkStatus();
}

absl::Status DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args* args) {
  args->attributes = args->device_description->attributes.data();
  args->num_attributes = args->device_description->attributes.size();
  return absl::OkStatus();
}

absl::Status DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args* args) {
  SetText(args, &PJRT_DeviceDescription_Kind_Args::device_kind, &PJRT_DeviceDescription_Kind_Args::device_kind_size,
          args->device_description->kind);
  return absl::OkStatus();
}

absl::Status DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args* args) {
  SetText(args, &PJRT_DeviceDescription_DebugString_Args::debug_string,
          &PJRT_DeviceDescription_DebugString_Args::debug_string_size, args->device_description->debug_string);
  return absl::OkStatus();
}

absl::Status DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args* args) {
  SetText(args, &PJRT_DeviceDescription_ToString_Args::to_string, &PJRT_DeviceDescription_ToString_Args::to_string_size,
          args->device_description->to_string);
  return absl::OkStatus();
}

namespace {

// Options of a topology.
struct TopologyOptions {
  int64_t num_slices = 1;
  std::vector<int64_t> chips_per_host;  // along each axis; empty: one host has all
};

// Reads a list of positive numbers, or its text: "2,2,1".
absl::StatusOr<std::vector<int64_t>> ReadBounds(const PJRT_NamedValue& value, const std::string& name) {
  std::vector<int64_t> bounds;
  if (value.type == PJRT_NamedValue_kInt64List) {
    bounds.assign(value.int64_array_value, value.int64_array_value + value.value_size);
  } else {
    const absl::StatusOr<std::string> text = TextOfValue(value);
    if (!text.ok()) return text.status();
    for (const std::string& bound : std::vector<std::string>(absl::StrSplit(*text, absl::ByAnyChar(",x")))) {
      if (!absl::SimpleAtoi(bound, &bounds.emplace_back())) bounds.back() = 0;
    }
  }
  if (bounds.empty() || std::any_of(bounds.begin(), bounds.end(), [](int64_t b) { return b < 1; })) {
    return absl::InvalidArgumentError(StrCat(name, ": expected the chips of a host along each axis, such as 2,2,1"));
  }
  return bounds;
}

absl::StatusOr<TopologyOptions> ReadTopologyOptions(absl::Span<const PJRT_NamedValue> values) {
  TopologyOptions options;
  for (const PJRT_NamedValue& value : values) {
    const std::string name(TextOf(value.name, value.name_size));
    if (name == "num_slices") {
      const absl::StatusOr<std::string> text = TextOfValue(value);
      if (!text.ok()) return text.status();
      if (!absl::SimpleAtoi(*text, &options.num_slices) || options.num_slices < 1) {
        return absl::InvalidArgumentError(StrCat("num_slices: expected a positive number, found `", *text, "`"));
      }
    } else if (name == "chips_per_host_bounds") {
      absl::StatusOr<std::vector<int64_t>> bounds = ReadBounds(value, name);
      if (!bounds.ok()) return bounds.status();
      options.chips_per_host = *std::move(bounds);
    } else {
      return absl::InvalidArgumentError(
          StrCat("unknown option `", name,
                 "` of a topology. The options are chips_per_host_bounds, num_slices; the "
                 "name says the rest: v5p:4x4x4, cpu:8"));
    }
  }
  return options;
}

// Returns the host of each device: hosts count along the first axis first, slice by slice.
absl::StatusOr<std::vector<int>> HostsOf(const PJRT_TopologyDescription& topology, std::vector<int64_t> bounds) {
  std::vector<int64_t> extents(3, 1);
  for (const PJRT_DeviceDescription& device : topology.descriptions) {
    for (size_t a = 0; a < device.coords.size(); ++a) extents[a] = std::max(extents[a], device.coords[a] + 1);
  }
  while (bounds.size() > extents.size() && bounds.back() == 1) bounds.pop_back();
  bounds.resize(std::max(bounds.size(), extents.size()), 1);
  int64_t per_slice = 1;
  for (size_t a = 0; a < bounds.size(); ++a) {
    if (a >= extents.size() || extents[a] % bounds[a] != 0) {
      return absl::InvalidArgumentError(
          StrCat("chips_per_host_bounds: hosts of these chips do not fill ", topology.device));
    }
    per_slice *= extents[a] / bounds[a];
  }
  std::vector<int> hosts;
  for (const PJRT_DeviceDescription& device : topology.descriptions) {
    int64_t host = 0;
    for (size_t a = extents.size(); a-- > 0;) {
      host = host * (extents[a] / bounds[a]) + (device.coords.empty() ? 0 : device.coords[a] / bounds[a]);
    }
    hosts.push_back(static_cast<int>(device.slice * per_slice + host));
  }
  return hosts;
}

}  // namespace

absl::Status TopologyDescription_Create(PJRT_TopologyDescription_Create_Args* args) {
  const absl::StatusOr<TopologyOptions> options =
      ReadTopologyOptions(absl::MakeConstSpan(args->create_options, args->num_options));
  if (!options.ok()) return options.status();
  std::string device(TextOf(args->topology_name, args->topology_name_size));
  if (device.empty()) device = "cpu";
  const bool is_cpu = device == "cpu" || device.starts_with("cpu:");
  if (is_cpu && (options->num_slices != 1 || !options->chips_per_host.empty())) {
    return absl::InvalidArgumentError(StrCat("num_slices and chips_per_host_bounds are of TPUs, not of ", device));
  }
  if (options->num_slices != 1) {
    const auto [generation, chips] = tpu::SplitDeviceName(device);
    if (chips.find('*') != std::string_view::npos) {
      return absl::InvalidArgumentError(StrCat(device, " names a number of slices, and num_slices another one"));
    }
    device = StrCat(generation, ":", options->num_slices, "*", chips.empty() ? "1" : chips);
  }
  absl::StatusOr<std::unique_ptr<PJRT_TopologyDescription>> topology = CreateTopology("hlokit", device);
  if (!topology.ok()) return topology.status();
  if (!options->chips_per_host.empty()) {
    absl::StatusOr<std::vector<int>> hosts = HostsOf(**topology, options->chips_per_host);
    if (!hosts.ok()) return hosts.status();
    SetProcesses(*std::move(hosts), topology->get());
  }
  args->topology = topology->release();
  return absl::OkStatus();
}

absl::Status TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args* args) {
  delete args->topology;
  return absl::OkStatus();
}

absl::Status TopologyDescription_PlatformName(PJRT_TopologyDescription_PlatformName_Args* args) {
  SetText(args, &PJRT_TopologyDescription_PlatformName_Args::platform_name,
          &PJRT_TopologyDescription_PlatformName_Args::platform_name_size, args->topology->platform);
  return absl::OkStatus();
}

absl::Status TopologyDescription_PlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args* args) {
  SetText(args, &PJRT_TopologyDescription_PlatformVersion_Args::platform_version,
          &PJRT_TopologyDescription_PlatformVersion_Args::platform_version_size, args->topology->platform_version);
  return absl::OkStatus();
}

absl::Status TopologyDescription_GetDeviceDescriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args* args) {
  args->descriptions = args->topology->description_pointers.data();
  args->num_descriptions = args->topology->description_pointers.size();
  return absl::OkStatus();
}

absl::Status TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args* args) {
  args->attributes = args->topology->attributes.data();
  args->num_attributes = args->topology->attributes.size();
  return absl::OkStatus();
}

absl::Status TopologyDescription_Fingerprint(PJRT_TopologyDescription_Fingerprint_Args* args) {
  args->fingerprint = args->topology->fingerprint;
  return absl::OkStatus();
}

absl::Status TopologyDescription_GetMemorySpaceKindIds(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args* args) {
  static constexpr int kIds[] = {0, 1, 2};
  static_assert(std::size(kIds) == std::size(kMemoryKinds));
  args->memory_space_kind_ids = kIds;
  args->num_memory_space_kind_ids = std::size(kIds);
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt

struct PJRT_SerializedTopology {
  std::string bytes;
};

namespace hlokit::pjrt {

absl::Status TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args* args) {
  auto* serialized =
      new PJRT_SerializedTopology{StrCat(kSerializedMagic, args->topology->platform, "\n", args->topology->device, "\n",
                                         ProcessesText(*args->topology), "\n")};
  SetText(args, &PJRT_TopologyDescription_Serialize_Args::serialized_bytes,
          &PJRT_TopologyDescription_Serialize_Args::serialized_bytes_size, serialized->bytes);
  args->serialized_topology = serialized;
  args->serialized_topology_deleter = [](PJRT_SerializedTopology* topology) { delete topology; };
  return absl::OkStatus();
}

absl::Status TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args* args) {
  std::string_view bytes = TextOf(args->serialized_topology, args->serialized_topology_size);
  const std::string_view magic = kSerializedMagic;
  const absl::Status foreign = absl::InvalidArgumentError("not a topology that this version of hlokit serialized");
  if (!bytes.starts_with(magic)) return foreign;
  bytes.remove_prefix(magic.size());
  std::vector<std::string_view> lines;
  for (size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
    lines.push_back(bytes.substr(0, end));
  }
  if (lines.size() != 3 || !bytes.empty()) return foreign;
  absl::StatusOr<std::unique_ptr<PJRT_TopologyDescription>> topology = CreateTopology(lines[0], lines[1]);
  if (!topology.ok()) return topology.status();
  std::vector<int> process_of;
  const std::string processes(lines[2]);
  for (const std::string& text : std::vector<std::string>(absl::StrSplit(processes, ','))) {
    if (!absl::SimpleAtoi(text, &process_of.emplace_back()) || process_of.back() < 0) return foreign;
  }
  if (process_of.size() != (*topology)->descriptions.size()) return foreign;
  SetProcesses(std::move(process_of), topology->get());
  args->topology = topology->release();
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
