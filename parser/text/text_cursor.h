// SPDX-License-Identifier: Apache-2.0
// Character level of all grammars: a cursor over a source text that skips whitespace and comments, parses words,
// numbers and strings, and reports errors with their location. There are no tokens: grammars try what they expect,
// which is fast. Errors are reported, and returned as `false`.
//
// A NUL follows the text, so reading the next character needs no bounds check.
#ifndef HLOKIT_PARSER_TEXT_TEXT_CURSOR_H_
#define HLOKIT_PARSER_TEXT_TEXT_CURSOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "parser/text/scan.h"

namespace hlokit {

class TextCursor {
 public:
  // Requires: `text[text.size()]` is readable and NUL (std::string). `base` is the offset of `text` in the source of
  // the diagnostics.
  TextCursor(std::string_view text, DiagnosticSink* sink, uint32_t base = 0)
      : begin_(text.data()), p_(text.data()), end_(text.data() + text.size()), sink_(sink), base_(base) {}

  // Returns the current offset, after whitespace and comments.
  uint32_t Offset() {
    SkipWhitespace();
    return Here();
  }
  uint32_t Here() const { return base_ + static_cast<uint32_t>(p_ - begin_); }
  void Seek(uint32_t offset) { p_ = begin_ + (offset - base_); }
  std::string_view Between(uint32_t from, uint32_t to) const { return {begin_ + (from - base_), to - from}; }
  const char* cursor() const { return p_; }
  void set_cursor(const char* p) { p_ = p; }
  const char* end() const { return end_; }

  // Skips whitespace, `/* */` and `//` comments. An unterminated comment is reported once and ends the text.
  void SkipWhitespace() {
    if (*p_ == ' ') ++p_;
    // All other characters above the space, such as letters and brackets, are significant.
    if (*p_ <= ' ' || *p_ == '/') SkipWhitespaceAndComments();
  }

  // Returns the next character after whitespace; NUL at the end.
  char Peek() {
    SkipWhitespace();
    return *p_;
  }
  bool AtEnd() {
    SkipWhitespace();
    return p_ >= end_;
  }

  // Consumes `c` if it is next.
  bool TryConsume(char c) {
    if (*p_ != c) {
      if (*p_ > ' ' && *p_ != '/') return false;
      SkipWhitespace();
      if (*p_ != c) return false;
    }
    ++p_;
    return true;
  }
  // Consumes the punctuation `s` ("->", "<=") if it is next.
  bool TryConsume(std::string_view s);
  // Consumes the word `w` if it is the next whole name.
  bool TryConsumeWord(std::string_view w) {
    if (!PeekWord(w)) return false;
    p_ += w.size();
    return true;
  }
  bool PeekWord(std::string_view w) {
    SkipWhitespace();
    return *p_ == w[0] && IsWord(w);
  }

  // Consumes `c` or reports "expected 'c' <where>, found ...".
  bool Expect(char c, std::string_view where) { return TryConsume(c) || ReportExpected(c, where); }

  // Consumes and returns a name, without a leading '%'. Empty, with nothing consumed, if there is none.
  std::string_view Name() {
    SkipWhitespace();
    if (*p_ == '%') ++p_;
    return BareName();
  }
  std::string_view BareName() {
    const char* start = p_;
    if (!char_class::Is(*p_, char_class::kNameStart)) return {};
    p_ = scan::NameEnd(p_ + 1, end_);
    return {start, static_cast<size_t>(p_ - start)};
  }
  // Consumes a name, or reports "expected <what>".
  bool ExpectName(std::string_view* name, std::string_view what);

  // Consumes an integer with optional sign. Reports an error if there is none or it overflows int64.
  bool Int(int64_t* value) {
    SkipWhitespace();
    // Nearly all integers are short and have no sign.
    const char* p = p_;
    int64_t number = 0;
    for (; char_class::IsDigit(*p) && p - p_ < 18; ++p) number = number * 10 + (*p - '0');
    if (p == p_ || char_class::IsDigit(*p)) return AnyInt(value);
    *value = number;
    p_ = p;
    return true;
  }
  // Returns true if an integer starts here.
  bool AtInt() {
    const char c = Peek();
    return char_class::Is(c, char_class::kDigit) || (c == '-' && char_class::Is(p_[1], char_class::kDigit));
  }
  bool Bool(bool* value);
  // Consumes a decimal number: integer, fraction, exponent, inf, nan.
  bool Double(double* value);

  // Consumes a quoted string ("..." or '...') and resolves C escapes. Sets `stable` if the view points into the text
  // (no escapes); otherwise it points into `scratch`.
  bool String(std::string_view* value, std::string* scratch, bool* stable);
  // Consumes a balanced {...}, respecting quotes, verbatim.
  bool Braced(std::string_view* text);
  // Returns the same text as Braced without consuming it. Empty if there is none or its end is far away.
  std::string_view PeekBraced() {
    SkipWhitespace();
    if (*p_ != '{') return {};
    constexpr std::ptrdiff_t kFar = 4096;
    const char* const close = scan::BracedEnd(p_, end_ - p_ > kFar ? p_ + kFar : end_);
    if (close == nullptr) return {};
    return {p_, static_cast<size_t>(close - p_)};
  }
  // Consumes unrecognized text up to a ',' or closing bracket at depth 0 (respecting quotes and brackets), trimmed.
  std::string_view RawValue();

  // Reports an error and returns false.
  bool Error(DiagnosticKind kind, SourceRange range, std::string message, std::string hint = "");
  // Reports an error at the next word, number, string or character.
  bool ErrorHere(DiagnosticKind kind, std::string message, std::string hint = "") {
    return Error(kind, Next(), std::move(message), std::move(hint));
  }
  // Returns the range of the next word, number, string or character, which messages quote.
  SourceRange Next();
  std::string DescribeNext();

  DiagnosticSink* sink() const { return sink_; }

 private:
  void SkipWhitespaceAndComments();
  bool AnyInt(int64_t* value);
  // Returns true if `w` is at the cursor.
  bool IsWord(std::string_view w) const;
  bool ReportExpected(char c, std::string_view where);

  const char* begin_;
  const char* p_;
  const char* end_;
  DiagnosticSink* sink_;
  uint32_t base_;
};

// Resolves the escapes of `quoted`. Returns false if one is malformed.
bool Unescape(std::string_view quoted, std::string* out);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_TEXT_CURSOR_H_
