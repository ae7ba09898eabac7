// SPDX-License-Identifier: Apache-2.0
#include "interp/runtime/observe/profile_directory.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <system_error>

#include "interp/runtime/observe/profile_files.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"

namespace hlokit::runtime {

namespace {

// The limit of TensorBoard's own writer.
constexpr size_t kMaxTraceEvents = 1000000;

absl::Status WriteWhole(const std::filesystem::path& directory, const std::string& name, std::string_view bytes) {
  std::error_code error;
  const std::filesystem::path path = directory / name;
  const std::filesystem::path part = directory / StrCat(".", name, ".", static_cast<int64_t>(getpid()), ".part");
  std::ofstream file(part, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) error = std::make_error_code(std::errc::io_error);
  if (!error) std::filesystem::rename(part, path, error);
  if (!error) return absl::OkStatus();
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  const std::string message = StrCat(path.string(), ": ", error.message());
  return absl::PermissionDeniedError(message);
}

}  // namespace

std::filesystem::path ProfileRunDirectory(const std::filesystem::path& logdir, std::string_view run) {
  return logdir / "plugins" / "profile" / run;
}

absl::StatusOr<std::string> CompressedTrace(std::string_view xspace, size_t max_events) {
  std::string bytes;
  absl::Status status;
  {
    google::protobuf::io::StringOutputStream out(&bytes);
    google::protobuf::io::GzipOutputStream gzip(&out);
    TextWriter writer([&gzip](std::string_view piece) {
      void* place = nullptr;
      int size = 0;
      while (!piece.empty() && gzip.Next(&place, &size)) {
        const size_t taken = std::min(piece.size(), static_cast<size_t>(size));
        std::memcpy(place, piece.data(), taken);
        piece.remove_prefix(taken);
        if (taken < static_cast<size_t>(size)) gzip.BackUp(size - static_cast<int>(taken));
      }
    });
    status = WriteProfileTrace(xspace, max_events, &writer);
    writer.Flush();
    gzip.Close();
  }
  if (!status.ok()) return status;
  return bytes;
}

absl::Status WriteProfileDirectory(const std::filesystem::path& directory, const std::string& host,
                                   std::string_view xspace) {
  const absl::StatusOr<std::string> trace = CompressedTrace(xspace, kMaxTraceEvents);
  if (!trace.ok()) return trace.status();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    const std::string message = StrCat(directory.string(), ": ", error.message());
    return absl::PermissionDeniedError(message);
  }
  if (absl::Status s = WriteWhole(directory, host + ".trace.json.gz", *trace); !s.ok()) return s;
  return WriteWhole(directory, host + ".xplane.pb", xspace);
}

}  // namespace hlokit::runtime
