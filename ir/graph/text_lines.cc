// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/text_lines.h"

#include <algorithm>

namespace hlokit {

TextLines::TextLines(std::string_view text) {
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    newlines_.push_back(static_cast<uint32_t>(at));
  }
}

int64_t TextLines::Of(Instruction instruction) const {
  const uint32_t offset = instruction.record().source_offset;
  if (offset == InstructionRecord::kNoSourceOffset) return 0;
  return std::lower_bound(newlines_.begin(), newlines_.end(), offset) - newlines_.begin() + 1;
}

}  // namespace hlokit
