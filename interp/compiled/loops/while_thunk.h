// SPDX-License-Identifier: Apache-2.0
// While loops of scalars as one generated function, whose state is in registers.
#ifndef HLOKIT_INTERP_COMPILED_LOOPS_WHILE_THUNK_H_
#define HLOKIT_INTERP_COMPILED_LOOPS_WHILE_THUNK_H_

#include <functional>
#include <vector>

#include "interp/compiled/code/code_cache.h"
#include "interp/compiled/programs/loop_program.h"
#include "interp/compiled/programs/prepare_result.h"
#include "interp/exact/builder/compiled_computation_builder.h"

namespace hlokit::interp::compiled {

// Prepares the while loop builder.instruction() if its state consists of scalars, its computations of elementwise
// instructions, and nothing in them is observed. Steps count as one for each evaluation of a computation; iterations
// and their limit as in the exact engine. `programs`, `members`: what was compiled.
PrepareResult PrepareWhileLoop(CompiledComputationBuilder& builder, const std::function<bool(Instruction)>& is_observed,
                               ProgramCode* code, std::vector<LoopProgram>* programs,
                               std::vector<Instruction>* members);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LOOPS_WHILE_THUNK_H_
