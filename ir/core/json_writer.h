// SPDX-License-Identifier: Apache-2.0
// Streaming JSON writer, for texts with millions of lines. The writer adds commas, colons and spaces; the caller
// balances Begin and End and writes a key for each member of an object.
#ifndef HLOKIT_IR_CORE_JSON_WRITER_H_
#define HLOKIT_IR_CORE_JSON_WRITER_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"

namespace hlokit {

// Representation of invalid UTF-8.
enum class JsonInvalidUtf8 : uint8_t {
  kReplace,  // each byte becomes U+FFFD
  kEscape,   // lone surrogates \udc80 to \udcff, one per byte: Python's "surrogateescape", lossless
};

// Prints `s` in quotes.
void PrintJsonString(TextWriter& out, std::string_view s, JsonInvalidUtf8 invalid = JsonInvalidUtf8::kReplace);

enum class JsonLayout : uint8_t {
  kIndented,  // one line for each member and element; a line break ends the text
  kSpaced,    // {"a": 1, "b": [2, 3]}
  kCompact,   // {"a":1,"b":[2,3]}
};

class JsonWriter {
 public:
  explicit JsonWriter(TextWriter* out, JsonLayout layout = JsonLayout::kIndented,
                      JsonInvalidUtf8 invalid = JsonInvalidUtf8::kReplace)
      : out_(*out), layout_(layout), invalid_(invalid) {}

  JsonWriter& BeginObject() { return Begin('{'); }
  JsonWriter& BeginArray() { return Begin('['); }
  // Closes an object or array, with `before`, a line break, before the bracket.
  JsonWriter& EndObject(std::string_view before = "") { return End('}', before); }
  JsonWriter& EndArray(std::string_view before = "") { return End(']', before); }
  // Starts the next member or element with `line`, a line break and indentation, instead of the layout's spaces.
  JsonWriter& Line(std::string_view line) {
    if (!empty_) out_ << ',';
    out_ << line;
    placed_ = true;
    return *this;
  }
  JsonWriter& Key(std::string_view key) {
    Separate();
    PrintJsonString(out_, key, invalid_);
    out_ << (layout_ == JsonLayout::kCompact ? ":" : ": ");
    placed_ = true;
    return *this;
  }
  JsonWriter& Value(std::string_view value) {
    PrintJsonString(Raw(), value, invalid_);
    return *this;
  }
  JsonWriter& Value(const char* value) { return Value(std::string_view(value)); }
  JsonWriter& Value(const std::string& value) { return Value(std::string_view(value)); }
  JsonWriter& Value(bool value) {
    Raw() << (value ? "true" : "false");
    return *this;
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonWriter& Value(T value) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == 8) {
      Raw() << StrCat(value);
    } else {
      Raw() << static_cast<int64_t>(value);
    }
    return *this;
  }
  // Writes the shortest digits that parse to the same number; null if it is not finite.
  JsonWriter& Value(double value);
  // Writes `value` with at most `digits` significant digits.
  JsonWriter& Rounded(double value, int digits);
  JsonWriter& Null() {
    Raw() << "null";
    return *this;
  }
  // Starts a value that the caller writes to the returned stream.
  TextWriter& Raw() {
    Separate();
    empty_ = false;
    return out_;
  }
  // Writes a key and its value.
  template <typename T>
  JsonWriter& Member(std::string_view key, const T& value) {
    Key(key);
    return Value(value);
  }

 private:
  void Separate() {
    if (placed_) {
      placed_ = false;
      return;
    }
    if (layout_ == JsonLayout::kIndented) {
      if (depth_ != 0) BeginLine();
    } else if (!empty_ && depth_ != 0) {
      out_ << (layout_ == JsonLayout::kCompact ? "," : ", ");
    }
  }
  void BeginLine();
  void Indent();
  JsonWriter& Begin(char c) {
    Raw() << c;
    ++depth_;
    empty_ = true;
    return *this;
  }
  JsonWriter& End(char c, std::string_view before) {
    --depth_;
    if (layout_ == JsonLayout::kIndented && !empty_) Indent();
    out_ << before << c;
    empty_ = false;
    if (layout_ == JsonLayout::kIndented && depth_ == 0) out_ << '\n';
    return *this;
  }

  TextWriter& out_;
  JsonLayout layout_;
  JsonInvalidUtf8 invalid_;
  bool empty_ = true;    // the innermost object or array is empty
  bool placed_ = false;  // the separator of the next value, or of the next member, is written
  int depth_ = 0;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_JSON_WRITER_H_
