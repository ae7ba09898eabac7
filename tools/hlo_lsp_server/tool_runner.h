// SPDX-License-Identifier: Apache-2.0
// The tools beside the server, each as a process of its own: a run that takes long, crashes or is cancelled leaves the
// server as it is.
//
// Bounds: kMaxToolOutput bytes of output are kept; kMaxRuns at a time; a run ends after kToolSeconds.
#ifndef HLOKIT_TOOLS_HLO_LSP_SERVER_TOOL_RUNNER_H_
#define HLOKIT_TOOLS_HLO_LSP_SERVER_TOOL_RUNNER_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlokit::lsp {

inline constexpr size_t kMaxToolOutput = size_t{16} << 20;
inline constexpr size_t kMaxRuns = 8;
inline constexpr int kToolSeconds = 600;

// A running tool. Its output and errors come together.
class ToolRun {
 public:
  // Starts `arguments[0]`, a tool beside this program.
  static absl::StatusOr<ToolRun> Start(std::vector<std::string> arguments);
  ToolRun(ToolRun&& other) noexcept;
  ToolRun& operator=(ToolRun&&) = delete;
  // Ends it.
  ~ToolRun();

  int fd() const { return fd_; }
  // Reads what there is. Returns false at the end.
  bool Read();
  // True if the time is up.
  bool expired() const;
  // Waits for the end, after Read returned false. Returns its exit code, -1 after a signal.
  int Finish();
  const std::string& output() const { return output_; }

 private:
  ToolRun(pid_t pid, int fd) : pid_(pid), fd_(fd), started_(std::chrono::steady_clock::now()) {}

  pid_t pid_;
  int fd_;
  std::chrono::steady_clock::time_point started_;
  std::string output_;
};

// A folder of temporary files, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() = default;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  // Makes a new folder in it, and returns its path.
  absl::StatusOr<std::string> NewFolder();

 private:
  std::string path_;
  int count_ = 0;
};

}  // namespace hlokit::lsp

#endif  // HLOKIT_TOOLS_HLO_LSP_SERVER_TOOL_RUNNER_H_
