// SPDX-License-Identifier: Apache-2.0
// Keys of instructions in tables by instruction, opcode, computation, source line or scope.
#ifndef HLOKIT_PASSES_ANALYSIS_COST_KEY_H_
#define HLOKIT_PASSES_ANALYSIS_COST_KEY_H_

#include <cstdint>
#include <string>

#include "passes/analysis/cost.h"

namespace hlokit {

// Returns its name, opcode, computation, "file:line" or scope path; "(none)" without metadata.
std::string KeyOf(Instruction i, CostKey key);

// Returns the instruction that computes array `leaf` of the result of `i`, in depth-first order: of a fusion the
// instruction of its computation, if that has a scope or a source line; otherwise `i`.
Instruction ProducerOf(Instruction i, int64_t leaf);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_COST_KEY_H_
