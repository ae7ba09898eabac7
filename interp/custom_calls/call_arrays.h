// SPDX-License-Identifier: Apache-2.0
// What functions of custom calls ask of their operands and results before they read or write them. Internal to this
// directory.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_CALL_ARRAYS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_CALL_ARRAYS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "interp/interface/custom_call_registry.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {

// Functions that compute in double copy operands and results, at most this many elements at a time: 4 GiB of complex
// numbers. The copies are not part of the memory that limits of a run count.
inline constexpr int64_t kMaxCopiedElements = int64_t{1} << 28;

inline absl::Status CopiesTooLarge() {
  return absl::ResourceExhaustedError(
      StrCat("the custom call is of more than ", kMaxCopiedElements, " elements, which its function does not copy"));
}

inline int64_t BytesOfArray(Shape shape) { return shape.element_count() * BytesOf(shape.element_type()); }

// Makes results zero that are not operands too, whose values the function still reads.
inline void ZeroResults(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results) {
  for (const CustomCallResult& result : results) {
    const bool is_operand = std::any_of(operands.begin(), operands.end(),
                                        [&](const CustomCallOperand& operand) { return operand.data == result.data; });
    const int64_t bytes = BytesOfArray(result.shape);
    if (!is_operand && bytes > 0) std::memset(result.data, 0, static_cast<size_t>(bytes));
  }
}

// Returns an error if there are tokens or tuples among them, or more elements than are copied.
inline absl::Status CheckArrays(absl::Span<const CustomCallOperand> operands,
                                absl::Span<const CustomCallResult> results) {
  int64_t elements = 0;
  const auto add = [&](Shape shape) {
    if (!shape.IsArray()) return false;
    elements += std::min(shape.element_count(), kMaxCopiedElements + 1);
    return true;
  };
  for (const CustomCallOperand& operand : operands) {
    if (!add(operand.shape)) return absl::InvalidArgumentError("the custom call has an operand that is no array");
  }
  for (const CustomCallResult& result : results) {
    if (!add(result.shape)) return absl::InvalidArgumentError("the custom call has a result that is no array");
  }
  return elements > kMaxCopiedElements ? CopiesTooLarge() : absl::OkStatus();
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_CALL_ARRAYS_H_
