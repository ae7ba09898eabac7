// SPDX-License-Identifier: Apache-2.0
// Writes files atomically: to a temporary file next to the target, renamed by Commit. A file in a remote store
// (io/stores/store_url.h) is uploaded by Commit, whole.
#ifndef HLOKIT_IO_FILES_ATOMIC_FILE_WRITER_H_
#define HLOKIT_IO_FILES_ATOMIC_FILE_WRITER_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/stores/byte_store.h"

namespace hlokit {

// Usage: Open, Write, Commit. Without Commit no file is left, and an older file is unchanged.
class AtomicFileWriter {
 public:
  // Writes existing files that are not regular (a pipe, /dev/null) in place. Follows symbolic links, also to a file
  // that does not exist yet, and keeps an existing file's permissions. Of a remote store, finds the credentials.
  static absl::StatusOr<std::unique_ptr<AtomicFileWriter>> Open(const std::string& path);

  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;
  ~AtomicFileWriter();

  // Appends bytes. Drops them after an error, which Commit returns.
  void Write(std::string_view bytes);
  // Makes the file visible. Returns the first error of any write. Called once.
  absl::Status Commit();

 private:
  AtomicFileWriter() = default;

  std::string path_;                  // as given, for messages
  std::unique_ptr<ByteStore> store_;  // null: a local file
  std::string bytes_;                 // for the store
  std::string target_;                // with links resolved
  std::string temporary_;             // empty: the file is written in place, or has no name yet
  int fd_ = -1;
  int error_ = 0;  // errno of the first failed write
};

}  // namespace hlokit

#endif  // HLOKIT_IO_FILES_ATOMIC_FILE_WRITER_H_
