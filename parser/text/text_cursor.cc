// SPDX-License-Identifier: Apache-2.0
#include "parser/text/text_cursor.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"
#include "parser/text/scan.h"

namespace hlokit {

namespace char_class {
namespace {
struct Table {
  uint8_t classes[256] = {};
  constexpr Table() {
    for (int c = 'a'; c <= 'z'; ++c) classes[c] = kNameStart | kName;
    for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kNameStart | kName;
    for (int c = '0'; c <= '9'; ++c) classes[c] = kDigit | kName;
    classes[static_cast<int>('_')] = kNameStart | kName;
    classes[static_cast<int>('.')] = kName;
    classes[static_cast<int>('-')] = kName;
    for (char c : {' ', '\t', '\n', '\r', '\v', '\f'}) classes[static_cast<int>(c)] = kWhitespace;
  }
};
constexpr Table kBuilt;
}  // namespace
#define ROW(i) kBuilt.classes[i], kBuilt.classes[i + 1], kBuilt.classes[i + 2], kBuilt.classes[i + 3]
#define ROWS(i) ROW(i), ROW(i + 4), ROW(i + 8), ROW(i + 12), ROW(i + 16), ROW(i + 20), ROW(i + 24), ROW(i + 28)
const uint8_t kTable[256] = {ROWS(0), ROWS(32), ROWS(64), ROWS(96), ROWS(128), ROWS(160), ROWS(192), ROWS(224)};
#undef ROWS
#undef ROW
}  // namespace char_class

void TextCursor::SkipWhitespaceAndComments() {
  for (;;) {
    while (char_class::Is(*p_, char_class::kWhitespace)) ++p_;
    if (*p_ != '/') return;
    if (p_[1] == '/') {
      p_ = scan::FindAny<'\n', '\r'>(p_, end_);  // as in XLA, a lone carriage return ends a line
    } else if (p_[1] == '*') {
      const std::string_view rest(p_ + 2, static_cast<size_t>(end_ - p_) - 2);
      const size_t close = rest.find("*/");
      if (close == std::string_view::npos) {
        sink_->Error(DiagnosticKind::kUnterminatedComment, {Here(), 2}, "unterminated comment", "close it with `*/`");
        p_ = end_;
        return;
      }
      p_ += 2 + close + 2;
    } else {
      return;
    }
  }
}

bool TextCursor::TryConsume(std::string_view s) {
  SkipWhitespace();
  if (static_cast<size_t>(end_ - p_) < s.size() || std::memcmp(p_, s.data(), s.size()) != 0) return false;
  p_ += s.size();
  return true;
}

bool TextCursor::IsWord(std::string_view w) const {
  return static_cast<size_t>(end_ - p_) >= w.size() && std::memcmp(p_, w.data(), w.size()) == 0 &&
         !char_class::Is(p_[w.size()], char_class::kName);
}

bool TextCursor::ExpectName(std::string_view* name, std::string_view what) {
  *name = Name();
  if (!name->empty()) return true;
  return ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected ", what, ", found ", DescribeNext()));
}

bool TextCursor::AnyInt(int64_t* value) {
  const auto [stop, error] = std::from_chars(p_, end_, *value);
  if (error == std::errc()) {
    p_ = stop;
    return true;
  }
  if (error == std::errc::result_out_of_range) {
    return ErrorHere(DiagnosticKind::kNumberOutOfRange, StrCat("integer ", DescribeNext(), " does not fit in 64 bits"));
  }
  return ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected an integer, found ", DescribeNext()));
}

bool TextCursor::Bool(bool* value) {
  if (TryConsumeWord("true")) {
    *value = true;
    return true;
  }
  if (TryConsumeWord("false")) {
    *value = false;
    return true;
  }
  return ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected true or false, found ", DescribeNext()));
}

bool TextCursor::Double(double* value) {
  SkipWhitespace();
  const char* start = p_;
  if (*start == '+') ++start;
  const auto [stop, error] = std::from_chars(start, end_, *value);
  if (error == std::errc()) {
    p_ = stop;
    return true;
  }
  if (error == std::errc::result_out_of_range) {
    // Underflow yields zero; overflow is an error.
    const std::string copy(start, stop);
    const double parsed = std::strtod(copy.c_str(), nullptr);
    if (parsed > -1 && parsed < 1) {
      *value = parsed;
      p_ = stop;
      return true;
    }
    return ErrorHere(DiagnosticKind::kNumberOutOfRange, StrCat("number ", copy, " does not fit in a double"));
  }
  return ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected a number, found ", DescribeNext()));
}

bool Unescape(std::string_view quoted, std::string* out) {
  out->clear();
  const auto hex = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  for (size_t i = 0; i < quoted.size(); ++i) {
    const char* const begin = quoted.data();
    const auto plain = static_cast<size_t>(scan::FindAny<'\\'>(begin + i, begin + quoted.size()) - (begin + i));
    out->append(begin + i, plain);
    i += plain;
    if (i == quoted.size()) break;
    if (++i == quoted.size()) return false;
    const char c = quoted[i];
    switch (c) {
      case 'a':
        out->push_back('\a');
        break;
      case 'b':
        out->push_back('\b');
        break;
      case 'f':
        out->push_back('\f');
        break;
      case 'n':
        out->push_back('\n');
        break;
      case 'r':
        out->push_back('\r');
        break;
      case 't':
        out->push_back('\t');
        break;
      case 'v':
        out->push_back('\v');
        break;
      case '\\':
      case '?':
      case '\'':
      case '"':
        out->push_back(c);
        break;
      case 'x':
      case 'X': {
        int value = 0, digits = 0;
        while (i + 1 < quoted.size() && hex(quoted[i + 1]) >= 0) {
          value = value * 16 + hex(quoted[++i]);
          if (++digits > 2 && value > 0xff) return false;
        }
        if (digits == 0 || value > 0xff) return false;
        out->push_back(static_cast<char>(value));
        break;
      }
      default: {
        if (c < '0' || c > '7') return false;
        int value = c - '0';
        for (int digits = 1; digits < 3 && i + 1 < quoted.size() && quoted[i + 1] >= '0' && quoted[i + 1] <= '7';
             ++digits) {
          value = value * 8 + (quoted[++i] - '0');
        }
        if (value > 0xff) return false;
        out->push_back(static_cast<char>(value));
      }
    }
  }
  return true;
}

bool TextCursor::String(std::string_view* value, std::string* scratch, bool* stable) {
  SkipWhitespace();
  const char quote = *p_;
  if (quote != '"' && quote != '\'') {
    return ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected a quoted string, found ", DescribeNext()));
  }
  const uint32_t start = Here();
  const char* first = p_ + 1;
  const char* q = first;
  bool escaped = false;
  for (;;) {
    q = quote == '"' ? scan::FindAny<'"', '\\'>(q, end_) : scan::FindAny<'\'', '\\'>(q, end_);
    if (q >= end_ || *q == quote) break;
    escaped = true;
    q += q + 1 < end_ ? 2 : 1;
  }
  if (q >= end_) {
    return Error(DiagnosticKind::kUnterminatedString, {start, 1}, "unterminated string");
  }
  const std::string_view raw(first, static_cast<size_t>(q - first));
  p_ = q + 1;
  *stable = !escaped;
  *value = raw;
  if (!escaped) return true;
  if (!Unescape(raw, scratch)) {
    return Error(DiagnosticKind::kUnterminatedString, {start, static_cast<uint32_t>(raw.size() + 2)},
                 "malformed escape in a string");
  }
  *value = *scratch;
  return true;
}

bool TextCursor::Braced(std::string_view* text) {
  SkipWhitespace();
  const char* start = p_;
  if (*p_ != '{') {
    return ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected `{`, found ", DescribeNext()));
  }
  if (const char* close = scan::BracedEnd(p_, end_); close != nullptr) {
    p_ = close;
    *text = {start, static_cast<size_t>(p_ - start)};
    return true;
  }
  return Error(DiagnosticKind::kUnexpectedToken, {Here(), 1}, "unbalanced `{`: no matching `}`");
}

std::string_view TextCursor::RawValue() {
  SkipWhitespace();
  const char* start = p_;
  int64_t depth = 0;
  while (p_ < end_) {
    const char c = *p_;
    if (c == '"') {
      for (++p_; p_ < end_ && *p_ != '"'; ++p_) {
        if (*p_ == '\\' && p_ + 1 < end_) ++p_;
      }
      if (p_ >= end_) break;
    } else if (c == '{' || c == '(' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ')' || c == ']') {
      if (depth == 0) break;
      --depth;
    } else if (depth == 0 && (c == ',' || c == '\n')) {
      break;
    }
    ++p_;
  }
  const char* stop = p_;
  while (stop > start && char_class::Is(stop[-1], char_class::kWhitespace)) --stop;
  return {start, static_cast<size_t>(stop - start)};
}

bool TextCursor::Error(DiagnosticKind kind, SourceRange range, std::string message, std::string hint) {
  sink_->Error(kind, range, std::move(message), std::move(hint));
  return false;
}

SourceRange TextCursor::Next() {
  SkipWhitespace();
  if (p_ >= end_) return {Here(), 0};
  const char* q = p_;
  if (*q == '"') {
    for (++q; q < end_ && *q != '"' && *q != '\n'; ++q) {
      if (*q == '\\' && q + 1 < end_) ++q;
    }
    if (q < end_ && *q == '"') ++q;
  } else {
    if (*q == '%' || *q == '-') ++q;
    q = scan::NameEnd(q, end_);
    if (q == p_) q += std::max<size_t>(Utf8Length({p_, static_cast<size_t>(end_ - p_)}), 1);
  }
  return {Here(), static_cast<uint32_t>(q - p_)};
}

std::string TextCursor::DescribeNext() {
  const SourceRange range = Next();
  if (range.size == 0) return "the end of the text";
  std::string_view word = Between(range.offset, range.offset + range.size);
  if (word.size() > 60) return StrCat('`', word.substr(0, 57), "...`");
  return StrCat('`', word, '`');
}

bool TextCursor::ReportExpected(char c, std::string_view where) {
  return ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected `", c, "` ", where, ", found ", DescribeNext()));
}

}  // namespace hlokit
