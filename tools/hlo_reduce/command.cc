// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_reduce/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/status/status.h"
#include "ir/core/str_cat.h"
#include "tools/cli/text/shell_word.h"

extern char** environ;

namespace hlokit::reduce {
namespace {

constexpr size_t kMaxOutput = size_t{1} << 20;
constexpr int kPollMilliseconds = 20;

std::string WithFile(std::string_view command, const std::string& file) {
  std::string text;
  bool found = false;
  for (size_t at = 0; at < command.size(); ++at) {
    if (command.substr(at, 2) == "{}") {
      text += cli::ShellWord(file);
      found = true;
      ++at;
    } else {
      text += command[at];
    }
  }
  if (!found) StrAppend(&text, " ", cli::ShellWord(file));
  return text;
}

// Reads what the command prints until it closes its output.
class OutputReader {
 public:
  OutputReader(int fd, std::string* output) : fd_(fd), output_(output) {}
  // Waits a moment for output. Returns false at its end.
  bool Poll(int milliseconds) {
    pollfd poll_fd = {fd_, POLLIN, 0};
    if (poll(&poll_fd, 1, milliseconds) <= 0) return true;
    std::array<char, 4096> buffer;
    const ssize_t count = read(fd_, buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    if (count == 0) return false;
    const size_t room = kMaxOutput - std::min(kMaxOutput, output_->size());
    output_->append(buffer.data(), std::min(room, static_cast<size_t>(count)));
    return true;
  }

 private:
  int fd_;
  std::string* output_;
};

}  // namespace

absl::StatusOr<CommandOutcome> RunCommand(std::string_view command, const std::string& file,
                                          const CommandOptions& options) {
  const std::string text = WithFile(command, file);
  // The pipe tells when the command has ended, also if its output is dropped.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError(StrCat("cannot make a pipe: ", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::array<char*, 4> arguments = {const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>(text.c_str()),
                                    nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return absl::InternalError(StrCat("cannot run a command: ", std::strerror(error)));
  }

  CommandOutcome outcome;
  std::string output;
  OutputReader reader(ends[0], &output);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.max_seconds);
  int status = 0;
  bool ended = false;
  for (bool open = true; !ended;) {
    if (open) {
      open = reader.Poll(kPollMilliseconds);
    } else {
      poll(nullptr, 0, 1);
    }
    // The process stays until its group has ended: another may not take its number.
    siginfo_t info = {};
    ended = waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
    if (ended) break;
    outcome.interrupted = options.cancel != nullptr && options.cancel->load();
    outcome.timed_out = std::chrono::steady_clock::now() > end;
    if (!outcome.interrupted && !outcome.timed_out) continue;
    ended = true;
  }
  // What the command started in the background goes with it; what it printed last is still in the pipe.
  kill(-pid, SIGKILL);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  for (pollfd rest = {ends[0], POLLIN, 0}; output.size() < kMaxOutput && poll(&rest, 1, 0) > 0 && reader.Poll(0);) {
  }
  close(ends[0]);
  if (WIFEXITED(status) && !outcome.timed_out && !outcome.interrupted) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  if (options.capture) outcome.output = std::move(output);
  return outcome;
}

}  // namespace hlokit::reduce
