// SPDX-License-Identifier: Apache-2.0
// Writes JSON without keeping it in memory, for reports with millions of lines. The writer places commas; the caller
// balances Begin and End and writes a key for each member of an object.
#ifndef HLOKIT_TOOLS_CLI_JSON_WRITER_H_
#define HLOKIT_TOOLS_CLI_JSON_WRITER_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/core/text_writer.h"

namespace hlokit::cli {

// Returns `s` as a quoted JSON string. Invalid UTF-8 becomes U+FFFD.
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
  // Writes a key and its value.
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
  bool empty_ = true;  // the innermost object or array is empty
  bool after_key_ = false;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_JSON_WRITER_H_
