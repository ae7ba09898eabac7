// SPDX-License-Identifier: Apache-2.0
// StrCat and StrAppend over std::string_view. (Debian's abseil is built with its own string_view type, which does not
// convert from the standard one.)
#ifndef HLOKIT_IR_CORE_STR_CAT_H_
#define HLOKIT_IR_CORE_STR_CAT_H_

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace hlokit {
namespace str_cat_internal {

inline void AppendPiece(std::string* out, std::string_view s) { out->append(s); }
inline void AppendPiece(std::string* out, char c) { out->push_back(c); }
template <std::integral T>
void AppendPiece(std::string* out, T v) {
  char buffer[24];
  out->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), v).ptr);
}

}  // namespace str_cat_internal

// Arguments: strings, single characters, integers (in decimal).
template <typename... Pieces>
void StrAppend(std::string* out, const Pieces&... pieces) {
  (str_cat_internal::AppendPiece(out, pieces), ...);
}

template <typename... Pieces>
std::string StrCat(const Pieces&... pieces) {
  std::string out;
  StrAppend(&out, pieces...);
  return out;
}

// Returns "1 pass", "2 passes"; without `many`, of a plural with s.
template <std::integral T>
std::string Counted(T count, std::string_view one, std::string_view many = {}) {
  return StrCat(count, " ", count == 1 || many.empty() ? one : many, count == 1 || !many.empty() ? "" : "s");
}

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_STR_CAT_H_
