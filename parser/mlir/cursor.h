// SPDX-License-Identifier: Apache-2.0
// Character level of MLIR text: a cursor that skips whitespace and `//` comments, reads names, numbers and strings, and
// reports errors with their location. There are no tokens: grammars try what they expect.
//
// A NUL follows the text, so reading the next character needs no bounds check.
#ifndef HLOKIT_PARSER_MLIR_CURSOR_H_
#define HLOKIT_PARSER_MLIR_CURSOR_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"

namespace hlokit::mlir {

// Returns text that is kept as it is in the source on one line: line breaks and comments that are not in strings, with
// the whitespace around them, are one space.
std::string OnOneLine(std::string_view text);

class Cursor {
 public:
  // Requires: `text[text.size()]` is readable and NUL. `base` is the offset of `text` in the source of diagnostics.
  Cursor(std::string_view text, DiagnosticSink* sink, uint32_t base = 0)
      : begin_(text.data()), p_(text.data()), end_(text.data() + text.size()), sink_(sink), base_(base) {}

  void Skip() {
    if (*p_ == ' ') ++p_;
    if (*p_ <= ' ' || *p_ == '/') SkipSlow();
  }
  char Peek() {
    Skip();
    return *p_;
  }
  bool AtEnd() {
    Skip();
    return p_ >= end_;
  }
  uint32_t Offset() {
    Skip();
    return Here();
  }
  uint32_t Here() const { return base_ + static_cast<uint32_t>(p_ - begin_); }
  void Seek(uint32_t offset) { p_ = begin_ + (offset - base_); }
  const char* at() const { return p_; }
  void set_at(const char* p) { p_ = p; }
  const char* end() const { return end_; }
  // The text from `begin` to here.
  std::string_view TextSince(const char* begin) const { return {begin, static_cast<size_t>(p_ - begin)}; }

  bool TryConsume(char c) {
    Skip();
    if (*p_ != c) return false;
    ++p_;
    return true;
  }
  bool TryConsume(std::string_view s) {
    Skip();
    if (static_cast<size_t>(end_ - p_) < s.size() || std::string_view(p_, s.size()) != s) return false;
    p_ += s.size();
    return true;
  }
  // Consumes the bare identifier `word` if it is next.
  bool TryConsumeWord(std::string_view word) {
    Skip();
    if (PeekWord() != word) return false;
    p_ += word.size();
    return true;
  }
  // Returns the next bare identifier, (letter|_)(letter|digit|_|$|.)*; empty if there is none.
  std::string_view PeekWord();
  std::string_view Word() {
    const std::string_view word = PeekWord();
    p_ += word.size();
    return word;
  }
  // Returns the name after `%`, `^`, `@`, `#` or `!`: digits, or letters and `$._-` with digits.
  std::string_view SuffixName();
  // Returns the name of an attribute: a bare identifier or a string.
  bool AttributeName(std::string* name);
  bool Expect(char c, std::string_view where = "") { return TryConsume(c) || ErrorExpected({&c, 1}, where); }
  bool Expect(std::string_view s, std::string_view where = "") { return TryConsume(s) || ErrorExpected(s, where); }

  // Returns true if a number, with a sign or not, starts here.
  bool AtNumber();
  // Reads a decimal or hexadecimal integer with an optional sign. Reports an error if there is none or it does not fit
  // in 64 bits; from 2^63 on it wraps around.
  bool Integer(int64_t* value);
  // Reads a quoted string, and resolves its escapes.
  bool String(std::string* value);

  // Consumes text up to the bracket that closes the one that was just consumed, with it. Respects strings. Returns the
  // text before the bracket.
  bool Balanced(char close, std::string_view* text);

  bool Error(DiagnosticKind kind, SourceRange range, std::string message, std::string hint = "") {
    if (range.offset != SourceRange::kNoOffset || !sink_->has_errors()) {
      sink_->Error(kind, range, std::move(message), std::move(hint));
    }
    return false;
  }
  bool ErrorHere(std::string message, std::string hint = "") {
    return Error(DiagnosticKind::kUnexpectedToken, Next(), std::move(message), std::move(hint));
  }
  bool ErrorExpected(std::string_view s, std::string_view where) {
    return ErrorHere(StrCat("expected '", s, "'", where.empty() ? "" : " ", where, ", found ", DescribeNext()));
  }
  SourceRange Next();
  std::string DescribeNext();
  DiagnosticSink* sink() const { return sink_; }

 private:
  void SkipSlow();

  const char* begin_;
  const char* p_;
  const char* end_;
  DiagnosticSink* sink_;
  uint32_t base_;
};

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_CURSOR_H_
