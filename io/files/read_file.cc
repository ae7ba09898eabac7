// SPDX-License-Identifier: Apache-2.0
#include "io/files/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "io/files/gzip_input.h"
#include "io/files/riegeli_input.h"
#include "io/stores/object.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

// Protocol buffers begin with their first field, maybe after a length; MLIR bytecode with its name.
bool MayBeginModule(std::string_view text) {
  constexpr size_t kMaxVarintBytes = 10;
  return text.starts_with(kGzipMagic) || text.starts_with(kRiegeliMagic) || text.starts_with("ML\xefR") ||
         text.substr(0, kMaxVarintBytes + 1).find('\x0a') != std::string_view::npos;
}

absl::Status Named(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), StrCat(name, ": ", std::string(status.message())));
}

// Reads once, as often as a signal interrupts it.
absl::StatusOr<size_t> ReadSome(int fd, char* to, size_t size) {
  for (;;) {
    const ssize_t n = read(fd, to, size);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) return absl::DataLossError(strerror(errno));
  }
}

// Reads a local file, or standard input.
absl::StatusOr<std::string> ReadLocalFile(const std::string& path, const std::string& name, uint64_t max_bytes,
                                          FileContents contents) {
  constexpr size_t kFirstBytes = 64, kBlock = 4096;
  const bool is_stdin = path == "-";
  const int fd = is_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::NotFoundError(StrCat(path, ": ", strerror(errno)));
  std::string text;
  struct stat info;
  if (fstat(fd, &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      if (!is_stdin) close(fd);
      return absl::InvalidArgumentError(StrCat(name, ": is a directory"));
    }
    // Another descriptor of this process, such as an event, has the number of a closed standard input.
    if (is_stdin && (info.st_mode & S_IFMT) == 0) {
      return absl::DataLossError(StrCat(name, ": ", strerror(EBADF)));
    }
    // One spare byte lets the last read detect the end of file without growing.
    if (S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) <= max_bytes) text.reserve(info.st_size + 1);
  }
  absl::Status status;
  size_t used = 0;
  for (;;) {
    if (used == text.size()) text.resize(text.capacity() > used ? text.capacity() : used * 2 + 65536);
    const absl::StatusOr<size_t> n = ReadSome(fd, text.data() + used, text.size() - used);
    if (!n.ok()) status = n.status();
    if (!n.ok() || *n == 0) break;
    used += *n;
    if (contents == FileContents::kModule && used >= kGzipMagic.size() && text.starts_with(kGzipMagic)) {
      const auto read_more = [fd](char* to, size_t size) { return ReadSome(fd, to, size); };
      text.resize(used);
      absl::StatusOr<std::string> plain = InflateGzip(text, read_more, max_bytes);
      status = plain.status();
      if (plain.ok()) text = *std::move(plain);
      used = text.size();
      break;
    }
    if (contents == FileContents::kModule && used >= kBlock && memchr(text.data(), '\0', kFirstBytes) != nullptr &&
        !MayBeginModule(text)) {
      break;
    }
    if (used > max_bytes) {
      status = absl::ResourceExhaustedError(StrCat("more than ", max_bytes, " bytes"));
      break;
    }
  }
  if (!is_stdin) close(fd);
  if (!status.ok()) return Named(name, status);
  text.resize(used);
  return text;
}

// Returns the message in the records of a Riegeli file; other contents as they are.
absl::StatusOr<std::string> Joined(std::string text, const std::string& name, uint64_t max_bytes,
                                   FileContents contents) {
  if (contents != FileContents::kModule || !text.starts_with(kRiegeliMagic)) return text;
  absl::StatusOr<std::string> message = ReadSplitProto(text, max_bytes);
  if (!message.ok()) return Named(name, message.status());
  return message;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SourceBuffer>> ReadFile(const std::string& path, uint64_t max_bytes,
                                                             FileContents contents) {
  const std::string name = path == "-" ? "<stdin>" : path;
  if (!IsStoreUrl(path)) {
    absl::StatusOr<std::string> text = ReadLocalFile(path, name, max_bytes, contents);
    if (!text.ok()) return text.status();
    text = Joined(*std::move(text), name, max_bytes, contents);
    if (!text.ok()) return text.status();
    return std::make_shared<const SourceBuffer>(name, *std::move(text));
  }
  absl::StatusOr<std::string> text = ReadObject(path, max_bytes);
  if (!text.ok()) return text.status();
  if (contents == FileContents::kModule && text->starts_with(kGzipMagic)) {
    absl::StatusOr<std::string> plain = InflateGzip(
        *text, [](char*, size_t) { return size_t{0}; }, max_bytes);
    if (!plain.ok()) return Named(name, plain.status());
    text = std::move(plain);
  }
  text = Joined(*std::move(text), name, max_bytes, contents);
  if (!text.ok()) return text.status();
  return std::make_shared<const SourceBuffer>(name, *std::move(text));
}

}  // namespace hlokit
