// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/buffer.h"

#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/buffer_type.h"
#include "pjrt/values/functions.h"
#include "pjrt/values/host_array.h"
#include "pjrt/values/layout.h"

using hlokit::Literal;
using hlokit::runtime::BufferUse;
using hlokit::runtime::DeviceBuffer;

PJRT_Buffer::PJRT_Buffer(PJRT_Memory* memory_in, hlokit::pjrt::BufferSpec spec_in, std::shared_ptr<DeviceBuffer> value,
                         std::shared_ptr<hlokit::pjrt::Event> ready_in, bool borrowed_in,
                         std::vector<std::shared_ptr<DeviceBuffer>> sizes_in)
    : memory(memory_in),
      spec(std::move(spec_in)),
      ready(std::move(ready_in)),
      borrowed(borrowed_in),
      sizes(std::move(sizes_in)),
      value_(std::move(value)),
      bytes_(std::make_unique<hlokit::pjrt::ByteCount>(memory->device, spec.bytes)) {}

absl::StatusOr<std::shared_ptr<DeviceBuffer>> PJRT_Buffer::value() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (value_ == nullptr || value_->donated()) return DeviceBuffer::DeletedError();
  return value_;
}

absl::StatusOr<absl::Span<const int64_t>> PJRT_Buffer::LogicalDims() const {
  if (spec.dynamic_dims.empty()) return absl::MakeConstSpan(spec.dims);
  std::vector<int64_t> dims = spec.dims;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (absl::Status status = sizes[i]->WaitInUse(); !status.ok()) return status;
    int64_t& dim = dims[spec.dynamic_dims[i]];
    dim = std::clamp<int64_t>(sizes[i]->literal().values<int32_t>()[0], 0, dim);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (logical_dims_.empty()) logical_dims_ = std::move(dims);
  return absl::MakeConstSpan(logical_dims_);
}

void PJRT_Buffer::Delete() {
  // The value may be a caller's, who is told that it is free: without a lock.
  std::shared_ptr<DeviceBuffer> value;
  std::unique_ptr<hlokit::pjrt::ByteCount> bytes;
  std::lock_guard<std::mutex> lock(mutex_);
  value = std::move(value_);
  bytes = std::move(bytes_);
}

void PJRT_Buffer::WhenReady(std::function<void(const absl::StatusOr<const Literal*>&)> read) const {
  absl::StatusOr<std::shared_ptr<DeviceBuffer>> now = value();
  if (!now.ok()) return read(now.status());
  auto use = std::make_shared<const BufferUse>(*now);
  if (use->get() == nullptr) return read(DeviceBuffer::DeletedError());
  ready->OnReady([use = std::move(use), read = std::move(read)](const absl::Status& status) {
    if (!status.ok()) return read(status);
    const absl::Status waited = use->get()->WaitInUse();
    if (!waited.ok()) return read(waited);
    read(&use->get()->literal());
  });
}

absl::StatusOr<int64_t> PJRT_Buffer::AddExternalReferences(int64_t count) {
  std::unique_ptr<BufferUse> released;
  std::lock_guard<std::mutex> lock(mutex_);
  if (external_references_ + count < 0) {
    return absl::InvalidArgumentError("the buffer has no external references");
  }
  if (external_references_ == 0 && count > 0) {
    if (value_ == nullptr) return DeviceBuffer::DeletedError();
    auto use = std::make_unique<BufferUse>(value_);
    if (use->get() == nullptr) return DeviceBuffer::DeletedError();
    external_use_ = std::move(use);
  }
  external_references_ += count;
  if (external_references_ == 0) released = std::move(external_use_);
  return external_references_;
}

absl::StatusOr<const std::byte*> PJRT_Buffer::Data() const {
  const absl::StatusOr<std::shared_ptr<DeviceBuffer>> available = value();
  if (!available.ok()) return available.status();
  if (absl::Status status = (*available)->Wait(); !status.ok()) return status;
  static const std::byte empty{0};
  std::lock_guard<std::mutex> lock(mutex_);
  const std::byte* const data =
      in_layout_.empty() ? hlokit::pjrt::InLayout(spec, (*available)->literal(), &in_layout_) : in_layout_.data();
  return data != nullptr ? data : &empty;
}

bool PJRT_Buffer::HasExternalReferences() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return external_references_ > 0;
}

