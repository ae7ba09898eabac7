// SPDX-License-Identifier: Apache-2.0
// Files that no other user can change: a directory of them, opened once and used through its descriptor, and programs'
// modules. What is read there may be executed.
//
// Other users are all but this one and root. A directory is safe from them if it and every directory above it belongs
// to this user or to root and cannot be written to by the group or by others; above it, such a directory may be sticky,
// as /tmp is, since what lies there can be replaced by its owner only. Links on the way are followed if they are safe
// too.
#ifndef HLOKIT_IO_STORES_PRIVATE_DIRECTORY_H_
#define HLOKIT_IO_STORES_PRIVATE_DIRECTORY_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlokit {

// Closes a descriptor at the end.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Opens a directory that is safe from other users, and creates it, with those above it, for this user alone if
// `create`. PermissionDenied, if it is not safe: the message begins with the path that is not. NotFound, if it is not
// there or cannot be made.
absl::StatusOr<FileDescriptor> OpenPrivateDirectory(const std::string& path, bool create);

// Opens the directory `name` in an open private one, likewise; `path` of it is for messages.
absl::StatusOr<FileDescriptor> OpenPrivateSubdirectory(int parent, const std::string& name, const std::string& path,
                                                       bool create);

// Opens a file of an open private directory for reading: a regular one, not a link.
absl::StatusOr<FileDescriptor> OpenPrivateFile(int parent, const std::string& name, const std::string& path);

// Checks that no user can change the file `module`, which a program is about to load, who could not as well change the
// file `program`, which loads it: by the owners and permissions of both, their directories and the ones above those.
absl::Status CheckModuleOf(const std::string& program, const std::string& module);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_PRIVATE_DIRECTORY_H_
