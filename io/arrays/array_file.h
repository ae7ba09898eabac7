// SPDX-License-Identifier: Apache-2.0
// Files of arrays: NumPy's .npy (one array) and .npz (several with names), and safetensors. The suffix of the file
// selects the format. Only the headers and the arrays that are asked for are read.
#ifndef HLOKIT_IO_ARRAYS_ARRAY_FILE_H_
#define HLOKIT_IO_ARRAYS_ARRAY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/arrays/safetensors.h"
#include "io/arrays/stored_array.h"
#include "io/arrays/zip_archive.h"
#include "io/files/byte_source.h"

namespace hlokit::interp {

enum class ArrayFormat : uint8_t { kNpy, kNpz, kSafetensors };

// Returns the format that the suffix of the path names, nullopt if it names none of these.
std::optional<ArrayFormat> ArrayFormatOf(std::string_view path);

class ArrayFile {
 public:
  // Messages begin with the path.
  static absl::StatusOr<ArrayFile> Open(const std::string& path);
  static absl::StatusOr<ArrayFile> OpenSource(std::shared_ptr<const ByteSource> source, ArrayFormat format);

  // Returns the names of the arrays: that of a .npy file is empty, those of the others are in the order of the file for
  // .npz, and, because safetensors files have none, in the order in which people count (x2 before x10) for those.
  const std::vector<std::string>& names() const { return names_; }
  // Returns true if the order of names() is that of the file, false if it only follows from the names.
  bool is_ordered() const { return is_ordered_; }
  // Returns the number of the array, nullopt if there is none of this name.
  std::optional<size_t> Find(std::string_view name) const;
  // Returns the array's description. A deflated one is read whole; RESOURCE_EXHAUSTED if it has more than
  // `max_inflated_bytes` with its header.
  absl::StatusOr<StoredArray> Array(size_t number, uint64_t max_inflated_bytes) const;

 private:
  ArrayFile() = default;

  void Index();

  bool is_ordered_ = true;
  std::vector<std::string> names_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::vector<StoredArray> arrays_;    // of .npy and safetensors
  std::optional<ZipArchive> archive_;  // of .npz
  std::vector<size_t> members_;        // by array
};

// Writes arrays atomically in the format of the suffix. A .npy file has one array, and no name. Requires: the suffix
// names a format.
absl::Status WriteArrayFile(const std::string& path, absl::Span<const NamedValue> arrays);

}  // namespace hlokit::interp

#endif  // HLOKIT_IO_ARRAYS_ARRAY_FILE_H_
