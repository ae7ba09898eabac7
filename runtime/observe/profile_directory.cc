// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/profile_directory.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <system_error>

#include "io/files/atomic_file_writer.h"
#include "io/stores/store_url.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "runtime/observe/profile_files.h"

namespace hlokit::runtime {

namespace {

// The limit of TensorBoard's own writer.
constexpr size_t kMaxTraceEvents = 1000000;

absl::Status WriteWhole(const std::filesystem::path& path, std::string_view bytes) {
  absl::StatusOr<std::unique_ptr<AtomicFileWriter>> file = AtomicFileWriter::Open(path.string());
  if (!file.ok()) return file.status();
  (*file)->Write(bytes);
  return (*file)->Commit();
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
  if (!IsStoreUrl(directory.string())) std::filesystem::create_directories(directory, error);
  if (error) {
    const std::string message = StrCat(directory.string(), ": ", error.message());
    return absl::PermissionDeniedError(message);
  }
  if (absl::Status s = WriteWhole(directory / (host + ".trace.json.gz"), *trace); !s.ok()) return s;
  return WriteWhole(directory / (host + ".xplane.pb"), xspace);
}

}  // namespace hlokit::runtime
