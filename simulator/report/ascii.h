// SPDX-License-Identifier: Apache-2.0
// ASCII text for JSON and protos, which require UTF-8; names in a file may have any bytes.
#ifndef HLOKIT_SIMULATOR_REPORT_ASCII_H_
#define HLOKIT_SIMULATOR_REPORT_ASCII_H_

#include <string>
#include <string_view>

namespace hlokit::tpu {

// Returns `s` with a question mark for each byte that is not ASCII.
inline std::string Ascii(std::string_view s) {
  std::string out(s);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return out;
}

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_ASCII_H_
