// SPDX-License-Identifier: Apache-2.0
// How instructions use a TPU's vector memory (VMEM): which operands can be read from it, and which values alias.
#ifndef HLOKIT_PASSES_SCHEDULE_VECTOR_MEMORY_H_
#define HLOKIT_PASSES_SCHEDULE_VECTOR_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/target/cost_model.h"

namespace hlokit {

// Returns true if `i` runs on the core as one kernel, which can read operands from VMEM and write its result there.
bool IsKernel(Instruction i);

// Returns the operands whose buffer the result reuses.
std::vector<int64_t> InPlaceOperands(Instruction i);

// Returns true if `i` is an alias and one array, so that its layout can specify a memory space.
bool IsArrayAlias(Instruction i);

// Returns true if `user` can read this operand from VMEM.
bool CanReadFromVmem(Instruction user, int64_t operand);

// Returns true if `user` overwrites this operand with its result, so that both are one array.
bool IsUpdatedInPlaceBy(Instruction value, Instruction user, int64_t operand);

// Returns all instructions that share the buffer of `value`: its aliases, in-place updates and theirs, transitively.
// Empty if there are more than 64.
std::vector<InstructionId> NamesOf(Instruction value);

// Returns `array` with a layout in VMEM.
Shape InVmem(ShapeTable& shapes, Shape array);

// Returns true if an array of the module is in VMEM, or in the memory that cores share.
bool UsesVmem(const Module& module);

// Adds an asynchronous copy of `source`, with copy-start before one instruction and copy-done before another (none: at
// the end). `result` is the array with the destination layout. Returns the copy-done.
absl::StatusOr<InstructionId> AddAsyncCopy(Module& module, InstructionId source, Shape result,
                                           InstructionId before_start, InstructionId before_done);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_VECTOR_MEMORY_H_
