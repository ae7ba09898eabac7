// SPDX-License-Identifier: Apache-2.0
// Transfers: host arrays into buffers and back, copies between memories.
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "pjrt/client/buffer.h"
#include "pjrt/trace/recorder.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/buffer_type.h"
#include "pjrt/values/error.h"
#include "pjrt/values/functions.h"
#include "pjrt/values/host_array.h"
#include "pjrt/values/layout.h"

namespace hlokit::pjrt {
namespace {

// Arrays below this size are copied faster than their owner is told of their end.
constexpr int64_t kMinBorrowedBytes = 1 << 16;
constexpr uintptr_t kBorrowedAlignment = 16;

// Returns a reference to `context` that calls `released` when the last copy of it goes: the end of the value whose
// shape it owns.
std::shared_ptr<Context> NotifyingContext(std::shared_ptr<Context> context, std::function<void()> released) {
  Context* const raw = context.get();
  return std::shared_ptr<Context>(raw,
                                  [context = std::move(context), released = std::move(released)](Context*) mutable {
                                    context.reset();
                                    released();
                                  });
}

// Sets the layout that the caller asks for.
absl::Status SetLayout(const PJRT_Buffer_MemoryLayout* layout, BufferSpec* spec) {
  absl::StatusOr<std::vector<int64_t>> order = ReadOrder(layout, spec->dims.size());
  if (!order.ok()) return order.status();
  spec->minor_to_major = *std::move(order);
  return absl::OkStatus();
}

}  // namespace

absl::Status Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args* args) {
  const absl::StatusOr<PJRT_Memory*> memory = MemoryOf(args->client, args->memory, args->device);
  if (!memory.ok()) return memory.status();
  absl::StatusOr<BufferSpec> spec = ReadBufferSpec(args->type, args->dims, args->num_dims);
  if (!spec.ok()) return spec.status();
  if (spec->type == ElementType::kToken) return absl::InvalidArgumentError("a token has no host array");
  if (args->data == nullptr && spec->bytes != 0) return absl::InvalidArgumentError("the host array is null");
  if (absl::Status status = SetLayout(args->device_layout, &*spec); !status.ok()) return status;
  const std::vector<int64_t> dense = DenseStrides(spec->type, spec->dims);
  std::vector<int64_t> strides = dense;
  if (args->byte_strides != nullptr) {
    if (args->num_byte_strides != spec->dims.size()) {
      return absl::InvalidArgumentError(StrCat("the host array has ", static_cast<int64_t>(args->num_byte_strides),
                                               " strides and ", static_cast<int64_t>(spec->dims.size()),
                                               " dimensions"));
    }
    strides.assign(args->byte_strides, args->byte_strides + args->num_byte_strides);
  }
  const bool zero_copy = args->host_buffer_semantics == PJRT_HostBufferSemantics_kImmutableZeroCopy ||
                         args->host_buffer_semantics == PJRT_HostBufferSemantics_kMutableZeroCopy;
  const auto [context, shape] = args->client->ShapeOf(spec->type, spec->dims);
  if (zero_copy && strides == dense && AllBytesAreValues(spec->type) && spec->bytes >= kMinBorrowedBytes &&
      reinterpret_cast<uintptr_t>(args->data) % kBorrowedAlignment == 0) {
    auto done = std::make_shared<Event>();
    Literal borrowed = Literal::Borrowed(shape, static_cast<std::byte*>(const_cast<void*>(args->data)));
    args->buffer = NewBuffer(*memory, *std::move(spec), std::move(borrowed),
                             NotifyingContext(context, [done] { done->Set(absl::OkStatus()); }), /*borrowed=*/true);
    args->done_with_host_buffer = NewEvent(std::move(done));
    return absl::OkStatus();
  }
  if (spec->bytes > args->client->runtime->options().evaluator.limits.max_bytes) {
    return absl::ResourceExhaustedError(StrCat("out of memory: an array of ", spec->bytes, " bytes; ",
                                               args->client->runtime->options().evaluator.limits.BytesText()));
  }
  Literal value = Literal::Zeros(shape);
  CopyStrided(static_cast<const std::byte*>(args->data), strides, value.data(), dense, spec->dims, BytesOf(spec->type));
  Normalize(spec->type, absl::MakeSpan(value.data(), static_cast<size_t>(spec->bytes)));
  args->buffer = NewBuffer(*memory, *std::move(spec), std::move(value), context);
  args->done_with_host_buffer = NewEvent(Event::Ready());
  return absl::OkStatus();
}

