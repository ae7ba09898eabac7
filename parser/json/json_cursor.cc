// SPDX-License-Identifier: Apache-2.0
#include "parser/json/json_cursor.h"

#include <charconv>
#include <cstdlib>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

void AppendUtf8(uint32_t c, std::string* out) {
  const auto byte = [out](uint32_t b) { out->push_back(static_cast<char>(b)); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xc0 | c >> 6);
    byte(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    byte(0xe0 | c >> 12);
    byte(0x80 | (c >> 6 & 0x3f));
    byte(0x80 | (c & 0x3f));
  } else {
    byte(0xf0 | c >> 18);
    byte(0x80 | (c >> 12 & 0x3f));
    byte(0x80 | (c >> 6 & 0x3f));
    byte(0x80 | (c & 0x3f));
  }
}

// Reads four hexadecimal digits.
bool ReadHex4(const char*& p, const char* end, uint32_t* value) {
  if (end - p < 4) return false;
  const auto [stop, error] = std::from_chars(p, p + 4, *value, 16);
  if (error != std::errc() || stop != p + 4) return false;
  p += 4;
  return true;
}

bool IsNumberPart(char c) {
  return char_class::Is(c, char_class::kDigit) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

}  // namespace

bool JsonCursor::Expected(std::string_view what) {
  return in_.ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected ", what, ", found ", in_.DescribeNext()));
}

// ---- strings ----

bool JsonCursor::Decode(const char*& p, const char* end, std::string* out) {
  if (*p != '\\') {
    out->push_back(*p++);
    return true;
  }
  if (++p >= end) return false;
  switch (const char c = *p++) {
    case '"':
    case '\\':
    case '/':
      out->push_back(c);
      return true;
    case 'b':
      out->push_back('\b');
      return true;
    case 'f':
      out->push_back('\f');
      return true;
    case 'n':
      out->push_back('\n');
      return true;
    case 'r':
      out->push_back('\r');
      return true;
    case 't':
      out->push_back('\t');
      return true;
    case 'u': {
      uint32_t unit;
      if (!ReadHex4(p, end, &unit)) return false;
      if (unit >= 0xdc80 && unit <= 0xdcff) {
        // A byte of invalid UTF-8: JsonInvalidUtf8::kEscape in ir/core/json_writer.h.
        out->push_back(static_cast<char>(unit - 0xdc00));
        return true;
      }
      if (unit >= 0xd800 && unit < 0xe000) {
        uint32_t low;
        if (unit >= 0xdc00 || end - p < 2 || p[0] != '\\' || p[1] != 'u') return false;
        p += 2;
        if (!ReadHex4(p, end, &low) || low < 0xdc00 || low >= 0xe000) return false;
        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
      }
      AppendUtf8(unit, out);
      return true;
    }
    default:
      return false;
  }
}

bool JsonCursor::ReadString(JsonString* s, std::string* scratch) {
  const uint32_t start = in_.Here();
  const char* const first = in_.cursor() + 1;
  const char* p = first;
  s->escaped = false;
  while (p < in_.end() && *p != '"' && static_cast<unsigned char>(*p) >= 0x20) {
    if (*p == '\\') {
      s->escaped = true;
      ++p;
      if (p >= in_.end()) break;
    }
    ++p;
  }
  if (p >= in_.end() || *p != '"') {
    if (p < in_.end() && *p != '\n') {
      const auto at = start + 1 + static_cast<uint32_t>(p - first);
      return Break(DiagnosticKind::kBadCharacter, {at, 1}, "unescaped control character in a string",
                   "write it as an escape: \\t, \\u0001");
    }
    return Break(DiagnosticKind::kUnterminatedString, {start, 1}, "unterminated string");
  }
  s->value = {first, static_cast<size_t>(p - first)};
  s->range = {start, static_cast<uint32_t>(p - first) + 2};
  in_.set_cursor(p + 1);
  if (!s->escaped) return true;
  scratch->clear();
  for (const char* q = first; q < p;) {
    const char* const escape = q;
    if (Decode(q, p, scratch)) continue;
    const auto at = start + 1 + static_cast<uint32_t>(escape - first);
    return Break(DiagnosticKind::kBadCharacter, {at, static_cast<uint32_t>(q - escape)}, "malformed escape in a string",
                 R"(JSON has \" \\ \/ \b \f \n \r \t \u0000)");
  }
  s->value = *scratch;
  return true;
}

