// SPDX-License-Identifier: Apache-2.0
// Formats numbers and sizes for the text reports.
#ifndef HLOKIT_SIMULATOR_REPORT_NUMBER_TEXT_H_
#define HLOKIT_SIMULATOR_REPORT_NUMBER_TEXT_H_

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include "ir/core/double_text.h"
#include "ir/core/text_writer.h"

namespace hlokit::tpu {

// Returns `value` with about four significant digits.
std::string FormatSignificant(double value);
// Returns "1.234 s", "12.34 ms", "123.4 us", "5.600 ns": four significant digits.
std::string FormatSeconds(double seconds);
// Returns "1.50 GiB".
std::string FormatBytes(double bytes);
// Prints `text` right-aligned in a column of this width, then two spaces.
void PrintCell(std::string_view text, size_t width, TextWriter* out);

// Returns microseconds rounded to the femtosecond, which hides rounding errors of sums.
inline double ToMicroseconds(double seconds) { return std::round(seconds * 1e15) / 1e9; }
inline double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }
inline std::string Percent(double part, double whole) { return FormatFixed(100 * Share(part, whole), 1); }

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_NUMBER_TEXT_H_
