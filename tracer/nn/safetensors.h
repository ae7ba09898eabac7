// SPDX-License-Identifier: Apache-2.0
// Files of named arrays in the safetensors format (https://github.com/huggingface/safetensors): eight bytes with the
// length of a JSON header, little endian; the header, an object of NAME: {"dtype", "shape", "data_offsets"} padded with
// blanks; the arrays, row-major, one after the other without gaps.
//
// A file is held to the format: a header of at most 100 MB, no name twice, known types, offsets that cover the data
// exactly. Nothing is allocated that the file does not hold.
#ifndef HLOKIT_TRACER_NN_SAFETENSORS_H_
#define HLOKIT_TRACER_NN_SAFETENSORS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"

namespace hlokit::lazy::nn {

struct NamedValue {
  std::string name;
  Literal value;
};

struct SafetensorsFile {
  std::vector<NamedValue> tensors;                            // in the order of their data
  std::vector<std::pair<std::string, std::string>> metadata;  // "__metadata__"
};

// The bytes of a file, the same for the same tensors in any order: wider types first, then by name, as the format's
// own library writes them. An error names a tensor whose type the format does not have, or a name that stands twice.
absl::StatusOr<std::string> EncodeSafetensors(absl::Span<const NamedValue> tensors,
                                              absl::Span<const std::pair<std::string, std::string>> metadata = {});
// Shapes are of `context`.
absl::StatusOr<SafetensorsFile> DecodeSafetensors(std::string_view bytes, Context* context);

// Writes the file whole or not at all.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedValue> tensors,
                              absl::Span<const std::pair<std::string, std::string>> metadata = {});
absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path, Context* context);

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_SAFETENSORS_H_
