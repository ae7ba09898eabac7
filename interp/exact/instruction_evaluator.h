// SPDX-License-Identifier: Apache-2.0
// Single instructions on constants: what constant folding asks for.
#ifndef HLOKIT_INTERP_EXACT_INSTRUCTION_EVALUATOR_H_
#define HLOKIT_INTERP_EXACT_INSTRUCTION_EVALUATOR_H_

#include "absl/status/statusor.h"
#include "interp/exact/evaluator.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "passes/core/pass.h"

namespace hlokit::interp {

// The value of an instruction, which must be an array. What it depends on, through any number of operands, must end in
// constants and other instructions without operands; parameters are an error. Costs as much as those instructions and
// the computations they call, whatever the size of the module. No other thread may add to the module's context
// meanwhile.
absl::StatusOr<Literal> EvaluateInstruction(Instruction instruction, const EvaluatorOptions& options);

// Gives passes an evaluator with limits that do not depend on the clock: one thread, 2^20 steps, 2^28 bytes.
PassContext EvaluatingContext();

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_INSTRUCTION_EVALUATOR_H_
