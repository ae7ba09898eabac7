// SPDX-License-Identifier: Apache-2.0
// Modes for instructions whose operands and result have different floating-point types where one type is expected.
// XLA's verifier accepts them; XLA's compilers convert, XLA's evaluator ignores the difference.
#ifndef HLOKIT_INTERP_INTERFACE_MIXED_PRECISION_H_
#define HLOKIT_INTERP_INTERFACE_MIXED_PRECISION_H_

#include <cstdint>

namespace hlokit::interp {

enum class MixedPrecisionMode : uint8_t {
  // Converts operands to the widest of their types, in which the instruction computes, and the result to the declared
  // type.
  kConvert,
  // Like XLA's evaluator: reads the bytes of operands as elements of the declared type (zeros past the end); a bitcast
  // from or to a type below a byte has one element in each byte. Copies, reductions, dots and convolutions convert.
  kReinterpret,
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_INTERFACE_MIXED_PRECISION_H_
