// SPDX-License-Identifier: Apache-2.0
// Recognizes inputs in formats that are not read by their first bytes, so that errors name the format and
// the way to convert it.
#ifndef HLOKIT_PARSER_FORMATS_FOREIGN_FORMAT_H_
#define HLOKIT_PARSER_FORMATS_FOREIGN_FORMAT_H_

#include <optional>
#include <string_view>

namespace hlokit {

struct ForeignFormat {
  std::string_view name;  // "gzip-compressed data"
  std::string_view hint;  // how to get HLO text from it
};

// Returns the format that `text` appears to be in, or nullopt if it may be one that is read. Reads at most a few KiB.
std::optional<ForeignFormat> DetectForeignFormat(std::string_view text);

// Returns true if `text` appears to be MLIR text, which StableHLO programs are in. Reads at most a few KiB.
bool LooksLikeMlir(std::string_view text);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_FORMATS_FOREIGN_FORMAT_H_
