// SPDX-License-Identifier: Apache-2.0
// Numbers of floating-point literals: `1`, `1.`, `.5`, `-1e-5`, `inf`, `-nan`, `nan(0x7f)`.
#ifndef HLOKIT_PARSER_TEXT_LITERAL_NUMBER_H_
#define HLOKIT_PARSER_TEXT_LITERAL_NUMBER_H_

#include <cstdint>

namespace hlokit {

struct LiteralNumber {
  // Payload bits of a double NaN, and the payload that represents an omitted one: that of arithmetic NaNs.
  static constexpr int kPayloadBits = 52;
  static constexpr uint64_t kNoPayload = uint64_t{1} << (kPayloadBits - 1);

  double value = 0;
  uint64_t nan_payload = kNoPayload;
  const char* end = nullptr;  // end of the number, or of the erroneous text
};

enum class NumberStatus : uint8_t {
  kOk,
  kNotANumber,
  kMalformed,          // a number followed by a name character
  kTooLarge,           // for a double
  kMalformedPayload,   // not (0x...)
  kPayloadOutOfRange,  // zero or more than 52 bits
};

// Parses the number at `p`, rounding to the nearest double. Requires: the text ends with a NUL at `end`.
NumberStatus ReadLiteralNumber(const char* p, const char* end, LiteralNumber* number);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_LITERAL_NUMBER_H_
