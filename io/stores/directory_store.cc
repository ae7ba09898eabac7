// SPDX-License-Identifier: Apache-2.0
#include "io/stores/directory_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>
#include <tuple>

#include "io/stores/write_all.h"
#include "ir/core/str_cat.h"

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

absl::Status CannotRead(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), StrCat("cannot read ", path, ": ", std::string(status.message())));
}

// Reads a copy: truncation of a mapped file by another process would raise SIGBUS.
absl::StatusOr<std::string> ReadOpenFile(int fd, uint64_t max_bytes, bool first_bytes) {
  struct stat info;
  std::string bytes;
  int error = fstat(fd, &info) == 0 ? 0 : errno;
  if (error == 0 && !S_ISREG(info.st_mode)) error = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
  if (error == 0 && static_cast<uint64_t>(info.st_size) > max_bytes && !first_bytes) {
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
  if (error != 0) return absl::FailedPreconditionError(TextOfErrno(error));
  bytes.resize(used);
  return bytes;
}

// Calls `visit` for each name in an open directory.
void ForEachName(FileDescriptor directory, absl::FunctionRef<void(const char* name)> visit) {
  DIR* const stream = fdopendir(directory.get());
  if (stream == nullptr) return;
  directory.Release();  // the stream owns it
  while (const dirent* const entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") visit(entry->d_name);
  }
  closedir(stream);
}

// Entries of caches lie in 256 directories (io/cache/persistent_cache.h). No others are searched for what can go:
// the directory may have been used for more than a cache.
bool HoldsEntries(std::string_view directory) {
  return directory.size() == 2 && std::isxdigit(static_cast<unsigned char>(directory[0])) != 0 &&
         std::isxdigit(static_cast<unsigned char>(directory[1])) != 0;
}

}  // namespace

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, uint64_t max_bytes, bool first_bytes) {
  // Opening a FIFO without O_NONBLOCK waits for a writer.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.is_open()) return ReadOpenFile(file.get(), max_bytes, first_bytes);
  if (errno == ENOENT || errno == ENOTDIR) return absl::NotFoundError(TextOfErrno(errno));
  return absl::FailedPreconditionError(TextOfErrno(errno));
}

absl::StatusOr<std::unique_ptr<DirectoryStore>> DirectoryStore::OpenPrivate(StoreUrl url, bool create) {
  absl::StatusOr<FileDescriptor> root = OpenPrivateDirectory(url.container, create);
  if (!root.ok()) return root.status();
  auto store = std::make_unique<DirectoryStore>(std::move(url));
  store->private_root_ = *std::move(root);
  return store;
}

int DirectoryStore::Place::at() const { return directory.is_open() ? directory.get() : AT_FDCWD; }

absl::StatusOr<DirectoryStore::Place> DirectoryStore::Locate(std::string_view key, bool create) const {
  Place place;
  const size_t slash = key.rfind('/');
  if (!private_root_.is_open()) {
    place.name = PathOf(key);
    if (!create || slash == std::string_view::npos) return place;
    // For those whom the permissions of the store itself let in.
    struct stat info;
    const mode_t mode = stat(url().container.c_str(), &info) == 0 ? info.st_mode & 0777 : 0777;
    const std::string directory = PathOf(key.substr(0, slash));
    if (mkdir(directory.c_str(), mode) == 0 || errno == EEXIST) return place;
    return absl::FailedPreconditionError(StrCat("cannot create directory ", directory, ": ", TextOfErrno(errno)));
  }
  if (slash == std::string_view::npos) {
    place.directory = FileDescriptor(fcntl(private_root_.get(), F_DUPFD_CLOEXEC, 0));
    place.name = std::string(key);
    return place;
  }
  const std::string directory(key.substr(0, slash));
  absl::StatusOr<FileDescriptor> opened =
      OpenPrivateSubdirectory(private_root_.get(), directory, PathOf(directory), create);
  if (!opened.ok()) return opened.status();
  place.directory = *std::move(opened);
  place.name = std::string(key.substr(slash + 1));
  return place;
}

absl::Status DirectoryStore::Create() const {
  std::error_code error;
  fs::create_directories(url().container, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("cannot create directory ", url().container, ": ", error.message()));
}

absl::StatusOr<std::string> DirectoryStore::Get(std::string_view key, uint64_t max_bytes, bool first_bytes) {
  const std::string path = PathOf(key);
  absl::StatusOr<std::string> bytes;
  if (!private_root_.is_open()) {
    bytes = ReadRegularFile(path, max_bytes, first_bytes);
  } else {
    const absl::StatusOr<Place> place = Locate(key, /*create=*/false);
    if (!place.ok()) return place.status();
    const absl::StatusOr<FileDescriptor> file = OpenPrivateFile(place->at(), place->name, path);
    if (!file.ok()) return file.status();
    bytes = ReadOpenFile(file->get(), max_bytes, first_bytes);
  }
  if (bytes.ok()) return bytes;
  return CannotRead(path, bytes.status());
}

