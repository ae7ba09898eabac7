// SPDX-License-Identifier: Apache-2.0
// The text of an open document: edits, and the mapping between byte offsets and positions of the protocol, which are
// lines and columns in code units of the negotiated encoding.
//
// Bounds: an edit moves the text after it and the starts of its lines, 4 bytes a line; nothing is parsed. A position
// costs a search of its line and a scan from the line's start, or from the last position asked for if that is before it
// on the same line, so positions in ascending order take one pass.
#ifndef HLOKIT_TOOLS_HLO_LSP_SERVER_TEXT_DOCUMENT_H_
#define HLOKIT_TOOLS_HLO_LSP_SERVER_TEXT_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlokit::lsp {

// From 0.
struct Position {
  int64_t line = 0;
  int64_t character = 0;
};

enum class PositionEncoding : uint8_t { kUtf8, kUtf16, kUtf32 };

class TextDocument {
 public:
  TextDocument(std::string text, PositionEncoding encoding);

  std::string_view text() const { return text_; }
  const std::string& string() const { return text_; }
  int64_t line_count() const { return static_cast<int64_t>(line_starts_.size()); }

  // Returns the offset of the position; one after the end of its line or of the text is at that end.
  uint32_t OffsetAt(Position position) const;
  // Requires: `offset` is at most the size of the text.
  Position PositionAt(uint32_t offset) const;
  // Returns the start of the line from 0; of one after the last, the end of the text.
  uint32_t LineStart(int64_t line) const;
  int64_t LineOf(uint32_t offset) const;

  // Replaces the bytes from `begin` up to `end`.
  void Replace(uint32_t begin, uint32_t end, std::string_view with);
  void Reset(std::string text);

 private:
  static constexpr uint32_t kLongLine = 512;

  int64_t Units(uint32_t begin, uint32_t end) const;
  // Makes `columns_` those of the line.
  void MeasureLine(int64_t line) const;

  std::string text_;
  const PositionEncoding encoding_;
  std::vector<uint32_t> line_starts_;
  // Of the long line that was asked for last: the column at each kLongLine-th byte.
  mutable int64_t measured_line_ = -1;
  mutable std::vector<int64_t> columns_;
};

}  // namespace hlokit::lsp

#endif  // HLOKIT_TOOLS_HLO_LSP_SERVER_TEXT_DOCUMENT_H_
