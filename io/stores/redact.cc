// SPDX-License-Identifier: Apache-2.0
#include "io/stores/redact.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hlokit {
namespace {

// Returns the byte that the two digits at the start of `text` stand for, after a `%`.
std::optional<char> HexByte(std::string_view text) {
  uint8_t byte = 0;
  if (text.size() < 2) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 2, byte, 16);
  if (error != std::errc() || end != text.data() + 2) return std::nullopt;
  return static_cast<char>(byte);
}

// As in a URL; a `%` without two digits is one.
std::string LenientlyDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::optional<char> byte = text[i] == '%' ? HexByte(text.substr(i + 1)) : std::nullopt;
    decoded.push_back(byte.value_or(text[i]));
    if (byte) i += 2;
  }
  return decoded;
}

// Returns the length of the character reference at the start of `text` if it stands for `c`, or 0.
size_t ReferenceLength(std::string_view text, char c) {
  constexpr size_t kMaxLength = 10;
  const size_t end = text.substr(0, kMaxLength).find(';');
  if (!text.starts_with('&') || end == std::string_view::npos) return 0;
  std::string_view name = text.substr(1, end - 1);
  if (name.starts_with('#')) {
    const bool hexadecimal = name.starts_with("#x") || name.starts_with("#X");
    name.remove_prefix(hexadecimal ? 2 : 1);
    uint32_t code = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), code, hexadecimal ? 16 : 10);
    const bool whole = error == std::errc() && stop == name.data() + name.size();
    return whole && code == static_cast<unsigned char>(c) ? end + 1 : 0;
  }
  const bool same = (name == "amp" && c == '&') || (name == "lt" && c == '<') || (name == "gt" && c == '>') ||
                    (name == "quot" && c == '"') || (name == "apos" && c == '\'');
  return same ? end + 1 : 0;
}

// Returns the length of the start of `text` that is the secret, in any encoding of each character, or 0.
size_t MatchLength(std::string_view text, std::string_view secret) {
  // Of a secret that has `%` itself, the text may have it as it is.
  const size_t plain = text.starts_with(secret) ? secret.size() : 0;
  size_t at = 0;
  for (const char c : secret) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with('%') && HexByte(rest.substr(1)) == c) {
      at += 3;
    } else if (const size_t length = ReferenceLength(rest, c); length > 0) {
      at += length;
    } else if (rest.starts_with(c)) {
      ++at;
    } else {
      return plain;
    }
  }
  return std::max(at, plain);
}

}  // namespace

std::string Redacted(std::string_view text, const std::vector<std::string>& secrets) {
  std::vector<std::string> forms = secrets;
  for (const std::string& secret : secrets) forms.push_back(LenientlyDecoded(secret));
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    for (const std::string& form : forms) {
      if (!form.empty()) length = std::max(length, MatchLength(text.substr(at), form));
    }
    if (length == 0) {
      out.push_back(text[at++]);
    } else {
      out += "...";
      at += length;
    }
  }
  return out;
}

}  // namespace hlokit
