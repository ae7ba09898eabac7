// SPDX-License-Identifier: Apache-2.0
// How instructions use a TPU's vector memory (VMEM): what can take arrays from it, and which are one array.
#ifndef HLOKIT_PASSES_SCHEDULE_VECTOR_MEMORY_H_
#define HLOKIT_PASSES_SCHEDULE_VECTOR_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/target/cost_model.h"

namespace hlokit {

// Runs on the core as one kernel, which can take its operands from VMEM and leave its result there.
bool IsKernel(Instruction i);

// Operands whose memory the result takes: both stand in one place.
std::vector<int64_t> InPlaceOperands(Instruction i);

// An alias that is one array: its layout can say where the array is.
bool IsArrayAlias(Instruction i);

// The user reads this operand where it stands, in VMEM as well.
bool CanReadFromVmem(Instruction user, int64_t operand);

// The user writes its result over this operand: both are one array.
bool IsUpdatedInPlaceBy(Instruction value, Instruction user, int64_t operand);

// The array's memory under all its names: the value, its aliases, what updates it in place, and theirs. Empty if there
// are more than 64.
std::vector<InstructionId> NamesOf(Instruction value);

int64_t MemorySpaceOf(Shape array);

// The array with a layout that puts it into VMEM.
Shape InVmem(ShapeTable& shapes, Shape array);

// Adds an asynchronous copy of `source`, started before one instruction and waited for before another; none: at the
// end. `result`: the array with the layout of where it goes. Returns the copy-done.
absl::StatusOr<InstructionId> AddAsyncCopy(Module& module, InstructionId source, Shape result,
                                           InstructionId before_start, InstructionId before_done);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_VECTOR_MEMORY_H_
