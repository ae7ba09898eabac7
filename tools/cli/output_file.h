// SPDX-License-Identifier: Apache-2.0
// Writing a result so that readers see all of it or nothing: into a temporary file beside the target, renamed when the
// writer says it is whole.
#ifndef HLOKIT_TOOLS_CLI_OUTPUT_FILE_H_
#define HLOKIT_TOOLS_CLI_OUTPUT_FILE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "interp/runtime/cache/atomic_file_writer.h"
#include "ir/core/text_writer.h"

namespace hlokit::cli {

// Usage: open, write to writer(), Commit. Without Commit nothing is left behind, and an older file stays as it was.
class OutputFile {
 public:
  // "-" is standard output. What exists and is no regular file (a pipe, /dev/null) is written in place. A symbolic link
  // is followed, and an existing file's permissions are kept.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(const std::string& path);

  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  TextWriter& writer() { return *writer_; }
  // Makes the result visible; the first error of any write so far if there was one. To be called once.
  absl::Status Commit();

 private:
  OutputFile() = default;
  void Write(std::string_view bytes);

  std::unique_ptr<runtime::AtomicFileWriter> file_;  // null: standard output
  int error_ = 0;                                    // errno of the first failed write to standard output
  bool given_up_ = false;
  std::unique_ptr<TextWriter> writer_;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_OUTPUT_FILE_H_
