// SPDX-License-Identifier: Apache-2.0
// Strings and numbers of JSON, without loss: any bytes and any value come back the same (parser/json/json_cursor.h
// reads them).
#ifndef HLOKIT_IR_JSON_JSON_TEXT_H_
#define HLOKIT_IR_JSON_JSON_TEXT_H_

#include <string_view>

#include "ir/core/text_writer.h"

namespace hlokit {

// In quotes. Bytes that are no UTF-8 are written as the lone surrogates \udc80 to \udcff, one a byte, which is what
// Python's error handler "surrogateescape" takes them for.
void PrintJsonString(TextWriter& out, std::string_view s);

// The shortest digits that a reader of the type takes for this very value. JSON has no number for the others, which are
// strings as in literals: "inf", "-inf", "nan", "nan(0x1)".
void PrintJsonNumber(TextWriter& out, float value);
void PrintJsonNumber(TextWriter& out, double value);

}  // namespace hlokit

#endif  // HLOKIT_IR_JSON_JSON_TEXT_H_
