// SPDX-License-Identifier: Apache-2.0
#include "pjrt/values/named_values.h"

#include <utility>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "pjrt/values/arguments.h"

namespace hlokit::pjrt {

PJRT_NamedValue& NamedValues::New(std::string name, PJRT_NamedValue_Type type, size_t size) {
  const std::string& kept = texts_.emplace_back(std::move(name));
  PJRT_NamedValue value = {};
  value.struct_size = sizeof(PJRT_NamedValue);
  value.name = kept.c_str();
  value.name_size = kept.size();
  value.type = type;
  value.value_size = size;
  return values_.emplace_back(value);
}

void NamedValues::Add(std::string name, std::string value) {
  const std::string& kept = texts_.emplace_back(std::move(value));
  New(std::move(name), PJRT_NamedValue_kString, kept.size()).string_value = kept.c_str();
}

void NamedValues::Add(std::string name, int64_t value) {
  New(std::move(name), PJRT_NamedValue_kInt64, 1).int64_value = value;
}

void NamedValues::Add(std::string name, std::vector<int64_t> value) {
  const std::vector<int64_t>& kept = lists_.emplace_back(std::move(value));
  New(std::move(name), PJRT_NamedValue_kInt64List, kept.size()).int64_array_value = kept.data();
}

void NamedValues::Add(std::string name, float value) {
  New(std::move(name), PJRT_NamedValue_kFloat, 1).float_value = value;
}

void NamedValues::Add(std::string name, bool value) {
  New(std::move(name), PJRT_NamedValue_kBool, 1).bool_value = value;
}

absl::StatusOr<std::string> TextOfValue(const PJRT_NamedValue& value) {
  switch (value.type) {
    case PJRT_NamedValue_kString:
      return std::string(TextOf(value.string_value, value.value_size));
    case PJRT_NamedValue_kInt64:
      return StrCat(value.int64_value);
    case PJRT_NamedValue_kFloat:
      return FormatDouble(static_cast<double>(value.float_value), 9);
    case PJRT_NamedValue_kBool:
      return std::string(value.bool_value ? "true" : "false");
    case PJRT_NamedValue_kInt64List:
      break;
  }
  return absl::InvalidArgumentError(
      StrCat("option ", TextOf(value.name, value.name_size), ": expected text or a number"));
}

}  // namespace hlokit::pjrt
