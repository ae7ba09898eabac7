// SPDX-License-Identifier: Apache-2.0
// Instructions whose operands and result have different floating-point types where they should have one. XLA's verifier
// allows them; its compilers convert, its evaluator does not look.
#ifndef HLOKIT_INTERP_EXACT_MIXED_PRECISION_H_
#define HLOKIT_INTERP_EXACT_MIXED_PRECISION_H_

#include <cstdint>

namespace hlokit::interp {

enum class MixedPrecisionMode : uint8_t {
  // Operands are converted to the type the instruction computes in, the widest of them; the result is converted to the
  // declared type.
  kConvert,
  // XLA's evaluator: an instruction whose operands and result should have one type reads the bytes of its operands as
  // elements of the declared type (zeros where there are no more), and a bitcast from or to a type below a byte sees
  // one
  // element in each byte. Copies, reductions and products convert.
  kReinterpret,
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_MIXED_PRECISION_H_
