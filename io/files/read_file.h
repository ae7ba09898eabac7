// SPDX-License-Identifier: Apache-2.0
// Reads a file as a source buffer.
#ifndef HLOKIT_IO_FILES_READ_FILE_H_
#define HLOKIT_IO_FILES_READ_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ir/core/source_buffer.h"

namespace hlokit {

// kModule: of a file that begins as no module does, with a NUL among its first bytes, only these are read, which is
// enough to tell what it is; a file compressed with gzip is decompressed.
enum class FileContents { kModule, kAny };

// Reads a file; "-" is standard input; s3://, gs:// and az:// name a remote store (io/stores/store_url.h). Returns
// an error if it is not found, unreadable, or larger than `max_bytes`, also when decompressed (ResourceExhausted), or
// decompressed out of proportion (OutOfRange; gzip_input.h).
absl::StatusOr<std::shared_ptr<const SourceBuffer>> ReadFile(const std::string& path,
                                                             uint64_t max_bytes = uint64_t{1} << 32,
                                                             FileContents contents = FileContents::kAny);

}  // namespace hlokit

#endif  // HLOKIT_IO_FILES_READ_FILE_H_
