// SPDX-License-Identifier: Apache-2.0
// JSON as it is written, with nothing kept in memory, so that reports may have millions of lines. The writer knows
// where commas go; the caller balances Begin and End and gives each member of an object a key.
#ifndef HLOKIT_TOOLS_CLI_JSON_WRITER_H_
#define HLOKIT_TOOLS_CLI_JSON_WRITER_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/core/text_writer.h"

namespace hlokit::cli {

// `s` as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD.
std::string JsonQuoted(std::string_view s);

class JsonWriter {
 public:
  explicit JsonWriter(TextWriter* out) : out_(*out) {}

  JsonWriter& BeginObject() { return Begin('{'); }
  JsonWriter& EndObject() { return End('}'); }
  JsonWriter& BeginArray() { return Begin('['); }
  JsonWriter& EndArray() { return End(']'); }
  JsonWriter& Key(std::string_view key) {
    Separate();
    out_ << JsonQuoted(key) << ": ";
    after_key_ = true;
    return *this;
  }
  JsonWriter& Value(std::string_view value) { return Raw(JsonQuoted(value)); }
  JsonWriter& Value(const char* value) { return Value(std::string_view(value)); }
  JsonWriter& Value(bool value) { return Raw(value ? "true" : "false"); }
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonWriter& Value(T value) { return Raw(std::to_string(value)); }
  // A key and its value.
  template <typename T>
  JsonWriter& Member(std::string_view key, const T& value) {
    Key(key);
    return Value(value);
  }

 private:
  void Separate() {
    if (after_key_) {
      after_key_ = false;
      return;
    }
    if (depth_ == 0) return;
    out_ << (empty_ ? "\n" : ",\n");
    empty_ = false;
    Indent();
  }
  void Indent() {
    for (int i = 0; i < depth_; ++i) out_ << "  ";
  }
  JsonWriter& Begin(char c) {
    Separate();
    out_ << c;
    ++depth_;
    empty_ = true;
    return *this;
  }
  JsonWriter& End(char c) {
    --depth_;
    if (!empty_) {
      out_ << '\n';
      Indent();
    }
    out_ << c;
    empty_ = false;
    if (depth_ == 0) out_ << '\n';
    return *this;
  }
  JsonWriter& Raw(std::string_view text) {
    Separate();
    out_ << text;
    return *this;
  }

  TextWriter& out_;
  int depth_ = 0;
  bool empty_ = true;  // nothing in the innermost object or array yet
  bool after_key_ = false;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_JSON_WRITER_H_
