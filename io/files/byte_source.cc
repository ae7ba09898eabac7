// SPDX-License-Identifier: Apache-2.0
#include "io/files/byte_source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "io/stores/object.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

class FileBytes : public ByteSource {
 public:
  FileBytes(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd) { size_ = size; }
  ~FileBytes() override { close(fd_); }

  absl::Status Read(uint64_t offset, void* to, size_t bytes) const override {
    constexpr size_t kMaxRead = size_t{1} << 30;
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t n = pread(fd_, at, std::min(bytes, kMaxRead), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return absl::DataLossError(StrCat(path_, ": ", strerror(errno)));
      if (n == 0) return absl::DataLossError(StrCat(path_, ": the file ends early"));
      at += n;
      offset += static_cast<uint64_t>(n);
      bytes -= static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const int fd_;
};

class MemoryBytes : public ByteSource {
 public:
  explicit MemoryBytes(std::string bytes) : bytes_(std::move(bytes)) { size_ = bytes_.size(); }

  absl::Status Read(uint64_t offset, void* to, size_t bytes) const override {
    if (offset > size_ || bytes > size_ - offset) return absl::DataLossError("the file ends early");
    if (bytes > 0) memcpy(to, bytes_.data() + offset, bytes);
    return absl::OkStatus();
  }

 private:
  const std::string bytes_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ByteSource>> ByteSource::Open(const std::string& path) {
  if (IsStoreUrl(path)) {
    constexpr uint64_t kMaxRemoteBytes = uint64_t{1} << 36;
    absl::StatusOr<std::string> bytes = ReadObject(path, kMaxRemoteBytes);
    if (!bytes.ok()) return bytes.status();
    return OfMemory(*std::move(bytes));
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::NotFoundError(StrCat(path, ": ", strerror(errno)));
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::FailedPreconditionError(StrCat(path, S_ISDIR(info.st_mode) ? ": is a directory" : ": is not a file"));
  }
  return std::make_shared<const FileBytes>(path, fd, static_cast<uint64_t>(info.st_size));
}

std::shared_ptr<const ByteSource> ByteSource::OfMemory(std::string bytes) {
  return std::make_shared<const MemoryBytes>(std::move(bytes));
}

}  // namespace hlokit
