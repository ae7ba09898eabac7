// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/string_split.h"

namespace hlokit::lazy {

std::string_view Trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> SplitTopLevel(std::string_view s) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (s[i] == '(' || s[i] == '[' || s[i] == '{') ++depth;
    if (s[i] == ')' || s[i] == ']' || s[i] == '}') --depth;
    if (s[i] == ',' && depth == 0) {
      parts.push_back(Trim(s.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (!Trim(s.substr(begin)).empty()) parts.push_back(Trim(s.substr(begin)));
  return parts;
}

}  // namespace hlokit::lazy
