// SPDX-License-Identifier: Apache-2.0
// Asynchronous transfers: several buffers that exist before their contents arrive, in pieces.
#include <cstring>
#include <deque>
#include <utility>

#include "ir/core/str_cat.h"
#include "pjrt/client/buffer.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/error.h"
#include "pjrt/values/functions.h"
#include "pjrt/values/host_array.h"
#include "pjrt/values/layout.h"

struct PJRT_AsyncHostToDeviceTransferManager {
  struct Target {
    hlokit::pjrt::BufferSpec spec;
    std::shared_ptr<hlokit::Context> context;
    hlokit::Literal contents;  // moved into the buffer at the end
    std::shared_ptr<hlokit::runtime::DeviceBuffer> value;
    std::shared_ptr<hlokit::pjrt::Event> ready = std::make_shared<hlokit::pjrt::Event>();
    bool retrieved = false;
    bool finished = false;
  };
  PJRT_Memory* memory = nullptr;
  std::mutex mutex;
  std::deque<Target> targets;

  // Buffers whose contents never came are errors.
  ~PJRT_AsyncHostToDeviceTransferManager() {
    for (Target& target : targets) {
      if (target.finished) continue;
      const absl::Status status = absl::AbortedError("the transfer ended before the contents of the buffer arrived");
      target.value->Fail(status);
      target.ready->Set(status);
    }
  }
};

