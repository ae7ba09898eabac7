// SPDX-License-Identifier: Apache-2.0
// Functions of devices and memories.
#include "ir/core/str_cat.h"
#include "pjrt/client/client.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/functions.h"

namespace hlokit::pjrt {
namespace {

absl::Status NotAddressable(const PJRT_Device& device) {
  return absl::InvalidArgumentError(
      StrCat("device ", device.description->id, " is of process ", device.description->process_index));
}

}  // namespace

absl::Status Device_GetDescription(PJRT_Device_GetDescription_Args* args) {
  args->device_description = args->device->description;
  return absl::OkStatus();
}

absl::Status Device_IsAddressable(PJRT_Device_IsAddressable_Args* args) {
  args->is_addressable = args->device->runtime != nullptr;
  return absl::OkStatus();
}

absl::Status Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args* args) {
  args->local_hardware_id = args->device->runtime == nullptr ? -1 : args->device->description->local_id;
  return absl::OkStatus();
}

absl::Status Device_AddressableMemories(PJRT_Device_AddressableMemories_Args* args) {
  args->memories = args->device->memories.data();
  args->num_memories = args->device->memories.size();
  return absl::OkStatus();
}

absl::Status Device_DefaultMemory(PJRT_Device_DefaultMemory_Args* args) {
  if (args->device->memories.empty()) return NotAddressable(*args->device);
  args->memory = args->device->memories.front();
  return absl::OkStatus();
}

absl::Status Device_MemoryStats(PJRT_Device_MemoryStats_Args* args) {
  using Args = PJRT_Device_MemoryStats_Args;
  const PJRT_Device& device = *args->device;
  if (device.runtime == nullptr) return NotAddressable(device);
  SetField(args, &Args::bytes_in_use, device.bytes_in_use.load());
  const auto set = [args](int64_t Args::*value, bool Args::*is_set, int64_t number) {
    SetField(args, value, number);
    SetField(args, is_set, true);
  };
  const auto unset = [args](int64_t Args::*value, bool Args::*is_set) {
    SetField(args, value, int64_t{0});
    SetField(args, is_set, false);
  };
  set(&Args::peak_bytes_in_use, &Args::peak_bytes_in_use_is_set, device.peak_bytes_in_use.load());
  set(&Args::num_allocs, &Args::num_allocs_is_set, device.allocations.load());
  // What a program may count on: the memory of the device that is simulated, whatever this machine has of it.
  const int64_t hbm = device.description->hbm_bytes;
  set(&Args::bytes_limit, &Args::bytes_limit_is_set,
      hbm > 0 ? hbm : device.client->runtime->options().evaluator.limits.max_bytes);
  unset(&Args::largest_alloc_size, &Args::largest_alloc_size_is_set);
  unset(&Args::bytes_reserved, &Args::bytes_reserved_is_set);
  unset(&Args::peak_bytes_reserved, &Args::peak_bytes_reserved_is_set);
  unset(&Args::bytes_reservable_limit, &Args::bytes_reservable_limit_is_set);
  unset(&Args::largest_free_block_bytes, &Args::largest_free_block_bytes_is_set);
  unset(&Args::pool_bytes, &Args::pool_bytes_is_set);
  unset(&Args::peak_pool_bytes, &Args::peak_pool_bytes_is_set);
  unset(&Args::peak_allocated_bytes, &Args::peak_allocated_bytes_is_set);
  return absl::OkStatus();
}

absl::Status Device_ClearMemoryStats(PJRT_Device_ClearMemoryStats_Args* args) {
  args->device->peak_bytes_in_use = args->device->bytes_in_use.load();
  args->device->allocations = 0;
  return absl::OkStatus();
}

// The attributes are those of the description, which nobody has to free.
absl::Status Device_GetAttributes(PJRT_Device_GetAttributes_Args* args) {
  args->attributes = args->device->description->attributes.data();
  args->num_attributes = args->device->description->attributes.size();
  args->device_attributes = nullptr;
  args->attributes_deleter = [](PJRT_Device_Attributes*) {};
  return absl::OkStatus();
}

absl::Status Device_PoisonExecution(PJRT_Device_PoisonExecution_Args* args) {
  args->poisoned = false;
  return absl::OkStatus();
}

// The client accepts that there is none.
absl::Status Device_CreateAsyncTrackingEvent(PJRT_Device_CreateAsyncTrackingEvent_Args* args) {
  args->event = nullptr;
  return absl::OkStatus();
}

absl::Status AsyncTrackingEvent_Destroy(PJRT_AsyncTrackingEvent_Destroy_Args*) { return absl::OkStatus(); }

absl::Status Memory_Id(PJRT_Memory_Id_Args* args) {
  args->id = args->memory->id;
  return absl::OkStatus();
}

absl::Status Memory_Kind(PJRT_Memory_Kind_Args* args) {
  SetText(args, &PJRT_Memory_Kind_Args::kind, &PJRT_Memory_Kind_Args::kind_size, args->memory->kind);
  return absl::OkStatus();
}

absl::Status Memory_Kind_Id(PJRT_Memory_Kind_Id_Args* args) {
  args->kind_id = args->memory->kind_id;
  return absl::OkStatus();
}

absl::Status Memory_DebugString(PJRT_Memory_DebugString_Args* args) {
  SetText(args, &PJRT_Memory_DebugString_Args::debug_string, &PJRT_Memory_DebugString_Args::debug_string_size,
          args->memory->debug_string);
  return absl::OkStatus();
}

absl::Status Memory_ToString(PJRT_Memory_ToString_Args* args) {
  SetText(args, &PJRT_Memory_ToString_Args::to_string, &PJRT_Memory_ToString_Args::to_string_size,
          args->memory->to_string);
  return absl::OkStatus();
}

absl::Status Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args* args) {
  args->devices = &args->memory->device;
  args->num_devices = 1;
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
