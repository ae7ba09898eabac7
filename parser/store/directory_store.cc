// SPDX-License-Identifier: Apache-2.0
#include "parser/store/directory_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>

#include "ir/core/str_cat.h"
#include "parser/store/write_all.h"

namespace hlokit {
namespace {

namespace fs = std::filesystem;

std::string TextOfErrno(int error) { return std::system_category().message(error); }

// Returns a random name, so that two writers never share a temporary file.
std::string TemporaryFileName() {
  static std::atomic<uint64_t> serial{0};
  thread_local std::random_device random;
  return StrCat(DirectoryStore::kTemporaryPrefix, getpid(), "-", static_cast<uint64_t>(random()), "-",
                serial.fetch_add(1));
}

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::FailedPreconditionError(StrCat("cannot write ", path, ": ", TextOfErrno(error)));
}

}  // namespace

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, uint64_t max_bytes, bool first_bytes) {
  // Opening a FIFO without O_NONBLOCK waits for a writer.
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return absl::NotFoundError(TextOfErrno(errno));
    return absl::FailedPreconditionError(TextOfErrno(errno));
  }
  // Reads a copy: truncation of a mapped file by another process would raise SIGBUS.
  struct stat info;
  std::string bytes;
  int error = fstat(fd, &info) == 0 ? 0 : errno;
  if (error == 0 && !S_ISREG(info.st_mode)) error = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
  if (error == 0 && static_cast<uint64_t>(info.st_size) > max_bytes && !first_bytes) {
    close(fd);
    return absl::ResourceExhaustedError(StrCat("more than ", max_bytes, " bytes"));
  }
  if (error == 0) bytes.resize(std::min(static_cast<uint64_t>(info.st_size), max_bytes));
  size_t used = 0;
  while (error == 0 && used < bytes.size()) {
    const ssize_t n = read(fd, bytes.data() + used, bytes.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) break;
    used += static_cast<size_t>(n);
  }
  close(fd);
  if (error != 0) return absl::FailedPreconditionError(TextOfErrno(error));
  bytes.resize(used);
  return bytes;
}

absl::Status DirectoryStore::Create() const {
  std::error_code error;
  fs::create_directories(url().container, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("cannot create directory ", url().container, ": ", error.message()));
}

absl::StatusOr<std::string> DirectoryStore::Get(std::string_view key, uint64_t max_bytes, bool first_bytes) {
  const std::string path = PathOf(key);
  absl::StatusOr<std::string> bytes = ReadRegularFile(path, max_bytes, first_bytes);
  if (bytes.ok()) return bytes;
  return absl::Status(bytes.status().code(), StrCat("cannot read ", path, ": ", std::string(bytes.status().message())));
}

absl::Status DirectoryStore::Put(std::string_view key, std::string_view bytes) {
  const std::string path = PathOf(key);
  const std::string directory = path.substr(0, path.rfind('/'));
  if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(StrCat("cannot create directory ", directory, ": ", TextOfErrno(errno)));
  }
  const std::string temporary = StrCat(directory, "/", TemporaryFileName());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return CannotWrite(temporary, errno);
  int error = WriteAll(fd, bytes);
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  unlink(temporary.c_str());
  return CannotWrite(path, error);
}

absl::StatusOr<bool> DirectoryStore::Exists(std::string_view key) {
  struct stat info;
  return stat(PathOf(key).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

absl::StatusOr<std::vector<std::string>> DirectoryStore::List(std::string_view prefix, size_t max_keys) {
  std::vector<std::string> keys;
  std::error_code error;
  const size_t slash = prefix.rfind('/');
  const std::string below(slash == std::string_view::npos ? std::string_view() : prefix.substr(0, slash));
  const fs::path root = url().container;
  // Files vanish at any time; an unreadable directory holds no keys.
  for (fs::recursive_directory_iterator it(PathOf(below), error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored) || it->path().filename().string().starts_with(kTemporaryPrefix)) continue;
    std::string key = it->path().lexically_relative(root).string();
    if (key.starts_with(prefix)) keys.push_back(std::move(key));
  }
  std::sort(keys.begin(), keys.end());
  if (keys.size() > max_keys) keys.resize(max_keys);
  return keys;
}

absl::Status DirectoryStore::Remove(std::string_view key) {
  const std::string path = PathOf(key);
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("cannot remove ", path, ": ", TextOfErrno(errno)));
}

}  // namespace hlokit
