// SPDX-License-Identifier: Apache-2.0
// The kinds of the words of a text, for colors: names by what they name, which no pattern of an editor can tell.
#include <algorithm>
#include <array>
#include <string_view>

#include "ir/ops/opcode.h"
#include "ir/types/element_type.h"
#include "parser/text/scan.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

// In the order of the legend.
enum TokenType : uint8_t {
  kTokenNamespace,
  kTokenType,
  kTokenParameter,
  kTokenVariable,
  kTokenProperty,
  kTokenEnumMember,
  kTokenFunction,
  kTokenMethod,
  kTokenKeyword,
  kTokenComment,
  kTokenString,
  kTokenNumber,
};
constexpr std::string_view kTokenTypes[] = {"namespace", "type",   "parameter", "variable", "property", "enumMember",
                                            "function",  "method", "keyword",   "comment",  "string",   "number"};
enum TokenModifier : uint8_t { kTokenDeclaration = 1, kTokenReadonly = 2 };
constexpr std::string_view kTokenModifiers[] = {"declaration", "readonly"};

class TokenWriter {
 public:
  TokenWriter(Document& document, TextRange range, JsonWriter* json)
      : text_(document.text()), index_(document.index()), range_(range), json_(*json) {}

  void Run() {
    const std::string_view all = text_.text();
    const char* const base = all.data();
    const char* const end = base + std::min<size_t>(range_.end, all.size());
    p_ = base + Start();
    next_ = index_.LowerBound(static_cast<uint32_t>(p_ - base));
    while (p_ < end) {
      const char c = *p_;
      const char* const start = p_;
      if (char_class::Is(c, char_class::kNameStart)) {
        p_ = scan::NameEnd(p_, base + all.size());
        Word(start);
      } else if (char_class::IsDigit(c) || (c == '-' && p_ + 1 < end && char_class::IsDigit(p_[1]))) {
        // A name may be a number in MLIR.
        ++p_;
        while (p_ < end && (char_class::IsName(*p_) || *p_ == '+')) ++p_;
        if (!Named(start)) Write(start, p_, kTokenNumber, 0);
      } else if (c == '"') {
        String(base + all.size());
      } else if (c == '/' && p_ + 1 < end && p_[1] == '/') {
        p_ = scan::FindAny<'\n', '\r'>(p_, base + all.size());
        Write(start, p_, kTokenComment, 0);
      } else if (c == '/' && p_ + 1 < end && p_[1] == '*') {
        Comment(base + all.size());
      } else {
        ++p_;
      }
    }
  }

 private:
  // Where a token certainly begins: the symbol around the start of the range, or its line.
  uint32_t Start() const {
    const uint32_t line = text_.LineStart(text_.LineOf(range_.begin));
    if (index_.symbols().empty()) return line;
    const Symbol& near = index_.symbol(index_.FirstEndingAfter(range_.begin));
    return near.kind == SymbolKind::kInstruction && near.begin <= line && line <= near.end ? near.begin : line;
  }
  // A string, with a token on each of its lines. It ends at the end of its line if it is not closed before the next
  // name.
  void String(const char* end) {
    const char* const base = text_.text().data();
    const char* start = p_++;
    const size_t next = index_.LowerBound(static_cast<uint32_t>(p_ - base));
    const char* const limit = next < index_.occurrences().size() ? base + index_.occurrences()[next].offset : end;
    const char* close = p_;
    while ((close = scan::FindAny<'"', '\\'>(close, limit)) < limit && *close == '\\')
      close = std::min(close + 2, limit);
    const char* const stop = close < limit ? close + 1 : scan::FindAny<'\n'>(p_, end);
    while ((p_ = scan::FindAny<'\n'>(p_, stop)) < stop) {
      Write(start, p_, kTokenString, 0);
      start = ++p_;
    }
    p_ = stop;
    Write(start, stop, kTokenString, 0);
  }
  // A token is on one line.
  void Comment(const char* end) {
    const char* start = p_;
    for (p_ += 2; p_ < end;) {
      if (*p_ == '*' && p_ + 1 < end && p_[1] == '/') {
        p_ += 2;
        break;
      }
      if (*p_ == '\n') {
        Write(start, p_, kTokenComment, 0);
        start = p_ + 1;
      }
      ++p_;
    }
    Write(start, p_, kTokenComment, 0);
  }

