// SPDX-License-Identifier: Apache-2.0
// Writing a file so that readers see all of it or nothing: into a temporary file beside the target, renamed when the
// writer says it is whole.
#ifndef HLOKIT_INTERP_RUNTIME_CACHE_ATOMIC_FILE_WRITER_H_
#define HLOKIT_INTERP_RUNTIME_CACHE_ATOMIC_FILE_WRITER_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlokit::runtime {

// Usage: Open, Write, Commit. Without Commit nothing is left behind, and an older file stays as it was.
class AtomicFileWriter {
 public:
  // What exists and is no regular file (a pipe, /dev/null) is written in place. A symbolic link is followed, and an
  // existing file's permissions are kept.
  static absl::StatusOr<std::unique_ptr<AtomicFileWriter>> Open(const std::string& path);

  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;
  ~AtomicFileWriter();

  // After an error, which Commit gives, further bytes are dropped.
  void Write(std::string_view bytes);
  // Makes the file visible; the first error of any write so far if there was one. To be called once.
  absl::Status Commit();

 private:
  AtomicFileWriter() = default;

  std::string path_;       // as the user gave it, for messages
  std::string target_;     // with links resolved
  std::string temporary_;  // empty: writing in place
  int fd_ = -1;
  int error_ = 0;  // errno of the first failed write
};

// Writes all of `bytes` to a descriptor; 0, or the errno of what failed.
int WriteAll(int fd, std::string_view bytes);

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_CACHE_ATOMIC_FILE_WRITER_H_
