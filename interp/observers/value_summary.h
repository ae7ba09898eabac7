// SPDX-License-Identifier: Apache-2.0
// One-line summaries of arrays too large to read.
#ifndef HLOKIT_INTERP_OBSERVERS_VALUE_SUMMARY_H_
#define HLOKIT_INTERP_OBSERVERS_VALUE_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "ir/types/shape.h"

namespace hlokit::interp {

// For complex numbers both components count.
struct ValueSummary {
  int64_t elements = 0;
  int64_t nans = 0;
  int64_t infinities = 0;
  int64_t zeros = 0;
  // Over finite values; meaningless if there are none.
  double min = 0;
  double max = 0;
  double mean = 0;
  int64_t finite() const { return elements - nans - infinities; }
};

// Summarizes an array. `data`: dense and row-major, as in a Literal.
ValueSummary Summarize(Shape array, const std::byte* data);

// Returns "min -1 max 2.5 mean 0.25, 3 NaN, 1 infinite, 7 zero of 100".
std::string ToString(const ValueSummary& summary);

// Returns the value in literal syntax if it has at most `max_elements`, else its summary; "" for leaves other than
// arrays.
std::string ValueToString(Shape leaf, const std::byte* data, int64_t max_elements);

// Returns the index of a row-major element number: "{1, 2}".
std::string IndexToString(Shape array, int64_t element);
// Returns one element in scalar syntax.
std::string ElementToString(Shape array, const std::byte* data, int64_t element);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_OBSERVERS_VALUE_SUMMARY_H_
