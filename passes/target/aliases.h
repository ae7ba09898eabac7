// SPDX-License-Identifier: Apache-2.0
// Aliases of arrays, and instructions that generate code.
#ifndef HLOKIT_PASSES_TARGET_ALIASES_H_
#define HLOKIT_PASSES_TARGET_ALIASES_H_

#include "ir/graph/module_fwd.h"

namespace hlokit::tpu {

// Returns true if the instruction's value is that of operand 0, in place: bitcasts, barriers, markers, and reshapes and
// transposes between layouts that leave every element where it is.
bool IsAlias(Instruction instruction);
// Returns the instruction that defines this value: looks through aliases and through elements of tuples that the
// computation builds. An element of another instruction's tuple result is returned as is.
Instruction ValueOf(Instruction instruction);

// Returns true for a custom-call that makes one array of slices, which copies have put side by side.
bool IsConcatBitcast(Instruction instruction);

// Returns false for instructions that take no time: parameters, constants, tuples and their elements, aliases, and
// arrays of slices.
bool GeneratesCode(Instruction instruction);

// Returns the collective that an asynchronous start of one wraps; other instructions as they are.
Instruction AsyncWrappedInstruction(Instruction instruction);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_ALIASES_H_
