// SPDX-License-Identifier: Apache-2.0
// Line numbers of instructions.
#ifndef HLOKIT_IR_GRAPH_TEXT_LINES_H_
#define HLOKIT_IR_GRAPH_TEXT_LINES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

// Lines of a text by offset.
class TextLines {
 public:
  explicit TextLines(std::string_view text);
  // Returns the line of the instruction, from 1; 0 if it is in no text.
  int64_t Of(Instruction instruction) const;

 private:
  std::vector<uint32_t> newlines_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_TEXT_LINES_H_
