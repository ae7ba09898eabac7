// SPDX-License-Identifier: Apache-2.0
// What an array holds, in a line: for people who look at values too large to read.
#ifndef HLOKIT_INTERP_VALUES_VALUE_SUMMARY_H_
#define HLOKIT_INTERP_VALUES_VALUE_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "ir/types/shape.h"

namespace hlokit::interp {

// Of complex numbers, both parts count.
struct ValueSummary {
  int64_t elements = 0;
  int64_t nans = 0;
  int64_t infinities = 0;
  int64_t zeros = 0;
  // Of what is finite; meaningless if there is nothing.
  double min = 0;
  double max = 0;
  double mean = 0;
  int64_t finite() const { return elements - nans - infinities; }
};

// `data` is dense and row-major, as in a Literal.
ValueSummary Summarize(Shape array, const std::byte* data);

// "min -1 max 2.5 mean 0.25, 3 NaN, 1 infinite, 7 zero of 100".
std::string ToString(const ValueSummary& summary);

// The whole value as in a literal if it has at most `max_elements`, else its summary. Other leaves than arrays have an
// empty text.
std::string ValueText(Shape leaf, const std::byte* data, int64_t max_elements);

// "{1, 2}": the index of a row-major element number.
std::string IndexText(Shape array, int64_t element);
// One element as in a scalar.
std::string ElementText(Shape array, const std::byte* data, int64_t element);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_VALUES_VALUE_SUMMARY_H_
