// SPDX-License-Identifier: Apache-2.0
// Evaluates single instructions on constants, for constant folding.
#ifndef HLOKIT_INTERP_EXACT_INSTRUCTION_EVALUATOR_H_
#define HLOKIT_INTERP_EXACT_INSTRUCTION_EVALUATOR_H_

#include "absl/status/statusor.h"
#include "interp/exact/evaluator.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "passes/core/pass.h"

namespace hlokit::interp {

// Returns the value of an instruction, which must be an array. Its transitive operands must end in constants and other
// instructions without operands; parameters are an error. The cost is that of those instructions and their callees,
// independent of the module's size. No other thread may add to the module's context during the call.
absl::StatusOr<Literal> EvaluateInstruction(Instruction instruction, const EvaluatorOptions& options);

// Returns a pass context with an evaluator whose limits do not depend on the clock: one thread, 2^20 steps, 2^28 bytes.
PassContext EvaluatingContext();

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_INSTRUCTION_EVALUATOR_H_
