// SPDX-License-Identifier: Apache-2.0
#include "ir/core/source_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/core/str_cat.h"

namespace hlokit {

absl::StatusOr<std::shared_ptr<const SourceBuffer>> SourceBuffer::FromFile(const std::string& path, uint64_t max_bytes,
                                                                           Contents contents) {
  constexpr size_t kFirstBytes = 64, kBlock = 4096;
  const bool is_stdin = path == "-";
  const std::string name = is_stdin ? "<stdin>" : path;
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
    const ssize_t n = read(fd, text.data() + used, text.size() - used);
    if (n < 0) {
      if (errno == EINTR) continue;
      status = absl::DataLossError(StrCat(name, ": ", strerror(errno)));
      break;
    }
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (contents == Contents::kText && used >= kBlock && memchr(text.data(), '\0', kFirstBytes) != nullptr) break;
    if (used > max_bytes) {
      status = absl::ResourceExhaustedError(StrCat(name, ": more than ", max_bytes, " bytes"));
      break;
    }
  }
  if (!is_stdin) close(fd);
  if (!status.ok()) return status;
  text.resize(used);
  return std::make_shared<const SourceBuffer>(name, std::move(text));
}

LineColumn LineColumnAt(std::string_view text, size_t offset) {
  if (offset > text.size()) offset = text.size();
  LineColumn at{1, 1};
  size_t line_start = 0;
  for (size_t i = text.find('\n'); i < offset; i = text.find('\n', i + 1)) {
    ++at.line;
    line_start = i + 1;
  }
  at.column = static_cast<int64_t>(offset - line_start) + 1;
  return at;
}

std::string_view LineAt(std::string_view text, size_t offset) {
  if (offset > text.size()) offset = text.size();
  const size_t before = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  const size_t start = before == std::string_view::npos ? 0 : before + 1;
  size_t end = text.find('\n', offset);
  if (end == std::string_view::npos) end = text.size();
  return text.substr(start, end - start);
}

}  // namespace hlokit
