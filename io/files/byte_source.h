// SPDX-License-Identifier: Apache-2.0
// Random access to the bytes of a file, of which only the parts that are needed are read.
#ifndef HLOKIT_IO_FILES_BYTE_SOURCE_H_
#define HLOKIT_IO_FILES_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlokit {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Opens a regular file; others, which cannot be read at any position, are errors. A file in a remote store is read
  // whole. Messages begin with the path.
  static absl::StatusOr<std::shared_ptr<const ByteSource>> Open(const std::string& path);
  static std::shared_ptr<const ByteSource> OfMemory(std::string bytes);

  uint64_t size() const { return size_; }
  // Copies bytes from `offset` on. Returns an error if there are fewer, also if the file was cut off since it was
  // opened. Thread-safe.
  virtual absl::Status Read(uint64_t offset, void* to, size_t bytes) const = 0;

 protected:
  uint64_t size_ = 0;
};

}  // namespace hlokit

#endif  // HLOKIT_IO_FILES_BYTE_SOURCE_H_
