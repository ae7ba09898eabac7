// SPDX-License-Identifier: Apache-2.0
// Tokens of queries over a module: of patterns (pattern.h) and of conditions (condition.h).
#ifndef HLOKIT_PASSES_QUERY_QUERY_LEXER_H_
#define HLOKIT_PASSES_QUERY_QUERY_LEXER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/core/diagnostic.h"

namespace hlokit::query {

enum class TokenKind : uint8_t {
  kEnd,
  kName,      // a word: letters, digits, `_`, `-`, `*`; it begins with a letter, `_` or `*`
  kVariable,  // %word; `text` is the word
  kNumber,    // 12, -3, 1e6, 4KiB, 2M
  kString,    // "…" or '…'; `value` is the text without quotes and escapes
  kSymbol,    // ( ) , . ... = == != < <= > >= ~ !~ && || ! |
  kError,     // anything else, which has been reported
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  SourceRange range;
  double number = 0;
  std::string value;

  bool Is(std::string_view symbol) const { return kind == TokenKind::kSymbol && text == symbol; }
};

class QueryLexer {
 public:
  QueryLexer(std::string_view text, DiagnosticSink* sink) : text_(text), sink_(*sink) { Advance(); }

  const Token& token() const { return token_; }
  // Returns the current token and reads the next one.
  Token Take();
  // Takes the symbol if it is next.
  bool TakeIf(std::string_view symbol);
  // Reports an error at the current token. Returns false.
  bool Error(std::string message, std::string hint = "");
  // Returns "`)`", or "the end of the query".
  std::string DescribeToken() const;

 private:
  void Advance();
  void ReadNumber();
  void ReadString();

  const std::string_view text_;
  DiagnosticSink& sink_;
  size_t at_ = 0;
  Token token_;
};

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_QUERY_LEXER_H_
