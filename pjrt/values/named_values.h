// SPDX-License-Identifier: Apache-2.0
// Lists of named values, as attributes of objects and as options of callers.
#ifndef HLOKIT_PJRT_VALUES_NAMED_VALUES_H_
#define HLOKIT_PJRT_VALUES_NAMED_VALUES_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pjrt/c_api/types.h"

namespace hlokit::pjrt {

// A list that owns its contents, whose addresses do not change when values are added.
class NamedValues {
 public:
  NamedValues() = default;
  NamedValues(const NamedValues&) = delete;
  NamedValues& operator=(const NamedValues&) = delete;

  void Add(std::string name, std::string value);
  void Add(std::string name, int64_t value);
  void Add(std::string name, std::vector<int64_t> value);
  void Add(std::string name, float value);
  void Add(std::string name, bool value);

  // The list as it is when no value is added any more.
  const PJRT_NamedValue* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }

 private:
  PJRT_NamedValue& New(std::string name, PJRT_NamedValue_Type type, size_t size);

  std::vector<PJRT_NamedValue> values_;
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> lists_;
};

// A caller's value as text: numbers in decimal, true and false. Lists are an error.
absl::StatusOr<std::string> TextOfValue(const PJRT_NamedValue& value);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_VALUES_NAMED_VALUES_H_