namespace hlokit::pjrt {

absl::StatusOr<BufferSpec> ReadBufferSpec(PJRT_Buffer_Type type, const int64_t* dims, size_t num_dims) {
  constexpr size_t kMaxRank = 1 << 16;
  const absl::StatusOr<ElementType> element = ElementTypeOf(type);
  if (!element.ok()) return element.status();
  if (num_dims > kMaxRank || (dims == nullptr && num_dims != 0)) {
    return absl::InvalidArgumentError(StrCat("an array of ", static_cast<int64_t>(num_dims), " dimensions"));
  }
  BufferSpec spec;
  spec.type = *element;
  spec.dims.assign(dims, dims + num_dims);
  if (spec.type == ElementType::kToken) {
    if (num_dims != 0) return absl::InvalidArgumentError("a token has no dimensions");
    return spec;
  }
  const absl::StatusOr<int64_t> bytes = HostBytes(spec.type, spec.dims);
  if (!bytes.ok()) return bytes.status();
  spec.bytes = *bytes;
  return spec;
}

const std::byte* InLayout(const BufferSpec& spec, const Literal& value, std::vector<std::byte>* copy) {
  if (spec.minor_to_major.empty()) return value.data();
  copy->resize(value.size_bytes());
  CopyStrided(value.data(), DenseStrides(spec.type, spec.dims), copy->data(),
              StridesOfOrder(spec.minor_to_major, spec.type, spec.dims), spec.dims, BytesOf(spec.type));
  return copy->data();
}

PJRT_Buffer* NewBuffer(PJRT_Memory* memory, BufferSpec spec, Literal value, std::shared_ptr<Context> context,
                       bool borrowed) {
  // Freed by whoever lets go of it, at once: a caller waits for the end of a borrowed value.
  auto held = std::make_shared<DeviceBuffer>(std::move(value), std::move(context));
  return new PJRT_Buffer(memory, std::move(spec), std::move(held), Event::Ready(), borrowed);
}

absl::StatusOr<PJRT_Memory*> MemoryOf(PJRT_Client* client, PJRT_Memory* memory, PJRT_Device* device) {
  if (memory == nullptr && device == nullptr)
    return absl::InvalidArgumentError("neither a memory nor a device is given");
  const std::vector<PJRT_Memory*>& memories = client->memory_pointers;
  if (memory != nullptr && std::find(memories.begin(), memories.end(), memory) == memories.end()) {
    return absl::InvalidArgumentError("the memory is not one of the client");
  }
  const std::vector<PJRT_Device*>& devices = client->device_pointers;
  if (device != nullptr && std::find(devices.begin(), devices.end(), device) == devices.end()) {
    return absl::InvalidArgumentError("the device is not one of the client");
  }
  if (memory != nullptr) return memory;
  if (device->memories.empty()) {
    return absl::InvalidArgumentError(
        StrCat("device ", device->description->id, " is of process ", device->description->process_index));
  }
  return device->memories.front();
}

absl::Status Buffer_Destroy(PJRT_Buffer_Destroy_Args* args) {
  delete args->buffer;
  return absl::OkStatus();
}

absl::Status Buffer_ElementType(PJRT_Buffer_ElementType_Args* args) {
  args->type = BufferTypeOf(args->buffer->spec.type);
  return absl::OkStatus();
}

absl::Status Buffer_Dimensions(PJRT_Buffer_Dimensions_Args* args) {
  args->dims = args->buffer->spec.dims.data();
  args->num_dims = args->buffer->spec.dims.size();
  return absl::OkStatus();
}

absl::Status Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args* args) {
  const absl::StatusOr<absl::Span<const int64_t>> dims = args->buffer->LogicalDims();
  if (!dims.ok()) return dims.status();
  args->unpadded_dims = dims->data();
  args->num_dims = dims->size();
  return absl::OkStatus();
}

absl::Status Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args* args) {
  args->dynamic_dim_indices = args->buffer->spec.dynamic_dims.data();
  args->num_dynamic_dims = args->buffer->spec.dynamic_dims.size();
  return absl::OkStatus();
}

absl::Status Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args* args) {
  // A list of dimensions from the last to the first, shared by all buffers of the rank.
  static constexpr size_t kMaxRank = 64;
  static constexpr auto kOrder = [] {
    std::array<int64_t, kMaxRank> order = {};
    for (size_t i = 0; i < kMaxRank; ++i) order[i] = static_cast<int64_t>(kMaxRank - 1 - i);
    return order;
  }();
  const size_t rank = args->buffer->spec.dims.size();
  if (rank > kMaxRank) return absl::UnimplementedError("the layout of an array of more than 64 dimensions");
  args->layout = {};
  args->layout.struct_size = offsetof(PJRT_Buffer_MemoryLayout, type) + sizeof(args->layout.type);
  args->layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args->layout.tiled.struct_size = sizeof(PJRT_Buffer_MemoryLayout_Tiled);
  const std::vector<int64_t>& own = args->buffer->spec.minor_to_major;
  args->layout.tiled.minor_to_major = own.empty() ? kOrder.data() + (kMaxRank - rank) : own.data();
  args->layout.tiled.minor_to_major_size = rank;
  return absl::OkStatus();
}

absl::Status Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args* args) {
  args->on_device_size_in_bytes = static_cast<size_t>(args->buffer->spec.bytes);
  return absl::OkStatus();
}

absl::Status Buffer_Device(PJRT_Buffer_Device_Args* args) {
  args->device = args->buffer->device();
  return absl::OkStatus();
}

absl::Status Buffer_Memory(PJRT_Buffer_Memory_Args* args) {
  args->memory = args->buffer->memory;
  return absl::OkStatus();
}

absl::Status Buffer_Delete(PJRT_Buffer_Delete_Args* args) {
  args->buffer->Delete();
  return absl::OkStatus();
}

absl::Status Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args* args) {
  args->is_deleted = args->buffer->IsDeleted();
  return absl::OkStatus();
}

absl::Status Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args* args) {
  args->is_on_cpu = true;
  return absl::OkStatus();
}

absl::Status Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args* args) {
  const absl::Status deleted = args->buffer->value().status();
  args->event = NewEvent(deleted.ok() ? args->buffer->ready : Event::Ready(deleted));
  return absl::OkStatus();
}

absl::Status Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args* args) {
  const absl::StatusOr<const std::byte*> data = args->buffer->Data();
  if (!data.ok()) return data.status();
  args->buffer_pointer = reinterpret_cast<uintptr_t>(*data);
  return absl::OkStatus();
}

absl::Status Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args* args) {
  const absl::StatusOr<const std::byte*> data = args->buffer->Data();
  if (!data.ok()) return data.status();
  args->device_memory_ptr = const_cast<std::byte*>(*data);
  return absl::OkStatus();
}

absl::Status Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args* args) {
  return args->buffer->AddExternalReferences(1).status();
}

absl::Status Buffer_DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args* args) {
  return args->buffer->AddExternalReferences(-1).status();
}

}  // namespace hlokit::pjrt
