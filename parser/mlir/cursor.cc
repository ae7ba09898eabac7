// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/cursor.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "ir/core/hex_digit.h"
#include "ir/core/printable_text.h"

namespace hlokit::mlir {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) { return IsLetter(c) || c == '_'; }
bool IsWordPart(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '$' || c == '.'; }
bool IsSuffixPart(char c) { return IsWordPart(c) || c == '-'; }

}  // namespace

std::string OnOneLine(std::string_view text) {
  if (text.find('\n') == std::string_view::npos) return std::string(text);
  std::string line;
  bool in_string = false, broken = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!in_string && (c == '\n' || (c == '/' && text.substr(i, 2) == "//"))) {
      while (i < text.size() && text[i] != '\n') ++i;
      while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.pop_back();
      broken = true;
      continue;
    }
    if (broken && (c == ' ' || c == '\t' || c == '\r')) continue;
    if (broken) line.push_back(' ');
    broken = false;
    line.push_back(c);
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\' && i + 1 < text.size()) line.push_back(text[++i]);
  }
  return line;
}

void Cursor::SkipSlow() {
  for (; p_ < end_; ++p_) {
    if (*p_ == '/' && p_[1] == '/') {
      const void* newline = std::memchr(p_, '\n', static_cast<size_t>(end_ - p_));
      if (newline == nullptr) {
        p_ = end_;
        return;
      }
      p_ = static_cast<const char*>(newline);
    } else if (*p_ != ' ' && *p_ != '\n' && *p_ != '\t' && *p_ != '\r') {
      return;
    }
  }
}

std::string_view Cursor::PeekWord() {
  Skip();
  if (!IsWordStart(*p_)) return {};
  const char* q = p_ + 1;
  while (IsWordPart(*q)) ++q;
  return {p_, static_cast<size_t>(q - p_)};
}

std::string_view Cursor::SuffixName() {
  const char* q = p_;
  if (IsDigit(*q)) {
    while (IsDigit(*q)) ++q;
  } else {
    while (IsSuffixPart(*q) && !(*q == '-' && q[1] == '>')) ++q;
  }
  const std::string_view name(p_, static_cast<size_t>(q - p_));
  p_ = q;
  return name;
}

bool Cursor::AttributeName(std::string* name) {
  if (Peek() == '"') return String(name);
  // The names of attributes may also have hyphens in old text; a bare identifier never ends with one.
  const std::string_view word = Word();
  if (word.empty()) return ErrorHere(StrCat("expected attribute name, found ", DescribeNext()));
  name->assign(word);
  return true;
}

bool Cursor::AtNumber() {
  const char c = Peek();
  return IsDigit(c) || (c == '-' && IsDigit(p_[1]));
}

bool Cursor::Integer(int64_t* value) {
  Skip();
  const char* q = p_;
  const bool negative = *q == '-';
  if (negative) ++q;
  while (negative && *q == ' ') ++q;
  if (!IsDigit(*q)) return ErrorHere(StrCat("expected integer value, found ", DescribeNext()));
  uint64_t magnitude = 0;
  const bool hex = q[0] == '0' && q[1] == 'x' && HexDigit(q[2]) >= 0;
  const auto [stop, error] = std::from_chars(hex ? q + 2 : q, end_, magnitude, hex ? 16 : 10);
  if (error != std::errc()) {
    return Error(DiagnosticKind::kNumberOutOfRange, Next(), "integer value does not fit in 64 bits");
  }
  *value = static_cast<int64_t>(negative ? -magnitude : magnitude);
  p_ = stop;
  return true;
}

bool Cursor::String(std::string* value) {
  value->clear();
  Skip();
  if (*p_ != '"') return ErrorHere(StrCat("expected string, found ", DescribeNext()));
  const uint32_t start = Here();
  for (const char* q = p_ + 1;;) {
    const char* run = q;
    while (q < end_ && *q != '"' && *q != '\\' && *q != '\n') ++q;
    value->append(run, static_cast<size_t>(q - run));
    if (q >= end_ || *q == '\n') {
      return Error(DiagnosticKind::kUnterminatedString, {start, 1}, "expected '\"' in string literal");
    }
    if (*q == '"') {
      p_ = q + 1;
      return true;
    }
    ++q;  // a backslash
    if (*q == '"' || *q == '\\') {
      value->push_back(*q++);
    } else if (*q == 'n' || *q == 't') {
      value->push_back(*q++ == 'n' ? '\n' : '\t');
    } else if (HexDigit(q[0]) >= 0 && HexDigit(q[1]) >= 0) {
      value->push_back(static_cast<char>(HexDigit(q[0]) * 16 + HexDigit(q[1])));
      q += 2;
    } else {
      return Error(DiagnosticKind::kBadCharacter, {base_ + static_cast<uint32_t>(q - begin_), 1},
                   "unknown escape in string literal");
    }
  }
}

bool Cursor::Balanced(char close, std::string_view* text) {
  const char* const start = p_;
  const uint32_t start_offset = Here();
  std::vector<char> closing = {close};
  std::string ignored;
  while (p_ < end_) {
    const char c = *p_;
    if (c == '"') {
      if (!String(&ignored)) return false;
      continue;
    }
    if (c == '/' && p_[1] == '/') {
      SkipSlow();
      continue;
    }
    ++p_;
    if (c == '-' && *p_ == '>') {
      ++p_;
    } else if (c == '<' && *p_ == '=') {  // as in shardings
      ++p_;
    } else if (c == '<' || c == '(' || c == '[' || c == '{') {
      closing.push_back(c == '<' ? '>' : c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == '>' || c == ')' || c == ']' || c == '}') {
      if (c != closing.back()) {
        --p_;
        return ErrorHere(StrCat("expected '", closing.back(), "', found '", c, "'"));
      }
      closing.pop_back();
      if (closing.empty()) {
        *text = {start, static_cast<size_t>(p_ - 1 - start)};
        return true;
      }
    }
  }
  return Error(DiagnosticKind::kUnexpectedToken, {start_offset, 1}, StrCat("expected '", close, "' before the end"));
}

SourceRange Cursor::Next() {
  Skip();
  const char* q = p_;
  if (q < end_ && (*q == '%' || *q == '^' || *q == '@' || *q == '#' || *q == '!')) ++q;
  while (IsSuffixPart(*q)) ++q;
  if (q == p_ && q < end_) q += std::max<size_t>(Utf8Length({p_, static_cast<size_t>(end_ - p_)}), 1);
  return {Here(), static_cast<uint32_t>(q - p_)};
}

std::string Cursor::DescribeNext() {
  const SourceRange range = Next();
  if (range.size == 0) return "the end of the text";
  constexpr uint32_t kMaxQuoted = 60;
  return StrCat("'", std::string_view(p_, range.size < kMaxQuoted ? range.size : kMaxQuoted), "'");
}

}  // namespace hlokit::mlir
