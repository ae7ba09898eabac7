// SPDX-License-Identifier: Apache-2.0
// Steps that run generated loops.
#ifndef HLOKIT_INTERP_COMPILED_LOOP_STEP_H_
#define HLOKIT_INTERP_COMPILED_LOOP_STEP_H_

#include <string>

#include "interp/compiled/code_cache.h"
#include "interp/exact/compiled_computation_builder.h"
#include "interp/exact/kernel_provider.h"

namespace hlokit::interp::compiled {

// Prepares a group as one step, whose program is `compiled` and whose code is requested from `code`. Returns false,
// with the reason in `why`, if it cannot be had; copies of operands may then be left, which nothing reads.
bool PrepareLoop(CompiledComputationBuilder& builder, const InstructionGroup& group, ProgramCode* code,
                 LoopProgram* compiled, std::string* why);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LOOP_STEP_H_