namespace hlokit::pjrt {
namespace {

using Manager = PJRT_AsyncHostToDeviceTransferManager;

absl::StatusOr<Manager::Target*> TargetOf(Manager* manager, int index) {
  if (index < 0 || index >= static_cast<int>(manager->targets.size())) {
    return absl::InvalidArgumentError(StrCat("there is no buffer ", index, " in the transfer, which has ",
                                             static_cast<int64_t>(manager->targets.size())));
  }
  return &manager->targets[static_cast<size_t>(index)];
}

// Puts contents that came in the order of the buffer's layout into ours.
void MakeRowMajor(Manager::Target* target) {
  const BufferSpec& spec = target->spec;
  if (spec.minor_to_major.empty()) return;
  Literal ordered = Literal::Zeros(target->contents.shape());
  CopyStrided(target->contents.data(), StridesOfOrder(spec.minor_to_major, spec.type, spec.dims), ordered.data(),
              DenseStrides(spec.type, spec.dims), spec.dims, BytesOf(spec.type));
  target->contents = std::move(ordered);
}

// Copies bytes into a buffer; `last`: it is complete. Callers' callbacks run without the lock.
absl::Status Transfer(Manager* manager, int index, const void* data, int64_t offset, int64_t size, bool last) {
  std::shared_ptr<Event> complete;
  {
    std::lock_guard<std::mutex> lock(manager->mutex);
    const absl::StatusOr<Manager::Target*> target = TargetOf(manager, index);
    if (!target.ok()) return target.status();
    Manager::Target& to = **target;
    if (to.finished) return absl::FailedPreconditionError(StrCat("buffer ", index, " of the transfer is complete"));
    if (offset < 0 || size < 0 || offset > to.spec.bytes || size > to.spec.bytes - offset) {
      return absl::InvalidArgumentError(
          StrCat(size, " bytes from ", offset, " of a buffer of ", to.spec.bytes, " bytes"));
    }
    if (size != 0) {
      if (data == nullptr) return absl::InvalidArgumentError("the data of the transfer are null");
      std::memcpy(to.contents.data() + offset, data, static_cast<size_t>(size));
    }
    if (last) {
      to.finished = true;
      Normalize(to.spec.type, absl::MakeSpan(to.contents.data(), static_cast<size_t>(to.spec.bytes)));
      MakeRowMajor(&to);
      to.value->SetValue(std::move(to.contents), to.context);
      complete = to.ready;
    }
  }
  if (complete != nullptr) complete->Set(absl::OkStatus());
  return absl::OkStatus();
}

}  // namespace

absl::Status Client_CreateBuffersForAsyncHostToDevice(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args* args) {
  const absl::StatusOr<PJRT_Memory*> memory = MemoryOf(args->client, args->memory, nullptr);
  if (!memory.ok()) return memory.status();
  if (args->shape_specs == nullptr && args->num_shape_specs != 0) {
    return absl::InvalidArgumentError("the list of shapes is null");
  }
  auto manager = std::make_unique<Manager>();
  manager->memory = *memory;
  for (size_t i = 0; i < args->num_shape_specs; ++i) {
    const PJRT_ShapeSpec& shape_spec = args->shape_specs[i];
    absl::StatusOr<BufferSpec> spec = ReadBufferSpec(shape_spec.element_type, shape_spec.dims, shape_spec.num_dims);
    if (spec.ok() && spec->bytes > args->client->runtime->options().evaluator.limits.max_bytes) {
      spec = absl::ResourceExhaustedError(StrCat("out of memory: an array of ", spec->bytes, " bytes; ",
                                                 args->client->runtime->options().evaluator.limits.BytesText()));
    }
    if (spec.ok() && args->device_layouts != nullptr && i < args->num_device_layouts) {
      absl::StatusOr<std::vector<int64_t>> order = ReadOrder(args->device_layouts[i], spec->dims.size());
      if (order.ok()) {
        spec->minor_to_major = *std::move(order);
      } else {
        spec = order.status();
      }
    }
    if (!spec.ok()) {
      for (Manager::Target& target : manager->targets) target.finished = true;
      return spec.status();
    }
    Manager::Target& target = manager->targets.emplace_back();
    auto [context, shape] = args->client->ShapeOf(spec->type, spec->dims);
    target.spec = *std::move(spec);
    target.contents = Literal::Zeros(shape);
    target.context = std::move(context);
    target.value = (*memory)->device->runtime->CreatePendingBuffer();
  }
  args->transfer_manager = manager.release();
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_Destroy(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args* args) {
  delete args->transfer_manager;
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_TransferData(
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args* args) {
  absl::Status status = Transfer(args->transfer_manager, args->buffer_index, args->data, args->offset,
                                 args->transfer_size, args->is_last_transfer);
  if (!status.ok()) return status;
  args->done_with_h2d_transfer = NewEvent(Event::Ready());
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_TransferLiteral(
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args* args) {
  const absl::StatusOr<BufferSpec> spec =
      ReadBufferSpec(args->shape_element_type, args->shape_dims, args->shape_num_dims);
  if (!spec.ok()) return spec.status();
  const absl::StatusOr<std::vector<int64_t>> strides = StridesOf(args->shape_layout, spec->type, spec->dims);
  if (!strides.ok()) return strides.status();
  const absl::StatusOr<std::vector<int64_t>> wanted = [&]() -> absl::StatusOr<std::vector<int64_t>> {
    const std::lock_guard<std::mutex> lock(args->transfer_manager->mutex);
    const absl::StatusOr<Manager::Target*> target = TargetOf(args->transfer_manager, args->buffer_index);
    if (!target.ok()) return target.status();
    if ((*target)->spec.dims != spec->dims || (*target)->spec.type != spec->type) {
      return absl::InvalidArgumentError(StrCat("the array is not one for buffer ", args->buffer_index));
    }
    return StridesOfOrder((*target)->spec.minor_to_major, spec->type, spec->dims);
  }();
  if (!wanted.ok()) return wanted.status();
  std::vector<std::byte> ordered;
  const void* data = args->data;
  if (*strides != *wanted && data != nullptr) {
    ordered.resize(static_cast<size_t>(spec->bytes));
    CopyStrided(static_cast<const std::byte*>(data), *strides, ordered.data(), *wanted, spec->dims,
                BytesOf(spec->type));
    data = ordered.data();
  }
  absl::Status status = Transfer(args->transfer_manager, args->buffer_index, data, 0, spec->bytes, /*last=*/true);
  if (!status.ok()) return status;
  args->done_with_h2d_transfer = NewEvent(Event::Ready());
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_RetrieveBuffer(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args* args) {
  Manager* const manager = args->transfer_manager;
  std::lock_guard<std::mutex> lock(manager->mutex);
  const absl::StatusOr<Manager::Target*> target = TargetOf(manager, args->buffer_index);
  if (!target.ok()) return target.status();
  if (std::exchange((*target)->retrieved, true)) {
    return absl::FailedPreconditionError(StrCat("buffer ", args->buffer_index, " was retrieved before"));
  }
  args->buffer_out = new PJRT_Buffer(manager->memory, (*target)->spec, (*target)->value, (*target)->ready);
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_Device(PJRT_AsyncHostToDeviceTransferManager_Device_Args* args) {
  args->device_out = args->transfer_manager->memory->device;
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_BufferCount(
    PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args* args) {
  args->buffer_count = args->transfer_manager->targets.size();
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_BufferSize(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args* args) {
  const absl::StatusOr<Manager::Target*> target = TargetOf(args->transfer_manager, args->buffer_index);
  if (!target.ok()) return target.status();
  args->buffer_size = static_cast<size_t>((*target)->spec.bytes);
  return absl::OkStatus();
}

absl::Status AsyncHostToDeviceTransferManager_SetBufferError(
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args* args) {
  const absl::Status error = StatusOf(args->error_code, args->error_message, args->error_message_size);
  std::shared_ptr<Event> complete;
  {
    std::lock_guard<std::mutex> lock(args->transfer_manager->mutex);
    const absl::StatusOr<Manager::Target*> target = TargetOf(args->transfer_manager, args->buffer_index);
    if (!target.ok()) return target.status();
    if (error.ok()) return absl::InvalidArgumentError("the error of a buffer is OK");
    if (std::exchange((*target)->finished, true)) return absl::OkStatus();
    (*target)->value->Fail(error);
    complete = (*target)->ready;
  }
  complete->Set(error);
  return absl::OkStatus();
}

// Metadata have no effect.
absl::Status AsyncHostToDeviceTransferManager_AddMetadata(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args*) {
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
