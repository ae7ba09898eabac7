// SPDX-License-Identifier: Apache-2.0
// A source text with its name, and the mapping from byte offsets to lines and columns.
#ifndef HLOKIT_IR_CORE_SOURCE_BUFFER_H_
#define HLOKIT_IR_CORE_SOURCE_BUFFER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hlokit {

class SourceBuffer {
 public:
  SourceBuffer(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

struct LineColumn {
  int64_t line = 0;    // from 1
  int64_t column = 0;  // from 1, in bytes
};

// Returns the line and column by a scan from the start: for error paths.
LineColumn LineColumnAt(std::string_view text, size_t offset);
// Returns the line around `offset`, without its newline.
std::string_view LineAt(std::string_view text, size_t offset);

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_SOURCE_BUFFER_H_