  // Writes a token for the name that is defined or used here; returns false if none is.
  bool Named(const char* start) {
    const auto at = static_cast<uint32_t>(start - text_.text().data());
    while (next_ < index_.occurrences().size() && index_.occurrences()[next_].offset < at) ++next_;
    if (next_ == index_.occurrences().size() || index_.occurrences()[next_].offset != at) return false;
    const Occurrence& o = index_.occurrences()[next_];
    TokenType type = kTokenVariable;
    if (o.symbol != kNoSymbol) {
      const Symbol& symbol = index_.symbol(o.symbol);
      switch (symbol.kind) {
        case SymbolKind::kModule:
          type = kTokenNamespace;
          break;
        case SymbolKind::kComputation:
          type = kTokenFunction;
          break;
        case SymbolKind::kInstruction:
          type = symbol.parameter ? kTokenParameter : kTokenVariable;
          break;
      }
    }
    p_ = start + o.size;
    Write(start, p_, type, o.definition != 0 ? kTokenDeclaration | kTokenReadonly : kTokenReadonly);
    return true;
  }

  void Word(const char* start) {
    if (Named(start)) return;
    const std::string_view word(start, static_cast<size_t>(p_ - start));
    const std::string_view all = text_.text();
    const char* const end = all.data() + all.size();
    const char next = p_ < end ? *p_ : '\0';
    TokenType type = kTokenEnumMember;
    if (word == "HloModule" || word == "ENTRY" || word == "ROOT") {
      type = kTokenKeyword;
    } else if (next == '[' || (next == '(' && word == "b")) {
      type = kTokenType;
    } else if (next == '(') {
      type = kTokenMethod;
    } else if (next == '=') {
      type = kTokenProperty;
    } else if (word == "true" || word == "false") {
      type = kTokenKeyword;
    } else if (word == "inf" || word == "nan") {
      type = kTokenNumber;
    } else if (word.find('.') != std::string_view::npos) {
      type = kTokenMethod;  // of a dialect
    }
    Write(start, p_, type, 0);
  }

  void Write(const char* from, const char* to, TokenType type, int modifiers) {
    const auto begin = static_cast<uint32_t>(from - text_.text().data());
    const auto end = static_cast<uint32_t>(to - text_.text().data());
    if (end <= range_.begin || begin >= range_.end || begin == end) return;
    const Position p = text_.PositionAt(begin);
    const int64_t length = text_.PositionAt(end).character - p.character;
    if (length <= 0) return;
    json_.Value(p.line - last_.line);
    json_.Value(p.line == last_.line ? p.character - last_.character : p.character);
    json_.Value(length).Value(int{type}).Value(modifiers);
    last_ = p;
  }

  const TextDocument& text_;
  const SymbolIndex& index_;
  const TextRange range_;
  JsonWriter& json_;
  const char* p_ = nullptr;
  size_t next_ = 0;  // occurrence
  Position last_;
};

}  // namespace

void WriteSemanticTokensLegend(JsonWriter* json) {
  json->BeginObject().Key("tokenTypes").BeginArray();
  for (const std::string_view type : kTokenTypes) json->Value(type);
  json->EndArray().Key("tokenModifiers").BeginArray();
  for (const std::string_view modifier : kTokenModifiers) json->Value(modifier);
  json->EndArray().EndObject();
}

absl::Status SemanticTokens(const Request& request, JsonWriter* result) {
  const TextRange range = RangeAt(request.document.text(), Find(request.params, {"range"}));
  result->BeginObject().Key("data").BeginArray();
  if (request.document.is_program()) TokenWriter(request.document, range, result).Run();
  result->EndArray().EndObject();
  return absl::OkStatus();
}

}  // namespace hlokit::lsp