absl::Status Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args* args) {
  const absl::StatusOr<PJRT_Memory*> memory =
      MemoryOf(args->client, FieldOr(*args, &PJRT_Client_CreateViewOfDeviceBuffer_Args::memory, {}), args->device);
  if (!memory.ok()) return memory.status();
  absl::StatusOr<BufferSpec> spec = ReadBufferSpec(args->element_type, args->dims, args->num_dims);
  if (!spec.ok()) return spec.status();
  const absl::StatusOr<std::vector<int64_t>> strides = StridesOf(args->layout, spec->type, spec->dims);
  if (!strides.ok()) return strides.status();
  if (absl::Status status = SetLayout(args->layout, &*spec); !status.ok()) return status;
  if (args->device_buffer_ptr == nullptr && spec->bytes != 0) {
    return absl::InvalidArgumentError("the array of the view is null");
  }
  auto [context, shape] = args->client->ShapeOf(spec->type, spec->dims);
  const std::vector<int64_t> dense = DenseStrides(spec->type, spec->dims);
  const bool aligned = reinterpret_cast<uintptr_t>(args->device_buffer_ptr) % kBorrowedAlignment == 0;
  // A copy has the order of elements, the alignment and the bytes that programs take.
  if (!AllBytesAreValues(spec->type) || *strides != dense || !aligned) {
    Literal copy = Literal::Zeros(shape);
    CopyStrided(static_cast<const std::byte*>(args->device_buffer_ptr), *strides, copy.data(), dense, spec->dims,
                BytesOf(spec->type));
    Normalize(spec->type, absl::MakeSpan(copy.data(), static_cast<size_t>(spec->bytes)));
    args->buffer = NewBuffer(*memory, *std::move(spec), std::move(copy), context);
    if (args->on_delete_callback != nullptr) {
      args->on_delete_callback(args->device_buffer_ptr, args->on_delete_callback_arg);
    }
    return absl::OkStatus();
  }
  if (args->on_delete_callback != nullptr) {
    context = NotifyingContext(context, [callback = args->on_delete_callback, data = args->device_buffer_ptr,
                                         arg = args->on_delete_callback_arg] { callback(data, arg); });
  }
  Literal borrowed = Literal::Borrowed(shape, static_cast<std::byte*>(args->device_buffer_ptr));
  args->buffer = NewBuffer(*memory, *std::move(spec), std::move(borrowed), context, /*borrowed=*/true);
  return absl::OkStatus();
}

absl::Status Client_CreateUninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args* args) {
  const absl::StatusOr<PJRT_Memory*> memory = MemoryOf(args->client, args->memory, args->device);
  if (!memory.ok()) return memory.status();
  absl::StatusOr<BufferSpec> spec = ReadBufferSpec(args->shape_element_type, args->shape_dims, args->shape_num_dims);
  if (!spec.ok()) return spec.status();
  if (absl::Status status = SetLayout(args->shape_layout, &*spec); !status.ok()) return status;
  if (spec->bytes > args->client->runtime->options().evaluator.limits.max_bytes) {
    return absl::ResourceExhaustedError(StrCat("out of memory: an array of ", spec->bytes, " bytes; ",
                                               args->client->runtime->options().evaluator.limits.BytesText()));
  }
  const auto [context, shape] = args->client->ShapeOf(spec->type, spec->dims);
  args->buffer = NewBuffer(*memory, *std::move(spec), Literal::Zeros(shape), context);
  return absl::OkStatus();
}

absl::Status Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args* args) {
  const absl::StatusOr<PJRT_Memory*> memory = MemoryOf(args->client, args->memory, nullptr);
  if (!memory.ok()) return memory.status();
  absl::StatusOr<BufferSpec> spec = ReadBufferSpec(args->shape_element_type, args->shape_dims, args->shape_num_dims);
  if (!spec.ok()) return spec.status();
  if (absl::Status status = SetLayout(args->shape_layout, &*spec); !status.ok()) return status;
  const absl::Status error = StatusOf(args->error_code, args->error_message, args->error_message_size);
  if (error.ok()) return absl::InvalidArgumentError("the error of an error buffer is OK");
  std::shared_ptr<runtime::DeviceBuffer> value = (*memory)->device->runtime->CreatePendingBuffer();
  value->Fail(error);
  args->buffer = new PJRT_Buffer(*memory, *std::move(spec), std::move(value), Event::Ready(error));
  return absl::OkStatus();
}

// A buffer without a value yet.
struct PendingValue {
  std::shared_ptr<Context> context;
  Shape shape;
  std::shared_ptr<runtime::DeviceBuffer> value;
  std::shared_ptr<Event> ready = std::make_shared<Event>();

