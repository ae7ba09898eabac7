// SPDX-License-Identifier: Apache-2.0
// Quantized element types: `quant.uniform<i8<-128:127>:f32:1, {0.5:-3, 0.25}>`. An integer q of the storage type stands
// for (q - zero point) * scale of the expressed type; with an axis each index of that dimension has its own pair.
#ifndef HLOKIT_PARSER_MLIR_QUANTIZED_H_
#define HLOKIT_PARSER_MLIR_QUANTIZED_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace hlokit::mlir {

struct QuantizedType {
  std::string_view storage;    // "i8", "u4"
  std::string_view expressed;  // "f32"
  bool is_signed = true;
  int64_t width = 0;        // of the storage, in bits
  int64_t storage_min = 0;  // all of the type if no range is given
  int64_t storage_max = 0;
  std::optional<int64_t> axis;
  std::vector<double> scales;        // one, or one for each index of the axis
  std::vector<int64_t> zero_points;  // as many
};

// Returns the parts of a type's text without `!`; nullopt for texts of another form, blocks of several axes too.
std::optional<QuantizedType> ParseQuantized(std::string_view text);
// Returns what no tensor may have of it: a negative axis, scales that the expressed type can't hold; "" if all is well.
std::string CheckQuantized(const QuantizedType& type);
// Returns true if tensors of the sizes may have such elements in StableHLO: zero points lie in the storage range, the
// axis has as many indices as there are scales.
bool FitsTensor(const QuantizedType& type, absl::Span<const int64_t> sizes);

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_QUANTIZED_H_
