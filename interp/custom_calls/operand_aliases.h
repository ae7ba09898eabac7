// SPDX-License-Identifier: Apache-2.0
// Operands of a custom call that are its results: the function finds them in the memory of the results.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_OPERAND_ALIASES_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_OPERAND_ALIASES_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "interp/interface/custom_call_registry.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

// Leaves of operands, and the leaves of the result that they are, by output_to_operand_aliasing.
using OperandAliases = std::vector<std::pair<size_t, size_t>>;
OperandAliases OperandAliasesOf(Instruction custom_call);

// Copies such operands to the results, and has the function find them there.
void MakeAliases(const OperandAliases& aliases, absl::Span<CustomCallOperand> operands,
                 absl::Span<const CustomCallResult> results);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_OPERAND_ALIASES_H_
