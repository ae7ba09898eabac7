// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/topology.h"

#include <utility>

#include "absl/strings/numbers.h"
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
constexpr char kSerializedMagic[] = "hlokit topology 1\n";

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

absl::Status AddCpuDevices(std::string_view count_text, PJRT_TopologyDescription* topology) {
  int64_t count = 1;
  if (!count_text.empty() &&
      (!absl::SimpleAtoi(std::string(count_text), &count) || count < 1 || count > kDeviceLimit)) {
    return absl::InvalidArgumentError(
        StrCat("device cpu: expected a number of devices from 1 to ", kDeviceLimit, ", found `", count_text, "`"));
  }
  topology->device = StrCat("cpu:", count);
  for (int64_t i = 0; i < count; ++i) {
    PJRT_DeviceDescription& device = AddDevice("cpu", topology);
    device.debug_string = StrCat(topology->platform, "_", device.id, "(process=0,cpu)");
    device.to_string = StrCat("HlokitDevice(id=", device.id, ")");
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
      const std::string place = StrCat(coords[0], ",", coords[1], ",", coords[2]);
      device.debug_string = StrCat("TPU_", device.id, "(process=0,(", place, ",", core, "))");
      device.to_string =
          StrCat("TpuDevice(id=", device.id, ", process_index=0, coords=(", place, "), core_on_chip=", core, ")");
      device.hbm_bytes = static_cast<int64_t>(machine->HbmBytes());
      device.attributes.Add("coords", coords);
      device.attributes.Add("core_on_chip", core);
      device.attributes.Add("num_cores", machine->cores_per_device());
      device.attributes.Add("slice_index", chip / mesh->ChipsPerSlice());
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
  topology->fingerprint = HashBytes(StrCat(topology->platform, "\n", topology->device));
  return topology;
}

absl::Status DeviceDescription_Id(PJRT_DeviceDescription_Id_Args* args) {
  args->id = args->device_description->id;
  return absl::OkStatus();
}

absl::Status DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args* args) {
  args->process_index = 0;
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

absl::Status TopologyDescription_Create(PJRT_TopologyDescription_Create_Args* args) {
  if (args->num_options != 0) {
    return absl::InvalidArgumentError(
        "PJRT_TopologyDescription_Create: there are no options; the name says it all: "
        "v5p:4x4x4, cpu:8");
  }
  const std::string_view name = TextOf(args->topology_name, args->topology_name_size);
  absl::StatusOr<std::unique_ptr<PJRT_TopologyDescription>> topology =
      CreateTopology("hlokit", name.empty() ? "cpu" : name);
  if (!topology.ok()) return topology.status();
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
  auto* serialized = new PJRT_SerializedTopology{
      StrCat(kSerializedMagic, args->topology->platform, "\n", args->topology->device, "\n")};
  SetText(args, &PJRT_TopologyDescription_Serialize_Args::serialized_bytes,
          &PJRT_TopologyDescription_Serialize_Args::serialized_bytes_size, serialized->bytes);
  args->serialized_topology = serialized;
  args->serialized_topology_deleter = [](PJRT_SerializedTopology* topology) { delete topology; };
  return absl::OkStatus();
}

absl::Status TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args* args) {
  std::string_view bytes = TextOf(args->serialized_topology, args->serialized_topology_size);
  const std::string_view magic = kSerializedMagic;
  const size_t line = bytes.find('\n', magic.size());
  if (!bytes.starts_with(magic) || line == std::string_view::npos || bytes.back() != '\n' || line + 1 == bytes.size()) {
    return absl::InvalidArgumentError("not a topology that this version of hlokit serialized");
  }
  const std::string_view platform = bytes.substr(magic.size(), line - magic.size());
  const std::string_view device = bytes.substr(line + 1, bytes.size() - line - 2);
  absl::StatusOr<std::unique_ptr<PJRT_TopologyDescription>> topology = CreateTopology(platform, device);
  if (!topology.ok()) return topology.status();
  args->topology = topology->release();
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
