// SPDX-License-Identifier: Apache-2.0
#include "parser/formats/foreign_format.h"

#include <algorithm>
#include <iterator>

#include "parser/bytecode/container.h"
#include "parser/bytecode/jax_export.h"

namespace hlokit {
namespace {

constexpr size_t kMaxBytesRead = 4096;

constexpr ForeignFormat kProtoText = {
    "a protocol buffer in text form",
    "expected the fields of an HloProto, HloModuleProto, HloSnapshot, HloUnoptimizedSnapshot or "
    "HloModuleProtoWithConfig, with a module"};
constexpr ForeignFormat kBinary = {"binary data", "binary files that hold a module are XLA's protocol buffers"};
constexpr std::string_view kEmptyProto = "it has no computation with instructions, or is cut off or damaged";
// By the number of messages in which the name of the module is.
constexpr ForeignFormat kProtos[] = {{"a serialized HloModuleProto", kEmptyProto},
                                     {"a serialized HloProto", kEmptyProto},
                                     {"a serialized HloSnapshot", kEmptyProto}};

constexpr ForeignFormat kUtf16 = {"UTF-16 text", "convert it to UTF-8 first: `iconv -f UTF-16 -t UTF-8 FILE | TOOL -`"};

// Data that begins with fixed bytes.
struct Magic {
  std::string_view bytes;
  ForeignFormat format;
};
constexpr Magic kSignatures[] = {
    {"\x1f\x8b", {"gzip-compressed data", "decompress it first: `gunzip -c FILE | TOOL -`"}},
    {"\x28\xb5\x2f\xfd", {"zstd-compressed data", "decompress it first: `zstd -dc FILE | TOOL -`"}},
    {"\xfd"
     "7zXZ",
     {"xz-compressed data", "decompress it first: `xz -dc FILE | TOOL -`"}},
    {"BZh", {"bzip2-compressed data", "decompress it first: `bzip2 -dc FILE | TOOL -`"}},
    {"PK\x03\x04", {"a zip archive", "extract the module from it first: `unzip -p FILE MODULE | TOOL -`"}},
    {"\xff\xfe", kUtf16},
    {"\xfe\xff", kUtf16},
    {"\x7f"
     "ELF",
     {"a program or an object file", kBinary.hint}}};

// Returns `text` from its first character outside of whitespace and comments to the end of a line, which begin with
// `//`, in the text form of protocol buffers with `# `, and with the aliases of MLIR, as in `#loc = `.
std::string_view SkipWhitespaceAndLineComments(std::string_view text) {
  while (true) {
    const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    text.remove_prefix(begin);
    if (!text.starts_with("//") && !text.starts_with("# ")) return text;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

bool IsBinary(std::string_view text) {
  constexpr size_t kBytes = 64;
  return std::any_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(kBytes, text.size())),
                     [](char c) { return (c >= 0 && c < 0x20 && (c < '\t' || c > '\r')) || c == 0x7f; });
}

bool IsMlir(std::string_view text) {
  for (std::string_view begin : {"module @", "module attributes", "builtin.module", "func.func", "#", "!",
                                 "\"builtin.module\"", "\"func.func\"", "sdy.mesh"}) {
    if (text.starts_with(begin)) return true;
  }
  const std::string_view line = text.substr(0, text.find('\n'));
  for (std::string_view op : {" = stablehlo.", " = \"stablehlo.", " = mhlo.", " = \"mhlo.", " = chlo.", " = vhlo."}) {
    if (line.find(op) != std::string_view::npos) return true;
  }
  // A computation can have the name `module`; instructions are in it, not modules.
  constexpr std::string_view kModule = "module {";
  if (!text.starts_with(kModule)) return false;
  const std::string_view inner = SkipWhitespaceAndLineComments(text.substr(kModule.size()));
  for (std::string_view begin : {"module {", "module @", "module attributes", "builtin.module"}) {
    if (inner.starts_with(begin)) return true;
  }
  return text.find("func.func") != std::string_view::npos || text.find("stablehlo.") != std::string_view::npos;
}

bool IsProtoText(std::string_view text) {
  if (text.starts_with("name: ") || text.starts_with("hlo_module <")) return true;
  for (std::string_view begin : {"hlo_module {", "computations {", "hlo {"}) {
    if (text.starts_with(begin)) return text.find(" name: \"") != std::string_view::npos;
  }
  return false;
}

// Returns the messages around the first string: each begins with its first field, which has a length. 0: no message.
size_t ProtoDepth(std::string_view text) {
  constexpr char kFirstField = '\x0a';
  size_t depth = 0;
  while (text.starts_with(kFirstField) && depth <= std::size(kProtos)) {
    text.remove_prefix(1);
    size_t length = 0;
    for (int shift = 0;; shift += 7) {
      if (text.empty() || shift > 28) return 0;
      const size_t byte = static_cast<unsigned char>(text[0]);
      text.remove_prefix(1);
      length |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) break;
    }
    ++depth;
    if (text.starts_with(kFirstField)) continue;
    const std::string_view name = text.substr(0, length);
    const auto is_printable = [](char c) { return c > 0x20 && c < 0x7f; };
    return !name.empty() && std::all_of(name.begin(), name.end(), is_printable) ? depth : 0;
  }
  return 0;
}

// Returns whether it is a tar archive, whose first header has its mark here.
bool IsTar(std::string_view text) { return text.size() > 262 && text.substr(257, 5) == "ustar"; }

}  // namespace

bool LooksLikeMlir(std::string_view text) {
  const std::string_view begin = SkipWhitespaceAndLineComments(text.substr(0, kMaxBytesRead));
  return !begin.starts_with("HloModule") && !begin.starts_with("{") && IsMlir(begin);
}

std::optional<ForeignFormat> DetectForeignFormat(std::string_view text) {
  if (bytecode::ArtifactOfJaxExport(text)) return std::nullopt;
  text = text.substr(0, kMaxBytesRead);
  if (bytecode::IsBytecode(text)) return std::nullopt;
  for (const Magic& magic : kSignatures) {
    if (text.starts_with(magic.bytes)) return magic.format;
  }
  if (IsTar(text)) return ForeignFormat{"a tar archive", "extract the module from it first: `tar -xOf FILE | TOOL -`"};
  const std::string_view begin = SkipWhitespaceAndLineComments(text);
  if (begin.starts_with("HloModule") || begin.starts_with("{")) return std::nullopt;  // `{` begins JSON
  if (IsProtoText(begin)) return kProtoText;
  if (IsBinary(text)) {
    const size_t depth = ProtoDepth(text);
    return depth == 0 || depth > std::size(kProtos) ? kBinary : kProtos[depth - 1];
  }
  return std::nullopt;
}

}  // namespace hlokit
