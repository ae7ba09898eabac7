// SPDX-License-Identifier: Apache-2.0
// How far two values may be apart, how far they are, and where they differ most.
//
// NaN equals NaN whatever its bits, and infinities equal those of their sign only. Complex numbers are compared part by
// part, and integers and pred by their difference.
#ifndef HLOKIT_INTERP_VALUES_VALUE_COMPARISON_H_
#define HLOKIT_INTERP_VALUES_VALUE_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// An element is near enough if any of the bounds that are given says so. Without any: the same bits (or two NaNs).
struct ErrorSpec {
  std::optional<double> ulp;       // |a - b| in units of the last place: the number of values of the type from a to b
  std::optional<double> relative;  // |a - b| / |expected|
  std::optional<double> absolute;  // |a - b|

  bool is_exact() const { return !ulp && !relative && !absolute; }
};

// Reads "exact", or "ulp:N", "rel:X", "abs:X" and several of these separated by commas.
absl::StatusOr<ErrorSpec> ParseErrorSpec(std::string_view text);

struct ValueDifference {
  int64_t different = 0;    // elements that are not near enough
  int64_t elements = 0;     // compared, in all leaves
  size_t leaf = 0;          // of the worst of them,
  int64_t element = 0;      // row-major
  std::string description;  // "result 1, element {0, 3} of f32[2,4]: 1.5, expected 1.25 (off by 0.25, 0.2 of it, ...)"
  bool equal() const { return different == 0; }
};

// The shapes of `actual` and `expected` must agree leaf by leaf, layouts aside; an error says which does not. The worst
// element is the one that is furthest off, measured by the first bound that is given (ulp, rel, abs; without any, ulp);
// among equals, the first one.
absl::StatusOr<ValueDifference> CompareValues(absl::Span<const Literal> actual, absl::Span<const Literal> expected,
                                              const ErrorSpec& tolerance);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_VALUES_VALUE_COMPARISON_H_
