// SPDX-License-Identifier: Apache-2.0
#include "io/files/atomic_file_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "io/stores/object.h"
#include "io/stores/write_all.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

absl::Status ErrnoStatus(const std::string& path, int error) {
  return absl::UnavailableError(StrCat(path, ": ", strerror(error)));
}

// Follows the symbolic links that `path` consists of, also if the last one leads to no file: realpath would not.
std::string FollowLinks(std::string path) {
  constexpr int kMaxLinks = 40;  // as the kernel
  char link[PATH_MAX];
  for (int k = 0; k < kMaxLinks; ++k) {
    const ssize_t size = readlink(path.c_str(), link, sizeof link);
    if (size <= 0) break;  // no link
    const std::string_view to(link, static_cast<size_t>(size));
    path.resize(to.starts_with('/') ? 0 : path.rfind('/') + 1);  // 0 without a directory
    path.append(to);
  }
  return path;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// Returns a name in the target's directory, so that the rename stays in one file system. The process id and a random
// number separate concurrent writers.
std::string TemporaryName(const std::string& target) {
  std::random_device random;
  return StrCat(target, ".tmp-", static_cast<int64_t>(getpid()), "-", random());
}

}  // namespace

absl::StatusOr<std::unique_ptr<AtomicFileWriter>> AtomicFileWriter::Open(const std::string& path) {
  std::unique_ptr<AtomicFileWriter> file(new AtomicFileWriter);
  file->path_ = path;
  if (IsStoreUrl(path)) {
    absl::StatusOr<std::unique_ptr<ByteStore>> store = OpenObject(path);
    if (!store.ok()) return store.status();
    file->store_ = *std::move(store);
    return file;
  }
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (!exists && errno == ELOOP) return ErrnoStatus(path, errno);
  if (exists && !S_ISREG(info.st_mode)) {
    file->fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    file->target_ = FollowLinks(path);
    // Without a name until Commit, so that nothing is left of a process that is killed; file systems may not have that.
    file->fd_ = open(DirectoryOf(file->target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file->fd_ < 0) {
      file->temporary_ = TemporaryName(file->target_);
      file->fd_ = open(file->temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file->fd_ < 0) file->temporary_.clear();  // owned by another writer
    }
    // Ignores failure to copy the permissions.
    if (file->fd_ >= 0 && exists && fchmod(file->fd_, info.st_mode & 07777) != 0) errno = 0;
  }
  if (file->fd_ >= 0) return file;
  const int error = errno;
  const std::string directory = DirectoryOf(exists || file->target_.empty() ? path : file->target_);
  if (error == ENOENT && stat(directory.c_str(), &info) != 0) {
    return absl::NotFoundError(StrCat("cannot write ", path, ": there is no directory ", directory));
  }
  return ErrnoStatus(path, error);
}

void AtomicFileWriter::Write(std::string_view bytes) {
  if (store_ != nullptr) {
    bytes_.append(bytes);
  } else if (error_ == 0) {
    error_ = WriteAll(fd_, bytes);
  }
}

absl::Status AtomicFileWriter::Commit() {
  if (store_ != nullptr) return store_->Put("", bytes_);
  if (error_ == 0 && temporary_.empty() && !target_.empty()) {
    temporary_ = TemporaryName(target_);
    const std::string open_file = StrCat("/proc/self/fd/", fd_);
    if (linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      error_ = errno;
      temporary_.clear();
    }
  }
  if (close(fd_) != 0 && error_ == 0) error_ = errno;
  fd_ = -1;
  if (error_ == 0 && !temporary_.empty()) {
    if (rename(temporary_.c_str(), target_.c_str()) == 0) {
      temporary_.clear();
    } else {
      error_ = errno;
    }
  }
  return error_ == 0 ? absl::OkStatus() : ErrnoStatus(path_, error_);
}

AtomicFileWriter::~AtomicFileWriter() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

}  // namespace hlokit
