// SPDX-License-Identifier: Apache-2.0
#include "io/stores/private_directory.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kWrittenByOthers = S_IWGRP | S_IWOTH;

bool IsOfAnother(const struct stat& info) { return info.st_uid != geteuid() && info.st_uid != 0; }

// Returns why another user can change what was opened; empty if none can.
std::string_view WhyUnsafe(const struct stat& info, bool may_be_sticky) {
  if (IsOfAnother(info)) return "belongs to another user, who decides what lies in it";
  if (S_ISLNK(info.st_mode)) return "";  // links have no permissions
  if ((info.st_mode & kWrittenByOthers) == 0) return "";
  if (may_be_sticky && S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0) return "";
  return "can be written to by other users";
}

absl::Status Refused(const std::string& path, std::string_view why) {
  return absl::PermissionDeniedError(StrCat(path, " ", why));
}

absl::Status FailedToOpen(const std::string& path, int error) {
  const std::string message = StrCat(path, ": ", std::system_category().message(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  return absl::FailedPreconditionError(message);
}

// Returns the names of a path, the last one first.
std::vector<std::string> NamesOf(const fs::path& path) {
  std::vector<std::string> names;
  for (const fs::path& name : path.relative_path()) {
    if (!name.empty() && name != ".") names.push_back(name.string());
  }
  return {names.rbegin(), names.rend()};
}

// Opens a name without following it, and makes a directory if there is nothing and `create`.
FileDescriptor OpenName(int parent, const std::string& name, bool create) {
  constexpr int kFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  int fd = openat(parent, name.c_str(), kFlags);
  if (fd < 0 && errno == ENOENT && create && (mkdirat(parent, name.c_str(), 0700) == 0 || errno == EEXIST)) {
    fd = openat(parent, name.c_str(), kFlags);
  }
  return FileDescriptor(fd);
}

std::optional<std::string> TargetOfLink(int link) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = readlinkat(link, "", target.data(), target.size());
  if (size <= 0 || static_cast<size_t>(size) >= target.size()) return std::nullopt;
  target.resize(static_cast<size_t>(size));
  return target;
}

// Walks to a directory, and checks each step.
class Walk {
 public:
  explicit Walk(const fs::path& path, bool create) : path_(path.string()), names_(NamesOf(path)), create_(create) {}

  absl::StatusOr<FileDescriptor> Run() {
    if (absl::Status status = ToRoot(); !status.ok()) return status;
    while (!names_.empty()) {
      if (absl::Status status = Step(); !status.ok()) return status;
    }
    // The one that O_PATH opened can only be walked through.
    FileDescriptor readable(openat(at_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!readable.is_open()) return FailedToOpen(path_, errno);
    return readable;
  }

 private:
  static constexpr int kMaxLinks = 40;  // as the kernel

  absl::Status ToRoot() {
    at_ = FileDescriptor(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    reached_ = "/";
    struct stat info;
    if (!at_.is_open() || fstat(at_.get(), &info) != 0) return FailedToOpen("/", errno);
    const std::string_view why = WhyUnsafe(info, /*may_be_sticky=*/true);
    return why.empty() ? absl::OkStatus() : Refused("/", why);
  }

  absl::Status Step() {
    const std::string name = std::move(names_.back());
    names_.pop_back();
    FileDescriptor next = OpenName(at_.get(), name, create_);
    const std::string path = reached_ == "/" ? StrCat("/", name) : StrCat(reached_, "/", name);
    struct stat info;
    if (!next.is_open() || fstat(next.get(), &info) != 0) return FailedToOpen(path, errno);
    if (const std::string_view why = WhyUnsafe(info, !names_.empty()); !why.empty()) return Refused(path, why);
    if (S_ISLNK(info.st_mode)) {
      // What lies in the directory itself is removed when it is full: it is named, not linked to.
      if (names_.empty()) return Refused(path, "is a link");
      return Follow(next.get(), path);
    }
    if (!S_ISDIR(info.st_mode)) return FailedToOpen(path, ENOTDIR);
    at_ = std::move(next);
    reached_ = path;
    return absl::OkStatus();
  }

  absl::Status Follow(int link, const std::string& path) {
    const std::optional<std::string> target = TargetOfLink(link);
    if (!target || ++links_ > kMaxLinks) return FailedToOpen(path, ELOOP);
    for (std::string& name : NamesOf(*target)) names_.push_back(std::move(name));
    return target->starts_with('/') ? ToRoot() : absl::OkStatus();
  }

  const std::string path_;
  std::vector<std::string> names_;  // to be walked, the next one last
  const bool create_;
  FileDescriptor at_;
  std::string reached_;
  int links_ = 0;
};

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<FileDescriptor> OpenPrivateDirectory(const std::string& path, bool create) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  if (error) return FailedToOpen(path, error.value());
  return Walk(whole, create).Run();
}

absl::StatusOr<FileDescriptor> OpenPrivateSubdirectory(int parent, const std::string& name, const std::string& path,
                                                       bool create) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  if (create && mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) return FailedToOpen(path, errno);
  FileDescriptor directory(openat(parent, name.c_str(), kFlags));
  struct stat info;
  if (!directory.is_open() && (errno == ELOOP || errno == ENOTDIR)) return Refused(path, "is not a directory");
  if (!directory.is_open() || fstat(directory.get(), &info) != 0) return FailedToOpen(path, errno);
  if (const std::string_view why = WhyUnsafe(info, false); !why.empty()) return Refused(path, why);
  return directory;
}

absl::StatusOr<FileDescriptor> OpenPrivateFile(int parent, const std::string& name, const std::string& path) {
  // Opening a FIFO without O_NONBLOCK waits for a writer.
  FileDescriptor file(openat(parent, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!file.is_open() && errno == ELOOP) return Refused(path, "is a link");
  if (!file.is_open() || fstat(file.get(), &info) != 0) return FailedToOpen(path, errno);
  if (const std::string_view why = WhyUnsafe(info, false); !why.empty()) return Refused(path, why);
  return file;
}

namespace {

// Returns the permission bits of others that can replace what was opened, or what lies in it.
mode_t WritersOf(const struct stat& info) {
  if (S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0) return 0;
  return info.st_mode & kWrittenByOthers;
}

// A file, its directory and the one above that: bin/program, lib/module.
constexpr size_t kLevels = 3;

absl::StatusOr<std::array<struct stat, kLevels>> LevelsOf(fs::path path) {
  std::array<struct stat, kLevels> levels;
  for (struct stat& level : levels) {
    if (stat(path.c_str(), &level) != 0) return FailedToOpen(path.string(), errno);
    path = path.parent_path();
  }
  return levels;
}

}  // namespace

absl::Status CheckModuleOf(const std::string& program, const std::string& module) {
  const auto of_program = LevelsOf(program), of_module = LevelsOf(module);
  if (!of_program.ok()) return of_program.status();
  if (!of_module.ok()) return of_module.status();
  const auto some = [&](auto condition) { return std::any_of(of_program->begin(), of_program->end(), condition); };
  fs::path path = module;
  for (const struct stat& level : *of_module) {
    // Who can change one of the program's levels can change the program.
    if (IsOfAnother(level) && !some([&](const struct stat& p) { return p.st_uid == level.st_uid; })) {
      return Refused(path.string(), "belongs to another user");
    }
    const mode_t writers = WritersOf(level);
    const bool by_all = some([](const struct stat& p) { return (WritersOf(p) & S_IWOTH) != 0; });
    const bool by_group =
        by_all || some([&](const struct stat& p) { return (WritersOf(p) & S_IWGRP) != 0 && p.st_gid == level.st_gid; });
    if (((writers & S_IWOTH) != 0 && !by_all) || ((writers & S_IWGRP) != 0 && !by_group)) {
      return Refused(path.string(), "can be written to by other users");
    }
    path = path.parent_path();
  }
  return absl::OkStatus();
}

}  // namespace hlokit
