// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/client.h"

#include <algorithm>

#include "interp/processor/instruction_set.h"
#include "ir/core/str_cat.h"
#include "pjrt/client/profiler.h"
#include "pjrt/ffi/ffi_handlers.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/functions.h"

namespace {

void* GetUserData(PJRT_Memory* memory, void* key) {
  std::lock_guard<std::mutex> lock(memory->mutex);
  const auto it = memory->user_data.find(key);
  return it == memory->user_data.end() ? nullptr : it->second.data;
}

void SetUserData(PJRT_Memory* memory, void* key, void* data, void (*destructor)(void*)) {
  PJRT_Memory::UserData before;
  {
    std::lock_guard<std::mutex> lock(memory->mutex);
    before = std::exchange(memory->user_data[key], {data, destructor});
  }
  if (before.destructor != nullptr) before.destructor(before.data);
}

constexpr PJRT_Memory_FunctionTable kMemoryFunctions = {
    .struct_size = sizeof(PJRT_Memory_FunctionTable),
    .extension_start = nullptr,
    .instance_struct_size = sizeof(PJRT_Memory),
    .get_user_data = GetUserData,
    .set_user_data = SetUserData,
};

}  // namespace

PJRT_Memory::PJRT_Memory() : functions(&kMemoryFunctions) {}

PJRT_Memory::~PJRT_Memory() {
  for (const auto& [key, value] : user_data) {
    if (value.destructor != nullptr) value.destructor(value.data);
  }
}

void PJRT_Device::AddBytes(int64_t bytes) {
  const int64_t now = bytes_in_use.fetch_add(bytes) + bytes;
  if (bytes > 0) ++allocations;
  int64_t peak = peak_bytes_in_use.load();
  while (now > peak && !peak_bytes_in_use.compare_exchange_weak(peak, now)) {
  }
}

std::pair<std::shared_ptr<hlokit::Context>, hlokit::Shape> PJRT_Client::ShapeOf(hlokit::ElementType type,
                                                                                absl::Span<const int64_t> dims) {
  constexpr size_t kMaxShapes = 4096;
  ShapeKey key(type, {dims.begin(), dims.end()});
  std::lock_guard<std::mutex> lock(shapes_mutex_);
  if (const auto it = shapes_.find(key); it != shapes_.end()) return it->second;
  auto context = std::make_shared<hlokit::Context>();
  const hlokit::Shape shape =
      type == hlokit::ElementType::kToken ? context->shapes.Token() : context->shapes.Array(type, dims);
  if (shapes_.size() >= kMaxShapes) shapes_.clear();
  return shapes_.emplace(std::move(key), std::make_pair(std::move(context), shape)).first->second;
}

PJRT_Device* PJRT_Client::FindDevice(int64_t id) {
  return id < 0 || id >= static_cast<int64_t>(devices.size()) ? nullptr : &devices[static_cast<size_t>(id)];
}

