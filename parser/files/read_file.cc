// SPDX-License-Identifier: Apache-2.0
#include "parser/files/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "google/protobuf/io/gzip_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "ir/core/str_cat.h"
#include "parser/store/object.h"

namespace hlokit {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";

// Protocol buffers begin with their first field, maybe after a length; MLIR bytecode with its name.
bool MayBeginModule(std::string_view text) {
  constexpr size_t kMaxVarintBytes = 10;
  return text.starts_with(kGzip) || text.starts_with("ML\xefR") ||
         text.substr(0, kMaxVarintBytes + 1).find('\x0a') != std::string_view::npos;
}

absl::StatusOr<std::string> Decompress(const std::string& compressed, uint64_t max_bytes) {
  if (compressed.size() > INT32_MAX) return absl::ResourceExhaustedError("gzip data of 2 GiB and more");
  google::protobuf::io::ArrayInputStream bytes(compressed.data(), static_cast<int>(compressed.size()));
  google::protobuf::io::GzipInputStream in(&bytes, google::protobuf::io::GzipInputStream::GZIP);
  std::string out;
  const void* data;
  int size;
  while (in.Next(&data, &size)) {
    out.append(static_cast<const char*>(data), static_cast<size_t>(size));
    if (out.size() > max_bytes) return absl::ResourceExhaustedError(StrCat("more than ", max_bytes, " bytes"));
  }
  constexpr int kStreamEnd = 1, kOk = 0, kBufError = -5;  // of zlib
  const int code = in.ZlibErrorCode();
  if (code != kStreamEnd && code != kOk && code != kBufError) {
    return absl::DataLossError(StrCat("damaged gzip data", in.ZlibErrorMessage() == nullptr ? "" : ": ",
                                      in.ZlibErrorMessage() == nullptr ? "" : in.ZlibErrorMessage()));
  }
  // The stream ends with the data, whole or not. Whole data end with the size of the last member, mostly the only one.
  constexpr size_t kTrailer = 8, kHeader = 10;
  uint32_t size_of_last = 0;
  if (compressed.size() >= kHeader + kTrailer) {
    std::memcpy(&size_of_last, compressed.data() + compressed.size() - sizeof(size_of_last), sizeof(size_of_last));
  }
  const bool several = compressed.find("\x1f\x8b\x08", kHeader) != std::string::npos;
  const bool whole = size_of_last == static_cast<uint32_t>(out.size()) || (several && size_of_last < out.size());
  if (!whole || compressed.size() < kHeader + kTrailer) return absl::DataLossError("gzip data that are cut off");
  return out;
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
    const ssize_t n = read(fd, text.data() + used, text.size() - used);
    if (n < 0) {
      if (errno == EINTR) continue;
      status = absl::DataLossError(StrCat(name, ": ", strerror(errno)));
      break;
    }
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (contents == FileContents::kModule && used >= kBlock && memchr(text.data(), '\0', kFirstBytes) != nullptr &&
        !MayBeginModule(text)) {
      break;
    }
    if (used > max_bytes) {
      status = absl::ResourceExhaustedError(StrCat(name, ": more than ", max_bytes, " bytes"));
      break;
    }
  }
  if (!is_stdin) close(fd);
  if (!status.ok()) return status;
  text.resize(used);
  return text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SourceBuffer>> ReadFile(const std::string& path, uint64_t max_bytes,
                                                             FileContents contents) {
  const std::string name = path == "-" ? "<stdin>" : path;
  absl::StatusOr<std::string> read =
      IsStoreUrl(path) ? ReadObject(path, max_bytes) : ReadLocalFile(path, name, max_bytes, contents);
  if (!read.ok()) return read.status();
  std::string& text = *read;
  if (contents == FileContents::kModule && text.starts_with(kGzip)) {
    absl::StatusOr<std::string> plain = Decompress(text, max_bytes);
    if (!plain.ok())
      return absl::Status(plain.status().code(), StrCat(name, ": ", std::string(plain.status().message())));
    text = *std::move(plain);
  }
  return std::make_shared<const SourceBuffer>(name, std::move(text));
}

}  // namespace hlokit
