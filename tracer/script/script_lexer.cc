// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script_lexer.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>

namespace hlokit::lazy::script {
namespace {

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameChar(char c) { return IsLetter(c) || IsDigit(c) || c == '.'; }

size_t SkipSpaces(std::string_view text, size_t at, bool lines) {
  while (at < text.size()) {
    const char c = text[at];
    if (c == '#') {
      at = EndOfLine(text, at);
    } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

// Returns the end of a number: digits, a point, an exponent.
size_t EndOfNumber(std::string_view text, size_t at) {
  const auto digits = [&] {
    while (at < text.size() && IsDigit(text[at])) ++at;
  };
  digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    digits();
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t exponent = at + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    if (exponent < text.size() && IsDigit(text[exponent])) {
      at = exponent;
      digits();
    }
  }
  return at;
}

Scalar ParseNumberToken(std::string_view text) {
  int64_t i = 0;
  const char* const end = text.data() + text.size();
  if (const auto [p, error] = std::from_chars(text.data(), end, i); error == std::errc() && p == end) return i;
  return std::strtod(std::string(text).c_str(), nullptr);
}

constexpr std::string_view kSymbols[] = {
    "**=", "//=", "==", "!=", "<=", ">=", "**", "//", "+=", "-=", "*=", "/=", "%=", "(", ")", "[",
    "]",   ",",   "=",  "<",  ">",  "+",  "-",  "*",  "/",  "%",  "@",  "&",  "|",  "^", "~"};

}  // namespace

size_t EndOfLine(std::string_view text, size_t at) { return std::min(text.find('\n', at), text.size()); }

Token LexAt(std::string_view text, size_t at, bool operand, bool lines) {
  Token token;
  at = SkipSpaces(text, at, lines);
  token.begin = token.end = at;
  if (at >= text.size() || text[at] == '\n') return token;
  const char c = text[at];
  const auto finish = [&](TokenKind kind, size_t end) {
    token.kind = kind;
    token.end = end;
    token.text = text.substr(at, end - at);
    return token;
  };
  if (operand && c == '%' && at + 1 < text.size() && IsNameChar(text[at + 1])) {
    size_t end = at + 1;
    while (end < text.size() && IsNameChar(text[end])) ++end;
    return finish(TokenKind::kVariable, end);
  }
  if (IsLetter(c)) {
    size_t end = at;
    while (end < text.size() && (IsNameChar(text[end]) || text.substr(end, 2) == "::")) {
      end += text[end] == ':' ? 2 : 1;
    }
    return finish(TokenKind::kName, end);
  }
  if (IsDigit(c) || (c == '.' && at + 1 < text.size() && IsDigit(text[at + 1]))) {
    finish(TokenKind::kNumber, EndOfNumber(text, at));
    token.number = ParseNumberToken(token.text);
    return token;
  }
  if (c == '"' || c == '\'') {
    const size_t close = text.find(c, at + 1);
    if (close > EndOfLine(text, at)) return finish(TokenKind::kUnterminated, EndOfLine(text, at));
    finish(TokenKind::kString, close + 1);
    token.text = text.substr(at + 1, close - at - 1);
    return token;
  }
  for (std::string_view symbol : kSymbols) {
    if (text.substr(at, symbol.size()) == symbol) return finish(TokenKind::kSymbol, at + symbol.size());
  }
  return finish(TokenKind::kUnknown, at + 1);
}

}  // namespace hlokit::lazy::script
