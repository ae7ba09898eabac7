// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_view/programs.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "ir/core/str_cat.h"

extern char** environ;

namespace hlokit::view {
namespace {

struct CloseFile {
  void operator()(FILE* file) const { fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

// Runs a program of the path with these files as standard input and output, null: /dev/null. Returns its exit status.
absl::StatusOr<int> RunProgram(std::vector<std::string> arguments, FILE* input, FILE* output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const auto attach = [&actions](FILE* file, int number, int flags) {
    if (file != nullptr) {
      posix_spawn_file_actions_adddup2(&actions, fileno(file), number);
    } else {
      posix_spawn_file_actions_addopen(&actions, number, "/dev/null", flags, 0);
    }
  };
  attach(input, STDIN_FILENO, O_RDONLY);
  attach(output, STDOUT_FILENO, O_WRONLY);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::NotFoundError(StrCat("cannot run `", arguments[0], "`: ", std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return absl::InternalError(StrCat("waiting for `", arguments[0], "`: ", std::strerror(errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

absl::StatusOr<std::string> RunGraphviz(std::string_view dot) {
  // Files, not pipes: neither side can wait for the other.
  const File input(tmpfile()), output(tmpfile());
  if (input == nullptr || output == nullptr || fwrite(dot.data(), 1, dot.size(), input.get()) != dot.size() ||
      fflush(input.get()) != 0 || fseek(input.get(), 0, SEEK_SET) != 0) {
    return absl::InternalError(StrCat("cannot write a temporary file: ", std::strerror(errno)));
  }
  const absl::StatusOr<int> status = RunProgram({"dot", "-Tsvg"}, input.get(), output.get());
  if (!status.ok()) {
    return absl::NotFoundError(StrCat(std::string(status.status().message()),
                                      "; install Graphviz (Debian: graphviz), or take "
                                      "--format=dot"));
  }
  if (*status != 0) return absl::InternalError(StrCat("Graphviz failed with exit status ", *status));
  std::string text;
  char buffer[1 << 16];
  rewind(output.get());
  while (const size_t read = fread(buffer, 1, sizeof(buffer), output.get())) text.append(buffer, read);
  if (ferror(output.get()) != 0) return absl::InternalError("cannot read what Graphviz wrote");
  return text;
}

absl::Status OpenInBrowser(const std::string& path) {
  const absl::StatusOr<int> status = RunProgram({"xdg-open", path}, nullptr, nullptr);
  if (!status.ok()) {
    return absl::NotFoundError(StrCat("the page is written, but ", std::string(status.status().message()),
                                      " (Debian: xdg-utils); open it in a browser"));
  }
  if (*status != 0) {
    return absl::InternalError(
        StrCat("the page is written, but `xdg-open` failed with exit status ", *status, "; open it in a browser"));
  }
  return absl::OkStatus();
}

}  // namespace hlokit::view
