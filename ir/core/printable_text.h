// SPDX-License-Identifier: Apache-2.0
// Text of an input as it may be shown on a terminal: control characters, which could move the cursor, change colors or
// the title, and bytes that are no UTF-8 are escaped.
#ifndef HLOKIT_IR_CORE_PRINTABLE_TEXT_H_
#define HLOKIT_IR_CORE_PRINTABLE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace hlokit {

// Returns the bytes of the UTF-8 sequence that `text` begins with; 0 if it is none (overlong forms, surrogates, past
// U+10FFFF). Requires: not empty.
size_t Utf8Length(std::string_view text);

struct ShownCharacter {
  size_t bytes = 0;    // of the text
  size_t columns = 0;  // that it takes, if it is not a wide or combining one
};

// Appends the first character of `text`: itself, or `\x1b` for each byte of a control character other than tab and
// newline, and for a byte that is no UTF-8. Requires: not empty.
ShownCharacter AppendShown(std::string* out, std::string_view text);
std::string Printable(std::string_view text);

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_PRINTABLE_TEXT_H_
