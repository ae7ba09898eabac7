// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_lsp_server/tool_runner.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "ir/core/str_cat.h"

extern char** environ;

namespace hlokit::lsp {
namespace {

std::string PathOfTool(const std::string& tool) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = self.parent_path() / tool;
  return !error && std::filesystem::exists(beside, error) ? beside.string() : tool;
}

}  // namespace

absl::StatusOr<ToolRun> ToolRun::Start(std::vector<std::string> arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError(StrCat("cannot make a pipe: ", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  // A group of its own, so that what it starts ends with it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const std::string path = PathOfTool(arguments[0]);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, path.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return absl::NotFoundError(StrCat("cannot start ", arguments[0], ": ", std::strerror(error)));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return ToolRun(pid, ends[0]);
}

ToolRun::ToolRun(ToolRun&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      fd_(std::exchange(other.fd_, -1)),
      started_(other.started_),
      output_(std::move(other.output_)) {}

ToolRun::~ToolRun() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    Finish();
  }
  if (fd_ >= 0) close(fd_);
}

bool ToolRun::Read() {
  std::array<char, 1 << 14> buffer;
  for (;;) {
    const ssize_t n = read(fd_, buffer.data(), buffer.size());
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    output_.append(buffer.data(),
                   std::min(static_cast<size_t>(n), kMaxToolOutput - std::min(kMaxToolOutput, output_.size())));
  }
}

bool ToolRun::expired() const {
  return std::chrono::steady_clock::now() - started_ > std::chrono::seconds(kToolSeconds);
}

int ToolRun::Finish() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

absl::StatusOr<std::string> ScratchFolder::NewFolder() {
  if (path_.empty()) {
    const char* const base = std::getenv("TMPDIR");
    std::string name = StrCat(base == nullptr || *base == '\0' ? "/tmp" : base, "/hlo-lsp-XXXXXX");
    if (mkdtemp(name.data()) == nullptr) {
      return absl::InternalError(StrCat("cannot make a folder for temporary files: ", std::strerror(errno)));
    }
    path_ = name;
  }
  const std::string folder = StrCat(path_, "/", ++count_);
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) return absl::InternalError(StrCat("cannot make ", folder, ": ", error.message()));
  return folder;
}

}  // namespace hlokit::lsp
