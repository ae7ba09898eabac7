// SPDX-License-Identifier: Apache-2.0
// Buffers: arrays and tokens in a memory of a device. Elements are row-major and dense, each in whole bytes, as in a
// Literal, so that host and device arrays are the same bytes. A buffer may have another layout for its callers: its
// bytes, where they are asked for, are then a copy of the elements in that order.
#ifndef HLOKIT_PJRT_CLIENT_BUFFER_H_
#define HLOKIT_PJRT_CLIENT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/types/element_type.h"
#include "pjrt/c_api/types.h"
#include "pjrt/client/client.h"
#include "pjrt/values/event.h"
#include "runtime/client/device_buffer.h"

namespace hlokit::pjrt {

// What a buffer is, apart from its value.
struct BufferSpec {
  ElementType type = ElementType::kPred;
  std::vector<int64_t> dims;  // bounds where dynamic
  int64_t bytes = 0;          // of the bounds
  std::vector<size_t> dynamic_dims = {};
  std::vector<int64_t> minor_to_major = {};  // what callers see of the order of elements; empty: row-major
};

// Reads type and sizes of arguments. `dims` may be null if there are none.
absl::StatusOr<BufferSpec> ReadBufferSpec(PJRT_Buffer_Type type, const int64_t* dims, size_t num_dims);

// Returns the elements of a value in the layout of its buffer: those of `value` itself if it is row-major, or in
// `copy`.
const std::byte* InLayout(const BufferSpec& spec, const Literal& value, std::vector<std::byte>* copy);

// Counts the bytes of a value in the statistics of its device.
class ByteCount {
 public:
  ByteCount(PJRT_Device* device, int64_t bytes) : device_(device), bytes_(bytes) { device_->AddBytes(bytes_); }
  ~ByteCount() { device_->AddBytes(-bytes_); }
  ByteCount(const ByteCount&) = delete;
  ByteCount& operator=(const ByteCount&) = delete;

 private:
  PJRT_Device* const device_;
  const int64_t bytes_;
};

}  // namespace hlokit::pjrt

struct PJRT_Buffer {
  PJRT_Memory* const memory;
  const hlokit::pjrt::BufferSpec spec;
  const std::shared_ptr<hlokit::pjrt::Event> ready;  // when the value is available, or its error
  const bool borrowed;                               // the bytes are a caller's, and are never written

  // Of the dynamic dimensions, in order: scalars of s32, available when the value is.
  const std::vector<std::shared_ptr<hlokit::runtime::DeviceBuffer>> sizes;

  // Creates a buffer whose producer sets `value`, `sizes`, and then `ready`.
  PJRT_Buffer(PJRT_Memory* memory, hlokit::pjrt::BufferSpec spec, std::shared_ptr<hlokit::runtime::DeviceBuffer> value,
              std::shared_ptr<hlokit::pjrt::Event> ready, bool borrowed = false,
              std::vector<std::shared_ptr<hlokit::runtime::DeviceBuffer>> sizes = {});

  PJRT_Device* device() const { return memory->device; }
  // Returns the value, which may be pending; an error if the buffer was deleted or donated.
  absl::StatusOr<std::shared_ptr<hlokit::runtime::DeviceBuffer>> value() const;
  bool IsDeleted() const { return !value().ok(); }
  // Returns the dimensions with the sizes of dynamic ones, for which it waits. The list lives as long as the buffer.
  absl::StatusOr<absl::Span<const int64_t>> LogicalDims() const;
  // Lets go of the value. Uses in progress keep it.
  void Delete();
  // Calls `read` with the value, now or when it is available, or with the error.
  void WhenReady(std::function<void(const absl::StatusOr<const hlokit::Literal*>&)> read) const;

  // Returns the first byte of the elements in the buffer's layout, for which it waits. They live as long as the value.
  absl::StatusOr<const std::byte*> Data() const;

  // References of code outside, to which the bytes must not change.
  absl::StatusOr<int64_t> AddExternalReferences(int64_t count);
  bool HasExternalReferences() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<hlokit::runtime::DeviceBuffer> value_;  // null once deleted
  std::unique_ptr<hlokit::pjrt::ByteCount> bytes_;
  int64_t external_references_ = 0;
  std::unique_ptr<hlokit::runtime::BufferUse> external_use_;
  mutable std::vector<std::byte> in_layout_;   // once it is asked for; of a buffer that is not row-major
  mutable std::vector<int64_t> logical_dims_;  // once they are known; of a buffer with dynamic dimensions
};

namespace hlokit::pjrt {

// Returns a buffer with a value. `context` owns the shape of the value.
PJRT_Buffer* NewBuffer(PJRT_Memory* memory, BufferSpec spec, Literal value, std::shared_ptr<Context> context,
                       bool borrowed = false);
// Returns the token that `buffer`, an array without elements, stands for: frameworks hand out those for tokens that
// they make themselves. It is available when the buffer is.
std::shared_ptr<runtime::DeviceBuffer> TokenOf(const PJRT_Buffer& buffer);
// Returns the error for a memory, or device, that is not one of the client.
absl::StatusOr<PJRT_Memory*> MemoryOf(PJRT_Client* client, PJRT_Memory* memory, PJRT_Device* device);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_BUFFER_H_
