// SPDX-License-Identifier: Apache-2.0
// A source text with its name, and the mapping from byte offsets to lines and columns.
#ifndef HLOKIT_IR_CORE_SOURCE_BUFFER_H_
#define HLOKIT_IR_CORE_SOURCE_BUFFER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hlokit {

class SourceBuffer {
 public:
  SourceBuffer(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}

  // kText: of a file with a NUL among its first bytes, only these are read, which is enough to tell what it is.
  enum class Contents { kText, kAny };

  // Reads a file; "-" is standard input. Returns an error if it is not found, unreadable, or larger than `max_bytes`.
  static absl::StatusOr<std::shared_ptr<const SourceBuffer>> FromFile(const std::string& path,
                                                                      uint64_t max_bytes = uint64_t{1} << 32,
                                                                      Contents contents = Contents::kAny);

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