uint32_t JsonCursor::OffsetIn(const JsonString& s, size_t index) {
  const uint32_t first = s.range.offset + 1;
  if (!s.escaped) return first + static_cast<uint32_t>(index);
  const std::string_view raw = in_.Between(first, first + s.range.size - 2);
  const char* p = raw.data();
  const char* const end = p + raw.size();
  size_t decoded = 0;
  std::string one;
  while (p < end && decoded < index) {
    one.clear();
    if (!Decode(p, end, &one)) break;
    decoded += one.size();
  }
  return first + static_cast<uint32_t>(p - raw.data());
}

bool JsonCursor::String(JsonString* s, std::string_view what) {
  if (Peek() != '"') return Expected(what);
  return ReadString(s, &value_);
}

// ---- numbers and words ----

bool JsonCursor::Int(int64_t* value, std::string_view what) {
  if (!in_.AtInt()) return Expected(what);
  if (!in_.Int(value)) return false;
  if (!IsNumberPart(*in_.cursor())) return true;
  return in_.ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected ", what, ", which is a whole number"));
}

bool JsonCursor::Bool(bool* value, std::string_view what) {
  *value = in_.TryConsumeWord("true");
  return *value || in_.TryConsumeWord("false") || Expected(what);
}

template <typename T>
bool JsonCursor::AnyNumber(T* value, std::string_view what) {
  if (!in_.AtInt()) return Expected(what);  // a JSON number begins like an integer
  const char* const start = in_.cursor();
  const char* end = start;
  while (IsNumberPart(*end)) ++end;
  const auto [stop, error] = std::from_chars(start, end, *value);
  const SourceRange range{in_.Here(), static_cast<uint32_t>(end - start)};
  const std::string_view text(start, range.size);
  if (stop != end)
    return in_.Error(DiagnosticKind::kUnexpectedToken, range, StrCat("expected a number, found `", text, "`"));
  if (error == std::errc::result_out_of_range) {
    // from_chars reports underflow, to zero or nearly so, as the same error.
    const double wide = std::strtod(std::string(text).c_str(), nullptr);
    if (!(wide > -1 && wide < 1)) {
      return in_.Error(DiagnosticKind::kNumberOutOfRange, range, StrCat("number ", text, " is too large"));
    }
    *value = static_cast<T>(wide);
  }
  in_.set_cursor(end);
  return true;
}
template bool JsonCursor::AnyNumber(float*, std::string_view);
template bool JsonCursor::AnyNumber(double*, std::string_view);

// ---- lists ----

bool JsonCursor::NextElement(char close, bool* first) {
  if (broken_) return false;
  if (*first) {
    *first = false;
    return !in_.TryConsume(close);
  }
  if (in_.TryConsume(close)) return false;
  if (!in_.TryConsume(',')) {
    Break(DiagnosticKind::kUnexpectedToken, in_.Next(),
          StrCat("expected `,` or `", close, "`, found ", in_.DescribeNext()));
    return false;
  }
  return true;
}

bool JsonCursor::ReadKey(JsonString* key) {
  if (Peek() != '"') {
    broken_ = true;
    return Expected("a key in quotes");
  }
  if (!ReadString(key, &key_)) return false;
  if (in_.TryConsume(':')) return true;
  broken_ = true;
  return Expected("`:` after a key");
}

// ---- skipping ----

// Skips a scalar, or the opening of a list, which is pushed onto `open`.
bool JsonCursor::SkipOne(std::string* open) {
  JsonString s;
  bool flag;
  bool ok = true;
  const char c = Peek();
  if (c == '{' || c == '[') {
    if (static_cast<int64_t>(open->size()) >= max_nesting_) {
      return Break(DiagnosticKind::kTooDeep, Next(),
                   StrCat("values are nested deeper than the limit of ", max_nesting_, " (--max-nesting)"));
    }
    in_.TryConsume(c);
    open->push_back(c);
  } else if (c == '"') {
    return ReadString(&s, &value_);
  } else if (in_.AtInt()) {
    const char* p = in_.cursor();
    while (IsNumberPart(*p)) ++p;
    in_.set_cursor(p);
  } else {
    ok = in_.TryConsumeWord("null") || Bool(&flag, "a value");
  }
  broken_ = !ok;
  return ok;
}

bool JsonCursor::Skip() {
  std::string open;  // open lists, innermost last
  do {
    const size_t depth = open.size();
    if (!SkipOne(&open)) return false;
    // Advance to the next value of the innermost list, closing lists that end here.
    bool first = open.size() > depth;
    while (!open.empty()) {
      const bool object = open.back() == '{';
      if (!NextElement(object ? '}' : ']', &first)) {
        if (broken_) return false;
        open.pop_back();
        first = false;
        continue;
      }
      JsonString key;
      if (object && !ReadKey(&key)) return false;
      break;
    }
  } while (!open.empty());
  return true;
}

}  // namespace hlokit
