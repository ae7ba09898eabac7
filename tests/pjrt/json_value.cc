// SPDX-License-Identifier: Apache-2.0
#include "tests/pjrt/json_value.h"

#include <cctype>
#include <cstdint>
#include <cstdlib>

namespace hlokit::pjrt_test {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  // Reads values with a stack of those that are open.
  std::optional<JsonValue> Read() {
    JsonValue root;
    root.kind = JsonValue::Kind::kArray;
    std::vector<JsonValue> open;
    open.push_back(std::move(root));
    do {
      SkipSpace();
      JsonValue& in = open.back();
      const bool closes = Peek() == ']' || Peek() == '}';
      if (closes && open.size() > 1) {
        ++at_;
        if (!Close(&open)) return std::nullopt;
        continue;
      }
      if (!in.elements.empty() && open.size() > 1 && !Take(',')) return std::nullopt;
      if (in.kind == JsonValue::Kind::kObject) {
        std::string key;
        if (!ReadString(&key) || !Take(':')) return std::nullopt;
        in.keys.push_back(std::move(key));
      }
      SkipSpace();
      JsonValue value;
      if (Peek() == '{' || Peek() == '[') {
        value.kind = Peek() == '{' ? JsonValue::Kind::kObject : JsonValue::Kind::kArray;
        ++at_;
        open.push_back(std::move(value));
        continue;
      }
      if (!ReadScalar(&value)) return std::nullopt;
      open.back().elements.push_back(std::move(value));
    } while (open.size() > 1);
    SkipSpace();
    if (at_ != text_.size() || open[0].elements.size() != 1) return std::nullopt;
    return std::move(open[0].elements[0]);
  }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool Take(char c) {
    SkipSpace();
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  bool Close(std::vector<JsonValue>* open) {
    JsonValue done = std::move(open->back());
    open->pop_back();
    if (done.kind == JsonValue::Kind::kObject && done.keys.size() != done.elements.size()) return false;
    open->back().elements.push_back(std::move(done));
    return true;
  }
  bool ReadScalar(JsonValue* value) {
    if (Peek() == '"') {
      value->kind = JsonValue::Kind::kString;
      return ReadString(&value->text);
    }
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || Peek() == '-' ||
                                  Peek() == '+' || Peek() == '.')) {
      ++at_;
    }
    value->text = std::string(text_.substr(begin, at_ - begin));
    if (value->text.empty()) return false;
    const bool is_bool = value->text == "true" || value->text == "false";
    value->kind = value->text == "null" ? JsonValue::Kind::kNull
                  : is_bool             ? JsonValue::Kind::kBool
                                        : JsonValue::Kind::kNumber;
    return true;
  }
  bool ReadString(std::string* text) {
    if (!Take('"')) return false;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        text->push_back(text_[at_++]);
      } else if (!ReadEscape(text)) {
        return false;
      }
    }
    return Take('"');
  }
  bool ReadEscape(std::string* text) {
    if (at_ + 1 >= text_.size()) return false;
    const char c = text_[at_ + 1];
    at_ += 2;
    constexpr std::string_view kNames = "nrtbf\"\\/", kCharacters = "\n\r\t\b\f\"\\/";
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      text->push_back(kCharacters[i]);
      return true;
    }
    constexpr size_t kDigits = 4;
    if (c != 'u' || at_ + kDigits > text_.size()) return false;
    const auto code = static_cast<uint32_t>(std::strtoul(std::string(text_.substr(at_, kDigits)).c_str(), nullptr, 16));
    at_ += kDigits;
    if (code >= 0xdc80 && code <= 0xdcff) {
      text->push_back(static_cast<char>(code - 0xdc00));  // a byte that is not UTF-8
    } else if (code < 0x80) {
      text->push_back(static_cast<char>(code));
    } else if (code < 0x800) {
      text->push_back(static_cast<char>(0xc0 | (code >> 6)));
      text->push_back(static_cast<char>(0x80 | (code & 0x3f)));
    } else {
      text->push_back(static_cast<char>(0xe0 | (code >> 12)));
      text->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3f)));
      text->push_back(static_cast<char>(0x80 | (code & 0x3f)));
    }
    return true;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return &elements[i];
  }
  return nullptr;
}

std::optional<JsonValue> ParseJson(std::string_view text) { return Reader(text).Read(); }

}  // namespace hlokit::pjrt_test
