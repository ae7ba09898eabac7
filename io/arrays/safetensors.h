// SPDX-License-Identifier: Apache-2.0
// Reads and writes named arrays in the safetensors format (https://github.com/huggingface/safetensors): eight bytes
// with the length of a JSON header, little endian; the header, an object of NAME: {"dtype", "shape", "data_offsets"}
// padded with spaces; the arrays, row-major, contiguous.
//
// The reader is strict: a header of at most 100 MB, unique names, known types, offsets that cover the data exactly,
// bools of 0 or 1. It allocates no more than the file contains.
#ifndef HLOKIT_IO_ARRAYS_SAFETENSORS_H_
#define HLOKIT_IO_ARRAYS_SAFETENSORS_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/arrays/stored_array.h"
#include "io/files/byte_source.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

struct NamedValue {
  std::string name;
  Literal value;
};

struct SafetensorsFile {
  std::vector<NamedValue> tensors;                            // in the order of their data
  std::vector<std::pair<std::string, std::string>> metadata;  // "__metadata__"
};

// The header of a file.
struct SafetensorsIndex {
  std::vector<std::pair<std::string, StoredArray>> tensors;   // by name, in the order of their data
  std::vector<std::pair<std::string, std::string>> metadata;  // "__metadata__"
};

// Reads the header, and no elements.
absl::StatusOr<SafetensorsIndex> OpenSafetensors(std::shared_ptr<const ByteSource> source);

// Returns the bytes of a file, independent of the order of tensors: wider types first, then by name, like the format's
// own library. Returns an error that names a tensor with an unsupported type or a duplicate name.
absl::StatusOr<std::string> EncodeSafetensors(absl::Span<const NamedValue> tensors,
                                              absl::Span<const std::pair<std::string, std::string>> metadata = {});
// Decodes a file; shapes are of `context`.
absl::StatusOr<SafetensorsFile> DecodeSafetensors(std::string_view bytes, Context* context);

// Writes the file atomically.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedValue> tensors,
                              absl::Span<const std::pair<std::string, std::string>> metadata = {});
absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path, Context* context);

}  // namespace hlokit::interp

#endif  // HLOKIT_IO_ARRAYS_SAFETENSORS_H_
