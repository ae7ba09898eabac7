// SPDX-License-Identifier: Apache-2.0
// Steps that run generated loops.
#ifndef HLOKIT_INTERP_COMPILED_LOOPS_LOOP_THUNK_H_
#define HLOKIT_INTERP_COMPILED_LOOPS_LOOP_THUNK_H_

#include <vector>

#include "interp/compiled/code/code_cache.h"
#include "interp/compiled/programs/prepare_result.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernel_provider.h"

namespace hlokit::interp::compiled {

// Prepares a group as one thunk, and one before for each batch normalization, whose programs are `compiled` and whose
// code is requested from `code`. `min_run`: of GroupOptions; `materialized`: members that have exact kernels
// nevertheless. If it is unsupported, thunks whose results nothing reads may be left.
PrepareResult PrepareLoop(CompiledComputationBuilder& builder, const InstructionGroup& group, int64_t min_run,
                          ProgramCode* code, std::vector<LoopProgram>* compiled,
                          std::vector<Instruction>* materialized);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LOOPS_LOOP_THUNK_H_
