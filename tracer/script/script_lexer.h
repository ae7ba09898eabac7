// SPDX-License-Identifier: Apache-2.0
// Words of a script.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_LEXER_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_LEXER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "tracer/graph/scalar.h"

namespace hlokit::lazy::script {

enum class TokenKind : uint8_t {
  kEnd,       // of the line, or of the file
  kVariable,  // %name
  kName,      // word, nn::Linear, aten::add.Tensor
  kNumber,
  kString,  // in quotes
  kSymbol,
  kUnterminated,  // a string without its closing quote
  kUnknown,       // another character
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t begin = 0;
  std::string_view text;  // of a string: without the quotes
  size_t end = 0;
  Scalar number;

  SourceRange range() const { return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end - begin)}; }
  bool Is(std::string_view symbol) const { return kind == TokenKind::kSymbol && text == symbol; }
  bool IsWord(std::string_view word) const { return kind == TokenKind::kName && text == word; }
};

// Returns the token at `at`, after spaces and a comment. `operand`: a value is expected, so that % begins a variable.
// `lines`: ends of lines are spaces.
Token LexAt(std::string_view text, size_t at, bool operand, bool lines);

// Returns the place of the end of the line.
size_t EndOfLine(std::string_view text, size_t at);

}  // namespace hlokit::lazy::script

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_LEXER_H_
