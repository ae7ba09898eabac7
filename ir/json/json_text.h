// SPDX-License-Identifier: Apache-2.0
// Lossless strings and numbers in JSON: any bytes and any value round-trip (parser/json/json_cursor.h reads them).
#ifndef HLOKIT_IR_JSON_JSON_TEXT_H_
#define HLOKIT_IR_JSON_JSON_TEXT_H_

#include <string_view>

#include "ir/core/text_writer.h"

namespace hlokit {

// Prints a quoted string. Invalid UTF-8 bytes become lone surrogates \udc80 to \udcff, one per byte, as with Python's
// error handler "surrogateescape".
void PrintJsonString(TextWriter& out, std::string_view s);

// Prints the shortest digits that parse to the same value of the type. Non-finite values are strings as in literals:
// "inf", "-inf", "nan", "nan(0x1)".
void PrintJsonNumber(TextWriter& out, float value);
void PrintJsonNumber(TextWriter& out, double value);

}  // namespace hlokit

#endif  // HLOKIT_IR_JSON_JSON_TEXT_H_
