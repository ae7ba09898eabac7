// SPDX-License-Identifier: Apache-2.0
#include "ir/core/printable_text.h"

#include <algorithm>

namespace hlokit {

size_t Utf8Length(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool too_large = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

ShownCharacter AppendShown(std::string* out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = Utf8Length(text);
  const bool c0 = (first < 0x20 && first != '\t' && first != '\n') || first == 0x7f;
  const bool c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
  if (length != 0 && !c0 && !c1) {
    out->append(text.substr(0, length));
    return {length, 1};
  }
  const size_t bytes = std::max<size_t>(length, 1);
  for (const char c : text.substr(0, bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    out->append("\\x").push_back(kHex[byte >> 4]);
    out->push_back(kHex[byte & 15]);
  }
  return {bytes, 4 * bytes};
}

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) text.remove_prefix(AppendShown(&out, text).bytes);
  return out;
}

}  // namespace hlokit
