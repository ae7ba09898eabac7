// SPDX-License-Identifier: Apache-2.0
// Numbers and sizes as the text reports show them.
#ifndef HLOKIT_INTERP_TPU_REPORT_NUMBER_TEXT_H_
#define HLOKIT_INTERP_TPU_REPORT_NUMBER_TEXT_H_

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include "ir/core/text_writer.h"

namespace hlokit::tpu {

std::string Fixed(double value, int digits);
// Four digits or so, whatever the size.
std::string FormatSignificant(double value);
// "1.234 s", "12.34 ms", "123.4 us", "5.600 ns": four significant digits.
std::string TimeText(double seconds);
// "1.50 GiB"
std::string FormatBytes(double bytes);
// `text` at the right end of a column of this width, and two blanks.
void PrintCell(std::string_view text, size_t width, TextWriter* out);

// Microseconds, to the femtosecond: what is below that is the rounding of sums.
inline double ToMicroseconds(double seconds) { return std::round(seconds * 1e15) / 1e9; }
inline double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }
inline std::string Percent(double part, double whole) { return Fixed(100 * Share(part, whole), 1); }

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_REPORT_NUMBER_TEXT_H_
