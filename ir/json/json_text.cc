// SPDX-License-Identifier: Apache-2.0
#include "ir/json/json_text.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ir/text/literal_text.h"
#include "ir/types/element_type.h"

namespace hlokit {
namespace {

constexpr char kHex[] = "0123456789abcdef";

// True for bytes that stand for themselves: printable ASCII other than the quote and the backslash.
struct PlainTable {
  bool plain[256] = {};
  constexpr PlainTable() {
    for (int c = 0x20; c < 0x80; ++c) plain[c] = true;
    plain[static_cast<int>('"')] = plain[static_cast<int>('\\')] = false;
  }
};
constexpr PlainTable kPlain;

// Bytes of the UTF-8 sequence that `s` begins with; 0 if it is none (overlong forms, surrogates, past U+10FFFF).
size_t Utf8Length(std::string_view s) {
  const auto byte = [s](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || s.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool too_large = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

void PrintEscape(TextWriter& out, unsigned char c) {
  const char* prefix = c < 0x80 ? "\\u00" : "\\udc";
  out << prefix << kHex[c >> 4] << kHex[c & 15];
}

template <typename T>
void PrintNumber(TextWriter& out, T value, ElementType type) {
  if (!std::isfinite(value)) {
    out << '"';
    AppendScalar(out, type, reinterpret_cast<const std::byte*>(&value));
    out << '"';
    return;
  }
  char buffer[40];
  const char* end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  out << std::string_view(buffer, static_cast<size_t>(end - buffer));
}

}  // namespace

void PrintJsonString(TextWriter& out, std::string_view s) {
  out << '"';
  size_t begin = 0;  // of the run that is copied as it stands
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    if (kPlain.plain[c]) {
      ++i;
      continue;
    }
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
        PrintEscape(out, c);
    }
  }
  out.Append(s.substr(begin));
  out << '"';
}

void PrintJsonNumber(TextWriter& out, float value) { PrintNumber(out, value, ElementType::kF32); }
void PrintJsonNumber(TextWriter& out, double value) { PrintNumber(out, value, ElementType::kF64); }

}  // namespace hlokit
