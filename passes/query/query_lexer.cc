// SPDX-License-Identifier: Apache-2.0
#include "passes/query/query_lexer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "ir/core/str_cat.h"

namespace hlokit::query {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool BeginsWord(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '*'; }
bool IsOfWord(char c) { return BeginsWord(c) || IsDigit(c) || c == '-'; }

struct Unit {
  std::string_view text;
  double factor;
};
// The longest ones first.
constexpr Unit kUnits[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"Ki", 0x1p10}, {"Mi", 0x1p20},
                           {"Gi", 0x1p30},  {"kB", 1e3},     {"KB", 1e3},     {"MB", 1e6},    {"GB", 1e9},
                           {"k", 1e3},      {"K", 1e3},      {"M", 1e6},      {"G", 1e9},     {"B", 1}};

constexpr std::string_view kSymbols[] = {"...", "==", "!=", "<=", ">=", "!~", "&&", "||", "(",
                                         ")",   ",",  ".",  "=",  "<",  ">",  "~",  "!",  "|"};

}  // namespace

Token QueryLexer::Take() {
  Token taken = std::move(token_);
  Advance();
  return taken;
}

bool QueryLexer::TakeIf(std::string_view symbol) {
  if (!token_.Is(symbol)) return false;
  Advance();
  return true;
}

bool QueryLexer::Error(std::string message, std::string hint) {
  if (token_.kind != TokenKind::kError) {
    sink_.Error(DiagnosticKind::kUnexpectedToken, token_.range, std::move(message), std::move(hint));
  }
  return false;
}

std::string QueryLexer::DescribeToken() const {
  return token_.kind == TokenKind::kEnd ? "the end of the query"
                                        : StrCat("`", text_.substr(token_.range.offset, token_.range.size), "`");
}

void QueryLexer::ReadNumber() {
  const char* const begin = text_.data() + at_;
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(begin, end, token_.number);
  if (error != std::errc()) {
    sink_.Error(DiagnosticKind::kUnexpectedToken, {static_cast<uint32_t>(at_), 1}, "a number that no double has");
    token_.kind = TokenKind::kError;
    at_ = text_.size();
    return;
  }
  at_ += static_cast<size_t>(stop - begin);
  for (const Unit& unit : kUnits) {
    if (!text_.substr(at_).starts_with(unit.text)) continue;
    const size_t after = at_ + unit.text.size();
    if (after < text_.size() && IsOfWord(text_[after])) continue;
    token_.number *= unit.factor;
    at_ = after;
    break;
  }
  token_.kind = TokenKind::kNumber;
}

void QueryLexer::ReadString() {
  const char quote = text_[at_];
  const size_t begin = at_++;
  while (at_ < text_.size() && text_[at_] != quote) {
    // A backslash before the quote is dropped; others are those of regular expressions.
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
      if (text_[at_ + 1] != quote) token_.value.push_back('\\');
      ++at_;
    }
    token_.value.push_back(text_[at_++]);
  }
  if (at_ == text_.size()) {
    sink_.Error(DiagnosticKind::kUnexpectedToken, {static_cast<uint32_t>(begin), 1}, "unterminated string");
    token_.kind = TokenKind::kError;
    return;
  }
  ++at_;
  token_.kind = TokenKind::kString;
}

void QueryLexer::Advance() {
  while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  token_ = Token();
  const size_t begin = at_;
  if (at_ < text_.size()) {
    const char c = text_[at_];
    const bool sign = (c == '-' || c == '.') && at_ + 1 < text_.size() && IsDigit(text_[at_ + 1]);
    if (BeginsWord(c) || c == '%') {
      token_.kind = c == '%' ? TokenKind::kVariable : TokenKind::kName;
      if (c == '%') ++at_;
      while (at_ < text_.size() && IsOfWord(text_[at_])) ++at_;
      token_.text = text_.substr(begin + (c == '%' ? 1 : 0), at_ - begin - (c == '%' ? 1 : 0));
    } else if (IsDigit(c) || sign) {
      ReadNumber();
    } else if (c == '"' || c == '\'') {
      ReadString();
    } else {
      const auto* const symbol = std::find_if(std::begin(kSymbols), std::end(kSymbols),
                                              [&](std::string_view s) { return text_.substr(at_).starts_with(s); });
      if (symbol != std::end(kSymbols)) {
        token_.kind = TokenKind::kSymbol;
        token_.text = *symbol;
        at_ += symbol->size();
      } else {
        sink_.Error(DiagnosticKind::kBadCharacter, {static_cast<uint32_t>(at_), 1}, "unexpected character");
        token_.kind = TokenKind::kError;
        at_ = text_.size();
      }
    }
  }
  token_.range = {static_cast<uint32_t>(begin), static_cast<uint32_t>(at_ - begin)};
}

}  // namespace hlokit::query
