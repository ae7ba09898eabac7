// SPDX-License-Identifier: Apache-2.0
// Compares values within a tolerance and finds the largest difference.
//
// NaN equals NaN regardless of its bits; infinities equal those of the same sign. Complex numbers are compared by
// component, integers and pred by their difference.
#ifndef HLOKIT_CHECK_COMPARISON_VALUE_COMPARISON_H_
#define HLOKIT_CHECK_COMPARISON_VALUE_COMPARISON_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// An element matches if it is within any of the given bounds. Without bounds it must have the same bits (or both are
// NaN).
struct ErrorSpec {
  std::optional<double> ulp;       // |a - b| in units of the last place: the number of values of the type from a to b
  std::optional<double> relative;  // |a - b| / |expected|
  std::optional<double> absolute;  // |a - b|

  bool is_exact() const { return !ulp && !relative && !absolute; }
};

// Reads "exact", or "ulp:N", "rel:X", "abs:X" and several of these separated by commas.
absl::StatusOr<ErrorSpec> ParseErrorSpec(std::string_view text);

struct ValueDifference {
  int64_t different = 0;  // number of elements that do not match
  int64_t elements = 0;   // compared elements, in all leaves
  size_t leaf = 0;        // position of the largest difference,
  int64_t element = 0;    // row-major
  // Of that element, if it does not match: both as text, and its distance by each measure, infinite if there is none.
  std::string actual, expected;
  double ulp = 0, relative = 0, absolute = 0;
  // Of all elements, largest distances that are finite.
  double max_ulp = 0;
  double max_absolute = 0;
  std::string description;  // "result 1, element {0, 3} of f32[2,4]: 1.5, expected 1.25 (off by 0.25, 0.2 of it, ...)"
  bool equal() const { return different == 0; }
};

// Compares the values. Returns an error that names the leaf if shapes differ, ignoring layouts. The largest difference
// is measured by the first given bound (ulp, rel, abs; without any, ulp); the first among equals.
absl::StatusOr<ValueDifference> CompareValues(absl::Span<const Literal> actual, absl::Span<const Literal> expected,
                                              const ErrorSpec& tolerance);
// With bounds for each element type. Results of different types are compared by their measures in ulps.
absl::StatusOr<ValueDifference> CompareValuesByType(absl::Span<const Literal> actual,
                                                    absl::Span<const Literal> expected,
                                                    const std::function<ErrorSpec(ElementType)>& tolerance_of);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_COMPARISON_VALUE_COMPARISON_H_
