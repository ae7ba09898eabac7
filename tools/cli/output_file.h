// SPDX-License-Identifier: Apache-2.0
// Writes files atomically: to a temporary file next to the target, renamed by Commit.
#ifndef HLOKIT_TOOLS_CLI_OUTPUT_FILE_H_
#define HLOKIT_TOOLS_CLI_OUTPUT_FILE_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/files/atomic_file_writer.h"
#include "ir/core/text_writer.h"
#include "tools/cli/cli.h"

namespace hlokit::cli {

// Usage: Open, write to writer(), Commit. Without Commit no file is left, and an older file is unchanged.
class OutputFile {
 public:
  // "-": standard output. Writes existing files that are not regular (a pipe, /dev/null) in place. Follows symbolic
  // links, and keeps an existing file's permissions.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(const std::string& path);

  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  TextWriter& writer() { return *writer_; }
  // Makes the result visible. Returns the first error of any write. Called once.
  absl::Status Commit();

 private:
  OutputFile() = default;
  void Write(std::string_view bytes);

  std::unique_ptr<AtomicFileWriter> file_;  // null: standard output
  int error_ = 0;                           // errno of the first failed write to standard output
  bool given_up_ = false;
  std::unique_ptr<TextWriter> writer_;
};

// Fills the file with `write`. Prints an error and returns false if that fails.
bool WriteOutputFile(const std::string& path, DiagnosticReporter* diagnostics,
                     const std::function<void(TextWriter&)>& write);
// Creates the directory and those it is in. Prints an error and returns false if that fails.
bool CreateDirectories(const std::filesystem::path& directory, DiagnosticReporter* diagnostics);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_OUTPUT_FILE_H_
