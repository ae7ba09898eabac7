// SPDX-License-Identifier: Apache-2.0
// ZIP archives as far as NumPy's .npz files need them (PKWARE's APPNOTE.TXT 6.3): members that are stored or deflated,
// with sizes of 64 bits and names in UTF-8; no encryption, no archives in several files.
#ifndef HLOKIT_IO_ARRAYS_ZIP_ARCHIVE_H_
#define HLOKIT_IO_ARRAYS_ZIP_ARCHIVE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/files/atomic_file_writer.h"
#include "io/files/byte_source.h"

namespace hlokit::interp {

struct ZipMember {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;           // CRC-32 of the contents
  uint64_t stored_bytes = 0;  // in the archive
  uint64_t bytes = 0;         // of the contents
  uint64_t header = 0;        // position of the local header
};

// The contents of a member: a range of a source.
struct ZipContents {
  std::shared_ptr<const ByteSource> source;
  uint64_t begin = 0, bytes = 0;
};

class ZipArchive {
 public:
  // Reads the directory. Returns an error unless it is valid and names are unique.
  static absl::StatusOr<ZipArchive> Open(std::shared_ptr<const ByteSource> source);

  const std::vector<ZipMember>& members() const { return members_; }
  // Returns the range of a stored member of more than 64 MiB, of which nothing is read; reads and inflates others and
  // checks their CRC. Returns RESOURCE_EXHAUSTED, and inflates nothing, for more than `max_inflated_bytes`.
  absl::StatusOr<ZipContents> Contents(size_t member, uint64_t max_inflated_bytes) const;

 private:
  explicit ZipArchive(std::shared_ptr<const ByteSource> source) : source_(std::move(source)) {}

  std::shared_ptr<const ByteSource> source_;
  std::vector<ZipMember> members_;
};

// Writes an archive of stored members, the same bytes for the same members.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFileWriter* file) : file_(*file) {}
  // Adds a member whose contents are the chunks one after another.
  void Add(std::string_view name, std::string_view first, std::string_view second);
  // Writes the directory. Called last.
  void Finish();

 private:
  void Write(std::string_view bytes);

  AtomicFileWriter& file_;
  uint64_t written_ = 0;
  std::vector<ZipMember> members_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_IO_ARRAYS_ZIP_ARCHIVE_H_
