// SPDX-License-Identifier: Apache-2.0
// Instructions that are an array under another name, and those that a device spends time on.
#ifndef HLOKIT_PASSES_TARGET_ALIASES_H_
#define HLOKIT_PASSES_TARGET_ALIASES_H_

#include "ir/graph/module.h"

namespace hlokit::tpu {

// Returns true if the instruction's value is that of operand 0, in place: bitcasts, barriers, markers, and reshapes and
// transposes between layouts that leave every element where it is.
bool IsAlias(Instruction instruction);
// Returns the instruction whose value this is: looks through aliases and elements of tuples that stand in the
// computation. The element of a tuple that another instruction makes is itself.
Instruction ValueOf(Instruction instruction);

// Returns false for what takes no time: parameters, constants, tuples and their elements, aliases.
bool GeneratesCode(Instruction instruction);

// Returns the collective that an asynchronous start of one wraps; other instructions as they are.
Instruction AsyncWrappedInstruction(Instruction instruction);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_ALIASES_H_
