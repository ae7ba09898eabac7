// SPDX-License-Identifier: Apache-2.0
// A line of a record of calls (pjrt/trace/recorder.h) as a tree.
#ifndef HLOKIT_TESTS_PJRT_JSON_VALUE_H_
#define HLOKIT_TESTS_PJRT_JSON_VALUE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlokit::pjrt_test {

struct JsonValue {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string text;                 // of a string, decoded; of a number, its digits; true or false
  std::vector<std::string> keys;    // of an object
  std::vector<JsonValue> elements;  // of an array, or of an object by key

  // Returns the member, or null.
  const JsonValue* Find(std::string_view key) const;
  bool IsNull() const { return kind == Kind::kNull; }
};

// Returns nullopt if the text is not one JSON value.
std::optional<JsonValue> ParseJson(std::string_view text);

}  // namespace hlokit::pjrt_test

#endif  // HLOKIT_TESTS_PJRT_JSON_VALUE_H_
