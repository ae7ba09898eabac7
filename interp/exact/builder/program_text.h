// SPDX-License-Identifier: Apache-2.0
// A prepared program as text: its steps, and the slots that they read and write.
#ifndef HLOKIT_INTERP_EXACT_BUILDER_PROGRAM_TEXT_H_
#define HLOKIT_INTERP_EXACT_BUILDER_PROGRAM_TEXT_H_

#include <functional>
#include <string>

#include "interp/exact/builder/program_builder.h"

namespace hlokit::interp {

// Returns what computes the steps of an instruction, for the text; empty: nothing to add.
using StepDescriber = std::function<std::string(InstructionId)>;

// Returns a line for each step of each computation, in the order in which they run:
//
//   main, 4 steps, 7 slots, 640 bytes in all if none shared memory
//     0  sum  add  loop of 3  reads 0 1 (64 64 bytes)  writes 2 (64 bytes), in place of 0  then frees 1
//
// "once" marks steps that do not run again when the computation is called again.
std::string ProgramText(const PreparedProgram& program, const StepDescriber& describe);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUILDER_PROGRAM_TEXT_H_