  PendingValue(PJRT_Memory* memory, const BufferSpec& spec) : value(memory->device->runtime->CreatePendingBuffer()) {
    std::tie(context, shape) = memory->device->client->ShapeOf(spec.type, spec.dims);
  }
  void Fail(const absl::Status& status) const {
    value->Fail(status);
    ready->Set(status);
  }
  // Copies the bytes of `source` when it is available.
  void CopyFrom(const PJRT_Buffer& source) const {
    source.WhenReady([pending = *this](const absl::StatusOr<const Literal*>& literal) {
      if (!literal.ok()) return pending.Fail(literal.status());
      // On a thread of a device, which an exception would end with the process.
      try {
        Literal copied = Literal::Zeros(pending.shape);
        if ((*literal)->size_bytes() != 0) std::memcpy(copied.data(), (*literal)->data(), (*literal)->size_bytes());
        pending.value->SetValue(std::move(copied), pending.context);
      } catch (const std::bad_alloc&) {
        return pending.Fail(absl::ResourceExhaustedError("out of memory: the copy of a buffer"));
      }
      pending.ready->Set(absl::OkStatus());
    });
  }
};

std::shared_ptr<runtime::DeviceBuffer> TokenOf(const PJRT_Buffer& buffer) {
  BufferSpec spec;
  spec.type = ElementType::kToken;
  const PendingValue pending(buffer.memory, spec);
  pending.CopyFrom(buffer);
  return pending.value;
}

namespace {

// Returns a buffer in `memory` that gets the bytes of `source` when they are available.
PJRT_Buffer* NewCopy(const PJRT_Buffer& source, PJRT_Memory* memory, BufferSpec spec) {
  const PendingValue pending(memory, spec);
  auto* const copy =
      new PJRT_Buffer(memory, std::move(spec), pending.value, pending.ready, /*borrowed=*/false, source.sizes);
  pending.CopyFrom(source);
  return copy;
}

absl::StatusOr<PJRT_Buffer*> CopyTo(PJRT_Buffer* source, PJRT_Memory* memory) {
  if (absl::Status status = source->value().status(); !status.ok()) return status;
  const absl::StatusOr<PJRT_Memory*> known = MemoryOf(source->device()->client, memory, nullptr);
  if (!known.ok()) return known.status();
  return NewCopy(*source, memory, source->spec);
}

}  // namespace

absl::Status Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args* args) {
  if (args->dst_device == nullptr) return absl::InvalidArgumentError("the device is null");
  if (args->dst_device == args->buffer->device()) {
    return absl::InvalidArgumentError("CopyToDevice cannot copy to the device that the buffer is on");
  }
  const absl::StatusOr<PJRT_Buffer*> copy = CopyTo(args->buffer, args->dst_device->memories.front());
  if (!copy.ok()) return copy.status();
  args->dst_buffer = *copy;
  return absl::OkStatus();
}

absl::Status Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args* args) {
  if (args->dst_memory == nullptr) return absl::InvalidArgumentError("the memory is null");
  const absl::StatusOr<PJRT_Buffer*> copy = CopyTo(args->buffer, args->dst_memory);
  if (!copy.ok()) return copy.status();
  args->dst_buffer = *copy;
  return absl::OkStatus();
}

absl::Status Buffer_Bitcast(PJRT_Buffer_Bitcast_Args* args) {
  if (absl::Status status = args->buffer->value().status(); !status.ok()) return status;
  absl::StatusOr<BufferSpec> spec = ReadBufferSpec(args->element_type, args->dims, args->num_dims);
  if (!spec.ok()) return spec.status();
  if (!args->buffer->sizes.empty()) return absl::UnimplementedError("a bitcast of an array of a dynamic size");
  if (spec->bytes != args->buffer->spec.bytes) {
    return absl::InvalidArgumentError(
        StrCat("a bitcast from ", args->buffer->spec.bytes, " to ", spec->bytes, " bytes"));
  }
  if (absl::Status status = SetLayout(args->device_layout, &*spec); !status.ok()) return status;
  if (!spec->minor_to_major.empty() || !args->buffer->spec.minor_to_major.empty()) {
    return absl::UnimplementedError("a bitcast of an array that is not row-major");
  }
  if (!AllBytesAreValues(spec->type) && spec->type != args->buffer->spec.type) {
    return absl::UnimplementedError("a bitcast to a type not all of whose bytes are values");
  }
  args->out_buffer = NewCopy(*args->buffer, args->buffer->memory, *std::move(spec));
  return absl::OkStatus();
}

