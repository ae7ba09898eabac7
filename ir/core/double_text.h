// SPDX-License-Identifier: Apache-2.0
// Decimal text of doubles: the same on every machine and in every locale. Infinities and NaN are "inf" and "nan".
#ifndef HLOKIT_IR_CORE_DOUBLE_TEXT_H_
#define HLOKIT_IR_CORE_DOUBLE_TEXT_H_

#include <string>

namespace hlokit {

// Returns the shortest text that reads back as `value`.
std::string FormatDouble(double value);

// Returns `value` rounded to at most `digits` significant digits (1 to 17), as "%.*g" of C prints it.
std::string FormatDouble(double value, int digits);

// Returns `value` with exactly `decimals` digits (0 to 17) after the point, as "%.*f" of C prints it.
std::string FormatFixed(double value, int decimals);

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_DOUBLE_TEXT_H_
