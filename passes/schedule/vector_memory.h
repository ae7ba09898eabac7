// SPDX-License-Identifier: Apache-2.0
// How instructions use a TPU's vector memory (VMEM): what can take arrays from it, and which are one array.
#ifndef HLOKIT_PASSES_SCHEDULE_VECTOR_MEMORY_H_
#define HLOKIT_PASSES_SCHEDULE_VECTOR_MEMORY_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"
#include "passes/target/cost_model.h"

namespace hlokit {

// Runs on the core as one kernel, which can take its operands from VMEM and leave its result there.
bool IsKernel(Instruction i);

// Operands whose memory the result takes: both stand in one place.
std::vector<int64_t> UpdatedOperands(Instruction i);

// An alias that is one array: its layout can say where the array is.
bool IsName(Instruction i);

// The user reads this operand where it stands, in VMEM as well.
bool CanTakeFromVmem(Instruction user, int64_t operand);

// The user writes its result over this operand: both are one array.
bool IsUpdatedBy(Instruction value, Instruction user, int64_t operand);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_VECTOR_MEMORY_H_