absl::Status Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args* args) {
  const PJRT_Buffer& source = *args->src;
  if (absl::Status status = source.value().status(); !status.ok()) return status;
  // Of a dynamic array, the host gets the elements within its sizes, for which this waits.
  const absl::StatusOr<absl::Span<const int64_t>> dims = source.LogicalDims();
  if (!dims.ok()) return dims.status();
  const absl::StatusOr<int64_t> bytes = HostBytes(source.spec.type, *dims);
  if (!bytes.ok()) return bytes.status();
  if (args->dst == nullptr) {
    args->dst_size = static_cast<size_t>(*bytes);
    args->event = nullptr;
    return absl::OkStatus();
  }
  if (args->host_layout != nullptr && args->host_layout->type == PJRT_Buffer_MemoryLayout_Type_Strides) {
    return absl::InvalidArgumentError(
        "PJRT_Buffer_ToHostBuffer: the host layout has strides; expected an order of "
        "dimensions");
  }
  std::vector<int64_t> sizes(dims->begin(), dims->end());
  absl::StatusOr<std::vector<int64_t>> strides =
      args->host_layout == nullptr ? StridesOfOrder(source.spec.minor_to_major, source.spec.type, sizes)
                                   : StridesOf(args->host_layout, source.spec.type, sizes);
  if (!strides.ok()) return strides.status();
  if (args->dst_size < static_cast<uint64_t>(*bytes)) {
    return absl::InvalidArgumentError(StrCat("PJRT_Buffer_ToHostBuffer: the host array has ",
                                             static_cast<int64_t>(args->dst_size), " bytes, the buffer ", *bytes));
  }
  auto done = std::make_shared<Event>();
  args->event = NewEvent(done);
  source.WhenReady([done, to = static_cast<std::byte*>(args->dst), type = source.spec.type, sizes = std::move(sizes),
                    bytes = *bytes, from_strides = DenseStrides(source.spec.type, source.spec.dims),
                    strides = *std::move(strides),
                    transfer = Recorder::NewTransfer()](const absl::StatusOr<const Literal*>& literal) {
    if (literal.ok()) {
      CopyStrided((*literal)->data(), from_strides, to, strides, sizes, BytesOf(type));
      Recorder::EndTransfer(transfer, to, static_cast<size_t>(bytes));
    }
    done->Set(literal.status());
  });
  return absl::OkStatus();
}

absl::Status Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args* args) {
  const PJRT_Buffer& source = *args->buffer;
  if (absl::Status status = source.value().status(); !status.ok()) return status;
  if (args->offset < 0 || args->transfer_size < 0 || args->offset > source.spec.bytes ||
      args->transfer_size > source.spec.bytes - args->offset) {
    return absl::InvalidArgumentError(StrCat("PJRT_Buffer_CopyRawToHost: ", args->transfer_size, " bytes from ",
                                             args->offset, " of a buffer of ", source.spec.bytes, " bytes"));
  }
  if (args->dst == nullptr && args->transfer_size != 0) return absl::InvalidArgumentError("the host array is null");
  auto done = std::make_shared<Event>();
  args->event = NewEvent(done);
  source.WhenReady([done, spec = source.spec, to = args->dst, offset = args->offset,
                    size = static_cast<size_t>(args->transfer_size),
                    transfer = Recorder::NewTransfer()](const absl::StatusOr<const Literal*>& literal) {
    std::vector<std::byte> copy;
    if (literal.ok() && size != 0) std::memcpy(to, InLayout(spec, **literal, &copy) + offset, size);
    if (literal.ok()) Recorder::EndTransfer(transfer, to, size);
    done->Set(literal.status());
  });
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt

// A buffer that another one will be the value of.
struct PJRT_FulfillAliasBufferCallback {
  hlokit::pjrt::BufferSpec spec;
  hlokit::pjrt::PendingValue pending;
};

namespace hlokit::pjrt {

absl::Status Client_CreateAliasBuffer(PJRT_Client_CreateAliasBuffer_Args* args) {
  const absl::StatusOr<PJRT_Memory*> memory = MemoryOf(args->client, args->memory, nullptr);
  if (!memory.ok()) return memory.status();
  absl::StatusOr<BufferSpec> spec = ReadBufferSpec(args->shape_element_type, args->shape_dims, args->shape_num_dims);
  if (!spec.ok()) return spec.status();
  if (absl::Status status = SetLayout(args->shape_layout, &*spec); !status.ok()) return status;
  const PendingValue pending(*memory, *spec);
  args->alias_buffer = new PJRT_Buffer(*memory, *spec, pending.value, pending.ready);
  args->fulfill_alias_buffer_cb = new PJRT_FulfillAliasBufferCallback{*std::move(spec), pending};
  return absl::OkStatus();
}

absl::Status Client_FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args* args) {
  const std::unique_ptr<PJRT_FulfillAliasBufferCallback> alias(args->fulfill_alias_buffer_cb);
  const absl::Status error = StatusOf(args->status_code, args->error_message, args->error_message_size);
  if (!error.ok()) {
    alias->pending.Fail(error);
    return absl::OkStatus();
  }
  if (args->buffer == nullptr || args->buffer->spec.bytes != alias->spec.bytes ||
      args->buffer->spec.type != alias->spec.type) {
    const absl::Status wrong = absl::InvalidArgumentError("the buffer does not fit the one that it stands for");
    alias->pending.Fail(wrong);
    return wrong;
  }
  alias->pending.CopyFrom(*args->buffer);
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
