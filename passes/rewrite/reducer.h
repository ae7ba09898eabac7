// SPDX-License-Identifier: Apache-2.0
// Computations that combine two scalars, as reductions, scatters and collectives apply them.
#ifndef HLOKIT_PASSES_REWRITE_REDUCER_H_
#define HLOKIT_PASSES_REWRITE_REDUCER_H_

#include <cstdint>

#include "ir/graph/module.h"

namespace hlokit {

// Returns the root of a computation of two parameters if it is an operation on both, in either order; otherwise an
// invalid instruction. There may be further instructions.
Instruction CombinationOf(Computation computation);

// The value that combined with another one by an operation gives the other one.
enum class IdentityElement : uint8_t {
  kNone,
  kNegativeZero,  // -0 for floats, as -0 + 0 is 0
  kZero,
  kOne,
  kLowest,
  kHighest,
  kAllOnes,
};
IdentityElement IdentityElementOf(Opcode opcode);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_REDUCER_H_
