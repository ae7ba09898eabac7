// SPDX-License-Identifier: Apache-2.0
#include "ir/core/double_text.h"

#include <charconv>

namespace hlokit {

std::string FormatDouble(double value) {
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

std::string FormatDouble(double value, int digits) {
  char buffer[32];
  return std::string(buffer,
                     std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, digits).ptr);
}

std::string FormatFixed(double value, int decimals) {
  char buffer[336];  // the sign, the 309 digits of the largest double, the point and 17 decimals fit
  return std::string(buffer,
                     std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, decimals).ptr);
}

}  // namespace hlokit
