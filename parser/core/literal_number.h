// SPDX-License-Identifier: Apache-2.0
// Numbers of floating-point literals: `1`, `1.`, `.5`, `-1e-5`, `inf`, `-nan`, `nan(0x7f)`.
#ifndef HLOKIT_PARSER_CORE_LITERAL_NUMBER_H_
#define HLOKIT_PARSER_CORE_LITERAL_NUMBER_H_

#include <cstdint>

namespace hlokit {

struct LiteralNumber {
  // The bits of a double's NaN that a payload can have, and the payload that stands for "none was written": that of the
  // NaN which arithmetic makes.
  static constexpr int kPayloadBits = 52;
  static constexpr uint64_t kNoPayload = uint64_t{1} << (kPayloadBits - 1);

  double value = 0;
  uint64_t nan_payload = kNoPayload;
  const char* end = nullptr;  // past the number; on an error past what is wrong
};

enum class NumberStatus : uint8_t {
  kOk,
  kNotANumber,
  kMalformed,          // begins as a number, but a name character follows
  kTooLarge,           // for a double
  kMalformedPayload,   // not (0x...)
  kPayloadOutOfRange,  // zero or more than 52 bits
};

// Reads the number that begins at `p`, rounding to the nearest double. The text ends with a NUL at `end`.
NumberStatus ReadLiteralNumber(const char* p, const char* end, LiteralNumber* number);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_CORE_LITERAL_NUMBER_H_
