// SPDX-License-Identifier: Apache-2.0
#include "ir/core/json_writer.h"

#include <cmath>
#include <cstddef>
#include <cstring>

#include "ir/core/double_text.h"
#include "ir/core/printable_text.h"

namespace hlokit {
namespace {

constexpr char kHex[] = "0123456789abcdef";

// True for bytes that need no escape: printable ASCII other than the quote and the backslash.
struct PlainTable {
  bool plain[256] = {};
  constexpr PlainTable() {
    for (int c = 0x20; c < 0x80; ++c) plain[c] = true;
    plain[static_cast<int>('"')] = plain[static_cast<int>('\\')] = false;
  }
};
constexpr PlainTable kPlain;

// Returns false if any of the eight bytes at `p` may need an escape.
bool EightPlain(const char* p) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = kOnes << 7;
  uint64_t bytes;
  std::memcpy(&bytes, p, sizeof(bytes));
  // A difference has a high bit where a byte is below the space, or is the quote or the backslash.
  const uint64_t control = bytes - kOnes * ' ';
  const uint64_t quote = (bytes ^ kOnes * '"') - kOnes;
  const uint64_t backslash = (bytes ^ kOnes * '\\') - kOnes;
  return ((bytes | control | quote | backslash) & kHigh) == 0;
}

// Returns the first byte from `i` on that may need an escape.
size_t PlainEnd(std::string_view s, size_t i) {
  while (i + 8 <= s.size() && EightPlain(s.data() + i)) i += 8;
  while (i < s.size() && kPlain.plain[static_cast<unsigned char>(s[i])]) ++i;
  return i;
}

void PrintEscape(TextWriter& out, unsigned char c, JsonInvalidUtf8 invalid) {
  if (c >= 0x80 && invalid == JsonInvalidUtf8::kReplace) {
    out << "\xef\xbf\xbd";
    return;
  }
  const char* prefix = c < 0x80 ? "\\u00" : "\\udc";
  out << prefix << kHex[c >> 4] << kHex[c & 15];
}

}  // namespace

void PrintJsonString(TextWriter& out, std::string_view s, JsonInvalidUtf8 invalid) {
  out << '"';
  size_t begin = 0;  // of the run that is copied verbatim
  for (size_t i = PlainEnd(s, 0); i < s.size(); i = PlainEnd(s, i)) {
    const auto c = static_cast<unsigned char>(s[i]);
    if (c >= 0x80) {
      if (const size_t length = Utf8Length(s.substr(i)); length != 0) {
        i += length;
        continue;
      }
    }
    out.Append(s.substr(begin, i - begin));
    begin = ++i;
    switch (c) {
      case '"':
        out << "\\\"";
        break;
      case '\\':
        out << "\\\\";
        break;
      case '\n':
        out << "\\n";
        break;
      case '\r':
        out << "\\r";
        break;
      case '\t':
        out << "\\t";
        break;
      default:
        PrintEscape(out, c, invalid);
    }
  }
  out.Append(s.substr(begin));
  out << '"';
}

JsonWriter& JsonWriter::Value(double value) {
  if (!std::isfinite(value)) return Null();
  Raw() << FormatDouble(value);
  return *this;
}

JsonWriter& JsonWriter::Rounded(double value, int digits) {
  if (!std::isfinite(value)) return Null();
  Raw() << FormatDouble(value, digits);
  return *this;
}

void JsonWriter::BeginLine() {
  if (!empty_) out_ << ',';
  Indent();
}

void JsonWriter::Indent() {
  out_ << '\n';
  for (int i = 0; i < depth_; ++i) out_ << "  ";
}

}  // namespace hlokit
