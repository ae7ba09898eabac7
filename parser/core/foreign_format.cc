// SPDX-License-Identifier: Apache-2.0
#include "parser/core/foreign_format.h"

#include <algorithm>

namespace hlokit {
namespace {

constexpr size_t kMaxBytesRead = 4096;

constexpr ForeignFormat kMlir = {
    "MLIR",
    "hlokit reads HLO text: convert StableHLO with XLA's `hlo-translate -mlir-to-hlo-text`, or let JAX print "
    "`lowered.as_text(dialect=\"hlo\")`"};
constexpr ForeignFormat kProtoText = {
    "a protocol buffer in text form",
    "hlokit reads HLO text: print it with XLA's `HloModule::ToString()`, or dump with `--xla_dump_hlo_as_text`"};
constexpr ForeignFormat kBinary = {
    "binary data, such as a serialized HloProto",
    "hlokit reads HLO text: print it with XLA's `HloModule::ToString()`, or dump with `--xla_dump_hlo_as_text`"};

// Returns `text` from its first character outside of whitespace and comments to the end of a line.
std::string_view SkipWhitespaceAndLineComments(std::string_view text) {
  while (true) {
    const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    text.remove_prefix(begin);
    if (!text.starts_with("//")) return text;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

bool IsBinary(std::string_view text) {
  constexpr size_t kBytes = 64;
  return std::any_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(kBytes, text.size())),
                     [](char c) { return (c >= 0 && c < 0x20 && (c < '\t' || c > '\r')) || c == 0x7f; });
}

bool IsMlir(std::string_view text) {
  for (std::string_view begin :
       {"module @", "module attributes", "builtin.module", "func.func", "#loc", "\"builtin.module\""}) {
    if (text.starts_with(begin)) return true;
  }
  // A computation can have the name `module`.
  if (!text.starts_with("module {")) return false;
  return text.find("func.func") != std::string_view::npos || text.find("stablehlo.") != std::string_view::npos;
}

bool IsProtoText(std::string_view text) {
  if (text.starts_with("name: \"")) return true;
  if (!text.starts_with("hlo_module {") && !text.starts_with("computations {")) return false;
  return text.find(" name: \"") != std::string_view::npos;
}

}  // namespace

std::optional<ForeignFormat> DetectForeignFormat(std::string_view text) {
  text = text.substr(0, kMaxBytesRead);
  if (text.starts_with("\x1f\x8b")) {
    return ForeignFormat{"gzip-compressed data", "decompress it first: `gunzip -c FILE | TOOL -`"};
  }
  if (text.starts_with("\x28\xb5\x2f\xfd")) {
    return ForeignFormat{"zstd-compressed data", "decompress it first: `zstd -dc FILE | TOOL -`"};
  }
  if (text.starts_with("PK\x03\x04")) return ForeignFormat{"a zip archive", "extract the module from it first"};
  if (text.starts_with("ML\xefR")) return ForeignFormat{"MLIR bytecode", kMlir.hint};
  const std::string_view begin = SkipWhitespaceAndLineComments(text);
  if (begin.starts_with("HloModule") || begin.starts_with("{")) return std::nullopt;  // `{` begins JSON
  if (IsMlir(begin)) return kMlir;
  if (IsProtoText(begin)) return kProtoText;
  if (IsBinary(text)) return kBinary;
  return std::nullopt;
}

}  // namespace hlokit
