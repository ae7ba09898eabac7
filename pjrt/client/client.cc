// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/client.h"

#include <algorithm>
#include <limits>

#include "interp/processes/network_world.h"
#include "interp/processor/instruction_set.h"
#include "ir/core/hashing.h"
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

std::shared_ptr<hlokit::interp::World> PJRT_Client::WorldOf(const std::vector<PJRT_Device*>& of) {
  const auto is_here = [](const PJRT_Device* device) { return device->runtime != nullptr; };
  if (network == nullptr || std::all_of(of.begin(), of.end(), is_here) || std::none_of(of.begin(), of.end(), is_here)) {
    return nullptr;
  }
  std::vector<int> ids, process_of;
  for (const PJRT_Device* device : of) {
    ids.push_back(device->description->id);
    process_of.push_back(device->description->process_index);
  }
  std::lock_guard<std::mutex> lock(worlds_mutex_);
  std::shared_ptr<hlokit::interp::World>& world = worlds_[ids];
  if (world == nullptr) {
    world = hlokit::interp::NetworkWorld::Create(network.get(), std::move(process_of),
                                                 hlokit::HashBytes(ids.data(), ids.size() * sizeof(int)),
                                                 config.CollectiveLimit());
  }
  return world;
}

namespace hlokit::pjrt {
namespace {

// Makes one topology of those of all processes, which meet here, and connects with them.
absl::Status JoinProcesses(const KeyValueStore& store, PJRT_Client* client) {
  const ClientConfig& config = client->config;
  absl::StatusOr<Processes> processes = MeetProcesses(store, config, client->topology->device);
  if (!processes.ok()) return processes.status();
  absl::StatusOr<std::unique_ptr<PJRT_TopologyDescription>> topology =
      CreateTopology(config.platform, processes->device);
  if (!topology.ok()) return topology.status();
  client->topology = *std::move(topology);
  client->network = std::move(processes->network);
  SetProcesses(processes->process_of, client->topology.get());
  for (PJRT_DeviceDescription& description : client->topology->descriptions) {
    const int64_t partition = processes->partition_of[static_cast<size_t>(description.process_index)];
    if (partition >= 0) description.attributes.Add("partition_index", partition);
  }
  return absl::OkStatus();
}

void AddMemories(PJRT_Client* client, PJRT_Device* device) {
  for (size_t kind = 0; kind < std::size(kMemoryKinds); ++kind) {
    PJRT_Memory& memory = client->memories.emplace_back();
    memory.device = device;
    memory.id = device->description->id * static_cast<int>(std::size(kMemoryKinds)) + static_cast<int>(kind);
    memory.kind_id = static_cast<int>(kind);
    memory.kind = kMemoryKinds[kind];
    memory.debug_string = StrCat(memory.kind, " memory of ", device->description->debug_string);
    memory.to_string = StrCat(memory.kind, " memory ", memory.id, " of device ", device->description->id);
    device->memories.push_back(&memory);
    client->memory_pointers.push_back(&memory);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<PJRT_Client>> CreateClient(const ClientConfig& config, const KeyValueStore& store) {
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
  if (config.num_nodes > 1) {
    if (absl::Status status = JoinProcesses(store, client.get()); !status.ok()) return status;
  }
  if (!config.report.empty()) {
    if (client->topology->device.starts_with("cpu")) {
      return absl::InvalidArgumentError(
          "report: reports are of simulated devices; device names one, such as v5p:2x2x1");
    }
    client->simulation_log = std::make_unique<SimulationLog>(config.report, client->topology->device);
  }

  runtime::ClientOptions options;
  const std::vector<int>& process_of = client->topology->process_of;
  options.num_devices =
      static_cast<int>(std::count(process_of.begin(), process_of.end(), static_cast<int>(config.node_id)));
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
  // A device may be late because it waits for another process.
  if (config.num_nodes > 1) {
    options.collective_timeout_seconds = config.CollectiveLimit();
  }
  options.evaluator.custom_calls = FfiHandlersOf(config.platform);
  client->runtime = std::make_unique<runtime::Client>(options, &client->metrics);
  for (PJRT_DeviceDescription& description : client->topology->descriptions) {
    PJRT_Device& added = client->devices.emplace_back();
    added.client = client.get();
    added.description = &description;
    client->device_pointers.push_back(&added);
    if (description.process_index != config.node_id) continue;
    added.runtime = client->runtime->devices()[static_cast<size_t>(description.local_id)].get();
    client->addressable_devices.push_back(&added);
    AddMemories(client.get(), &added);
  }
  return client;
}

absl::Status Client_Create(PJRT_Client_Create_Args* args) {
  if (args->create_options == nullptr && args->num_options != 0) {
    return absl::InvalidArgumentError("PJRT_Client_Create: the list of options is null");
  }
  absl::StatusOr<ClientConfig> config = ReadClientConfig(absl::MakeConstSpan(args->create_options, args->num_options));
  if (!config.ok()) return config.status();
  KeyValueStore store;
  if (config->num_nodes > 1) {
    // Otherwise callers leave them unset.
    store = {args->kv_get_callback, args->kv_get_user_arg, args->kv_put_callback, args->kv_put_user_arg};
  }
  absl::StatusOr<std::unique_ptr<PJRT_Client>> client = CreateClient(*config, store);
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
  args->process_index = static_cast<int>(args->client->config.node_id);
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
  args->addressable_devices = args->client->addressable_devices.data();
  args->num_addressable_devices = args->client->addressable_devices.size();
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
  const std::vector<PJRT_Device*>& own = args->client->addressable_devices;
  if (args->local_hardware_id < 0 || static_cast<size_t>(args->local_hardware_id) >= own.size()) {
    return absl::InvalidArgumentError(
        StrCat("No matching device found for local_hardware_id ", args->local_hardware_id));
  }
  args->addressable_device = own[static_cast<size_t>(args->local_hardware_id)];
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
// Connections between processes tell who has ended.
absl::Status Client_UpdateGlobalProcessInfo(PJRT_Client_UpdateGlobalProcessInfo_Args*) { return absl::OkStatus(); }

}  // namespace hlokit::pjrt