absl::Status DirectoryStore::Put(std::string_view key, std::string_view bytes) {
  const absl::StatusOr<Place> place = Locate(key, /*create=*/true);
  if (!place.ok()) return place.status();
  const std::string path = PathOf(key), &name = place->name;
  const size_t slash = name.rfind('/');
  const std::string temporary =
      StrCat(slash == std::string::npos ? "" : name.substr(0, slash + 1), TemporaryFileName());
  const mode_t mode = private_root_.is_open() ? 0600 : 0666;
  FileDescriptor file(openat(place->at(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.is_open()) return CannotWrite(path, errno);
  int error = WriteAll(file.get(), bytes);
  if (close(file.Release()) != 0 && error == 0) error = errno;
  if (error == 0 && renameat(place->at(), temporary.c_str(), place->at(), name.c_str()) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  unlinkat(place->at(), temporary.c_str(), 0);
  return CannotWrite(path, error);
}

absl::StatusOr<bool> DirectoryStore::Exists(std::string_view key) {
  const absl::StatusOr<Place> place = Locate(key, /*create=*/false);
  if (absl::IsNotFound(place.status())) return false;
  if (!place.ok()) return place.status();
  struct stat info;
  return fstatat(place->at(), place->name.c_str(), &info, 0) == 0 && S_ISREG(info.st_mode);
}

absl::StatusOr<std::vector<std::string>> DirectoryStore::List(std::string_view prefix, size_t max_keys) {
  std::vector<std::string> keys;
  const size_t slash = prefix.rfind('/');
  const std::string only(slash == std::string_view::npos ? std::string_view() : prefix.substr(0, slash));
  // Files vanish at any time; an unreadable directory holds no keys.
  ForEachFile(only, [&](int, const File& file) {
    if (file.name.starts_with(kTemporaryPrefix)) return;
    std::string key = file.directory.empty() ? file.name : StrCat(file.directory, "/", file.name);
    if (key.starts_with(prefix)) keys.push_back(std::move(key));
  });
  std::sort(keys.begin(), keys.end());
  if (keys.size() > max_keys) keys.resize(max_keys);
  return keys;
}

absl::Status DirectoryStore::Remove(std::string_view key) {
  const absl::StatusOr<Place> place = Locate(key, /*create=*/false);
  if (absl::IsNotFound(place.status())) return absl::OkStatus();
  if (!place.ok()) return place.status();
  if (unlinkat(place->at(), place->name.c_str(), 0) == 0 || errno == ENOENT) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("cannot remove ", PathOf(key), ": ", TextOfErrno(errno)));
}

FileDescriptor DirectoryStore::OpenRoot() const {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  if (private_root_.is_open()) return FileDescriptor(openat(private_root_.get(), ".", kFlags));
  return FileDescriptor(open(url().container.c_str(), kFlags));
}

void DirectoryStore::ForEachFile(const std::string& only,
                                 absl::FunctionRef<void(int directory, const File& file)> visit) const {
  const FileDescriptor root = OpenRoot();
  if (!root.is_open()) return;
  std::vector<std::string> directories = {""};
  for (size_t i = 0; i < directories.size(); ++i) {
    const std::string directory = directories[i];
    if (!directory.empty() && !only.empty() && directory != only) continue;
    const std::string name = directory.empty() ? "." : directory;
    FileDescriptor opened(openat(root.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!opened.is_open()) continue;
    const int at = opened.get();
    ForEachName(std::move(opened), [&](const char* entry) {
      struct stat info;
      if (fstatat(at, entry, &info, AT_SYMLINK_NOFOLLOW) != 0) return;
      if (S_ISDIR(info.st_mode) && directory.empty()) directories.push_back(entry);
      if (!S_ISREG(info.st_mode)) return;
      visit(at, {directory, entry, info.st_size, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec});
    });
  }
}

void DirectoryStore::Touch(std::string_view key) {
  const absl::StatusOr<Place> place = Locate(key, /*create=*/false);
  if (place.ok()) utimensat(place->at(), place->name.c_str(), nullptr, 0);
}

int64_t DirectoryStore::BytesBeside(std::string_view key) {
  const size_t slash = key.rfind('/');
  const std::string_view directory = slash == std::string_view::npos ? std::string_view() : key.substr(0, slash);
  int64_t bytes = 0;
  ForEachFile(std::string(directory), [&](int, const File& file) {
    if (file.directory == directory) bytes += file.size;
  });
  return bytes;
}

void DirectoryStore::Evict(int64_t max_bytes) {
  const FileDescriptor root = OpenRoot();
  if (!root.is_open()) return;
  const auto lock = [&] {
    return FileDescriptor(openat(root.get(), kLock, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)).is_open();
  };
  if (!lock()) {
    constexpr time_t kMaxSeconds = 10;
    struct stat info;
    if (fstatat(root.get(), kLock, &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (time(nullptr) - info.st_mtime < kMaxSeconds) return;
    unlinkat(root.get(), kLock, 0);  // of a process that died
    if (!lock()) return;
  }
  constexpr int64_t kHourNs = int64_t{3600} * 1'000'000'000;
  const int64_t now_ns = static_cast<int64_t>(time(nullptr)) * 1'000'000'000;
  std::vector<File> files;
  int64_t total = 0;
  ForEachFile("", [&](int at, const File& file) {
    if (!HoldsEntries(file.directory)) return;
    if (file.name.starts_with(kTemporaryPrefix)) {
      if (now_ns - file.time_ns > kHourNs) unlinkat(at, file.name.c_str(), 0);
      return;
    }
    files.push_back(file);
    total += file.size;
  });
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::tie(a.time_ns, a.directory, a.name) < std::tie(b.time_ns, b.directory, b.name);
  });
  for (const File& file : files) {
    if (total <= max_bytes) break;
    const FileDescriptor directory(
        openat(root.get(), file.directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (directory.is_open()) unlinkat(directory.get(), file.name.c_str(), 0);
    total -= file.size;
  }
  unlinkat(root.get(), kLock, 0);
}

}  // namespace hlokit
