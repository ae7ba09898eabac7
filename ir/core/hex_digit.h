// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_IR_CORE_HEX_DIGIT_H_
#define HLOKIT_IR_CORE_HEX_DIGIT_H_

namespace hlokit {

// Returns the value of a hexadecimal digit, -1 for other characters.
constexpr int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_HEX_DIGIT_H_
