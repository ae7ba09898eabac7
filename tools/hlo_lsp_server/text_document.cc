// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_lsp_server/text_document.h"

#include <algorithm>
#include <utility>

#include "parser/text/scan.h"

namespace hlokit::lsp {
namespace {

// Appends the starts of the lines that begin after a line break in [begin, end). A break is \n, \r\n or \r.
void AppendLineStarts(std::string_view text, size_t begin, size_t end, std::vector<uint32_t>* starts) {
  const char* const base = text.data();
  const char* const stop = base + end;
  for (const char* p = base + begin;;) {
    p = scan::FindAny<'\n', '\r'>(p, stop);
    if (p >= stop) return;
    const char c = *p++;
    if (c == '\r' && p < base + text.size() && *p == '\n') continue;
    starts->push_back(static_cast<uint32_t>(p - base));
  }
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

TextDocument::TextDocument(std::string text, PositionEncoding encoding) : encoding_(encoding) {
  Reset(std::move(text));
}

void TextDocument::Reset(std::string text) {
  text_ = std::move(text);
  line_starts_.assign(1, 0);
  AppendLineStarts(text_, 0, text_.size(), &line_starts_);
  measured_line_ = -1;
}

uint32_t TextDocument::LineStart(int64_t line) const {
  if (line < 0) return 0;
  return line < line_count() ? line_starts_[static_cast<size_t>(line)] : static_cast<uint32_t>(text_.size());
}

int64_t TextDocument::LineOf(uint32_t offset) const {
  return std::upper_bound(line_starts_.begin(), line_starts_.end(), offset) - line_starts_.begin() - 1;
}

int64_t TextDocument::Units(uint32_t begin, uint32_t end) const {
  if (encoding_ == PositionEncoding::kUtf8) return end - begin;
  int64_t units = 0;
  for (uint32_t i = begin; i < end; ++i) {
    if (IsContinuation(text_[i])) continue;
    units += encoding_ == PositionEncoding::kUtf16 && static_cast<unsigned char>(text_[i]) >= 0xf0 ? 2 : 1;
  }
  return units;
}

void TextDocument::MeasureLine(int64_t line) const {
  if (line == measured_line_) return;
  measured_line_ = line;
  columns_.assign(1, 0);
  uint32_t at = LineStart(line);
  for (const uint32_t end = LineStart(line + 1); end - at > kLongLine; at += kLongLine) {
    columns_.push_back(columns_.back() + Units(at, at + kLongLine));
  }
}

Position TextDocument::PositionAt(uint32_t offset) const {
  const int64_t line = LineOf(offset);
  const uint32_t start = line_starts_[static_cast<size_t>(line)];
  if (offset - start <= kLongLine) return {line, Units(start, offset)};
  MeasureLine(line);
  const uint32_t k = std::min((offset - start) / kLongLine, static_cast<uint32_t>(columns_.size() - 1));
  return {line, columns_[k] + Units(start + k * kLongLine, offset)};
}

uint32_t TextDocument::OffsetAt(Position position) const {
  const uint32_t start = LineStart(position.line);
  if (position.line < 0 || position.line >= line_count()) return start;
  uint32_t end = LineStart(position.line + 1);
  while (end > start && (text_[end - 1] == '\n' || text_[end - 1] == '\r')) --end;
  if (encoding_ == PositionEncoding::kUtf8) {
    return start + static_cast<uint32_t>(std::clamp<int64_t>(position.character, 0, end - start));
  }
  uint32_t i = start;
  int64_t units = 0;
  if (end - start > kLongLine) {
    MeasureLine(position.line);
    const auto after = std::upper_bound(columns_.begin(), columns_.end(), std::max<int64_t>(position.character, 0));
    const auto k = static_cast<uint32_t>(after - columns_.begin() - 1);
    units = columns_[k];
    i = std::min(start + k * kLongLine, end);
    while (i < end && IsContinuation(text_[i])) ++i;  // of a character counted before
  }
  while (i < end && units < position.character) {
    units += encoding_ == PositionEncoding::kUtf16 && static_cast<unsigned char>(text_[i]) >= 0xf0 ? 2 : 1;
    ++i;
    while (i < end && IsContinuation(text_[i])) ++i;
  }
  return i;
}

void TextDocument::Replace(uint32_t begin, uint32_t end, std::string_view with) {
  end = std::min<uint32_t>(end, static_cast<uint32_t>(text_.size()));
  begin = std::min(begin, end);
  const int64_t shift = static_cast<int64_t>(with.size()) - (end - begin);
  text_.replace(begin, end - begin, with);
  // A break may consist of characters on both sides of an end of the edit, so the starts from `begin` to after `end`
  // are found again.
  const auto from = std::lower_bound(line_starts_.begin(), line_starts_.end(), begin);
  const auto to = std::upper_bound(line_starts_.begin(), line_starts_.end(), end + 1);
  const size_t first = std::max<size_t>(static_cast<size_t>(from - line_starts_.begin()), 1);
  const size_t last = std::max(static_cast<size_t>(to - line_starts_.begin()), first);
  for (size_t i = last; i < line_starts_.size(); ++i) {
    line_starts_[i] = static_cast<uint32_t>(line_starts_[i] + shift);
  }
  const uint32_t scan_begin = line_starts_[first - 1];
  const uint32_t scan_end = last < line_starts_.size() ? line_starts_[last] - 1 : static_cast<uint32_t>(text_.size());
  std::vector<uint32_t> starts;
  AppendLineStarts(text_, scan_begin, scan_end, &starts);
  const auto at = line_starts_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto stop = line_starts_.begin() + static_cast<std::ptrdiff_t>(last);
  const size_t kept = std::min(starts.size(), last - first);
  std::copy_n(starts.begin(), kept, at);
  if (kept < starts.size()) {
    line_starts_.insert(stop, starts.begin() + static_cast<std::ptrdiff_t>(kept), starts.end());
  } else {
    line_starts_.erase(at + static_cast<std::ptrdiff_t>(kept), stop);
  }
  measured_line_ = -1;
}

}  // namespace hlokit::lsp
