// SPDX-License-Identifier: Apache-2.0
#include "ir/core/source_buffer.h"

namespace hlokit {

LineColumn LineColumnAt(std::string_view text, size_t offset) {
  if (offset > text.size()) offset = text.size();
  LineColumn at{1, 1};
  size_t line_start = 0;
  for (size_t i = text.find('\n'); i < offset; i = text.find('\n', i + 1)) {
    ++at.line;
    line_start = i + 1;
  }
  at.column = static_cast<int64_t>(offset - line_start) + 1;
  return at;
}

std::string_view LineAt(std::string_view text, size_t offset) {
  if (offset > text.size()) offset = text.size();
  const size_t before = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  const size_t start = before == std::string_view::npos ? 0 : before + 1;
  size_t end = text.find('\n', offset);
  if (end == std::string_view::npos) end = text.size();
  return text.substr(start, end - start);
}

}  // namespace hlokit