namespace hlokit::pjrt {

absl::StatusOr<std::unique_ptr<PJRT_Client>> CreateClient(const ClientConfig& config) {
  auto client = std::make_unique<PJRT_Client>();
  client->config = config;
  const interp::EngineKind engine = interp::EngineKindOf(config.engine).value_or(interp::EngineKind::kExact);
  if (interp::RowOf(engine).generates_code) {
    if (const std::string error = interp::InstructionSetError(); !error.empty()) {
      return absl::InvalidArgumentError(error);
    }
  }
  std::string device = config.device;
  if (config.num_devices != 0) {
    if (device.starts_with("cpu:")) {
      return absl::InvalidArgumentError(StrCat("device ", device, " names a number of devices, and num_devices is ",
                                               config.num_devices, ": leave one of them out"));
    }
    if (device != "cpu") {
      return absl::InvalidArgumentError(
          StrCat("num_devices is for the device cpu; the number of devices of ", device, " follows from its topology"));
    }
    device = StrCat("cpu:", config.num_devices);
  }
  absl::StatusOr<std::unique_ptr<PJRT_TopologyDescription>> topology = CreateTopology(config.platform, device);
  if (!topology.ok()) return topology.status();
  client->topology = *std::move(topology);
  if (!config.report.empty()) {
    if (client->topology->device.starts_with("cpu")) {
      return absl::InvalidArgumentError(
          "report: reports are of simulated devices; device names one, such as v5p:2x2x1");
    }
    client->simulation_log = std::make_unique<SimulationLog>(config.report, client->topology->device);
  }

  runtime::ClientOptions options;
  options.num_devices = static_cast<int>(client->topology->descriptions.size());
  options.platform = config.platform;
  // Simulations of profiles compile programs for the device that they are for.
  options.keep_lowered = !client->topology->device.starts_with("cpu");
  SetProfiledDevice(client->topology->device);
  options.engine = engine;
  options.evaluator.num_threads = static_cast<int>(std::min<int64_t>(config.num_threads, 1024));
  if (config.max_bytes > 0) options.evaluator.limits.max_bytes = config.max_bytes;
  options.evaluator.limits.max_bytes_flag = "option max_bytes";
  if (config.max_seconds > 0) {
    options.evaluator.limits.max_seconds = static_cast<double>(config.max_seconds);
    options.evaluator.limits.max_seconds_flag = "option max_seconds";
    options.collective_timeout_seconds =
        std::min(options.collective_timeout_seconds, static_cast<double>(config.max_seconds));
  }
  options.evaluator.custom_calls = FfiHandlersOf(config.platform);
  client->runtime = std::make_unique<runtime::Client>(options, &client->metrics);
  for (PJRT_DeviceDescription& description : client->topology->descriptions) {
    PJRT_Device& added = client->devices.emplace_back();
    added.client = client.get();
    added.description = &description;
    added.runtime = client->runtime->devices()[static_cast<size_t>(description.id)].get();
    client->device_pointers.push_back(&added);
    for (size_t kind = 0; kind < std::size(kMemoryKinds); ++kind) {
      PJRT_Memory& memory = client->memories.emplace_back();
      memory.device = &added;
      memory.id = static_cast<int>(client->memories.size()) - 1;
      memory.kind_id = static_cast<int>(kind);
      memory.kind = kMemoryKinds[kind];
      memory.debug_string = StrCat(memory.kind, " memory of ", description.debug_string);
      memory.to_string = StrCat(memory.kind, " memory ", memory.id, " of device ", description.id);
      added.memories.push_back(&memory);
      client->memory_pointers.push_back(&memory);
    }
  }
  return client;
}

absl::Status Client_Create(PJRT_Client_Create_Args* args) {
  if (args->create_options == nullptr && args->num_options != 0) {
    return absl::InvalidArgumentError("PJRT_Client_Create: the list of options is null");
  }
  absl::StatusOr<ClientConfig> config = ReadClientConfig(absl::MakeConstSpan(args->create_options, args->num_options));
  if (!config.ok()) return config.status();
  absl::StatusOr<std::unique_ptr<PJRT_Client>> client = CreateClient(*config);
  if (!client.ok()) return client.status();
  args->client = client->release();
  return absl::OkStatus();
}

absl::Status Client_Destroy(PJRT_Client_Destroy_Args* args) {
  delete args->client;
  return absl::OkStatus();
}

absl::Status Client_PlatformName(PJRT_Client_PlatformName_Args* args) {
  SetText(args, &PJRT_Client_PlatformName_Args::platform_name, &PJRT_Client_PlatformName_Args::platform_name_size,
          args->client->topology->platform);
  return absl::OkStatus();
}

absl::Status Client_ProcessIndex(PJRT_Client_ProcessIndex_Args* args) {
  args->process_index = 0;
  return absl::OkStatus();
}

absl::Status Client_PlatformVersion(PJRT_Client_PlatformVersion_Args* args) {
  SetText(args, &PJRT_Client_PlatformVersion_Args::platform_version,
          &PJRT_Client_PlatformVersion_Args::platform_version_size, args->client->topology->platform_version);
  return absl::OkStatus();
}

absl::Status Client_Devices(PJRT_Client_Devices_Args* args) {
  args->devices = args->client->device_pointers.data();
  args->num_devices = args->client->device_pointers.size();
  return absl::OkStatus();
}

absl::Status Client_AddressableDevices(PJRT_Client_AddressableDevices_Args* args) {
  args->addressable_devices = args->client->device_pointers.data();
  args->num_addressable_devices = args->client->device_pointers.size();
  return absl::OkStatus();
}

absl::Status Client_LookupDevice(PJRT_Client_LookupDevice_Args* args) {
  PJRT_Device* const device = args->client->FindDevice(args->id);
  if (device == nullptr) {
    return absl::InvalidArgumentError(StrCat("No matching device found for device_id ", args->id));
  }
  args->device = device;
  return absl::OkStatus();
}

absl::Status Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args* args) {
  PJRT_Device* const device = args->client->FindDevice(args->local_hardware_id);
  if (device == nullptr) {
    return absl::InvalidArgumentError(
        StrCat("No matching device found for local_hardware_id ", args->local_hardware_id));
  }
  args->addressable_device = device;
  return absl::OkStatus();
}

absl::Status Client_AddressableMemories(PJRT_Client_AddressableMemories_Args* args) {
  args->addressable_memories = args->client->memory_pointers.data();
  args->num_addressable_memories = args->client->memory_pointers.size();
  return absl::OkStatus();
}

absl::Status Client_TopologyDescription(PJRT_Client_TopologyDescription_Args* args) {
  args->topology = args->client->topology.get();
  return absl::OkStatus();
}

absl::Status Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args* args) {
  if (args->num_replicas <= 0 || args->num_partitions <= 0) {
    return absl::InvalidArgumentError(StrCat("num_replicas and num_partitions must be positive, got ",
                                             args->num_replicas, " and ", args->num_partitions));
  }
  const int64_t size = int64_t{args->num_replicas} * args->num_partitions;
  if (args->default_assignment_size < static_cast<uint64_t>(size)) {
    return absl::FailedPreconditionError(StrCat(
        "the array of the device assignment has ", static_cast<int64_t>(args->default_assignment_size),
        " elements, and ", args->num_replicas, " replicas of ", args->num_partitions, " partitions take ", size));
  }
  const int64_t devices = static_cast<int64_t>(args->client->devices.size());
  for (int64_t i = 0; i < size; ++i) args->default_assignment[i] = static_cast<int>(i % devices);
  return absl::OkStatus();
}

// The memory of a process is the device's: nothing has to be mapped for transfers.
absl::Status Client_DmaMap(PJRT_Client_DmaMap_Args*) { return absl::OkStatus(); }
absl::Status Client_DmaUnmap(PJRT_Client_DmaUnmap_Args*) { return absl::OkStatus(); }
// There is one process.
absl::Status Client_UpdateGlobalProcessInfo(PJRT_Client_UpdateGlobalProcessInfo_Args*) { return absl::OkStatus(); }

}  // namespace hlokit::pjrt
