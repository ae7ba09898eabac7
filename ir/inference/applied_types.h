// SPDX-License-Identifier: Apache-2.0
// Types in which instructions compute that apply a computation to elements, where the verifier lets operands, the
// computation and the result have different floating-point types.
#ifndef HLOKIT_IR_INFERENCE_APPLIED_TYPES_H_
#define HLOKIT_IR_INFERENCE_APPLIED_TYPES_H_

#include <optional>
#include <vector>

#include "ir/graph/module_fwd.h"
#include "ir/types/element_type.h"

namespace hlokit {

struct AppliedTypes {
  std::vector<ElementType> operands;  // to which they are converted first
  std::vector<ElementType> results;   // by leaf, before they become the declared ones
};

// Returns the types of map, reduce, reduce-window, scatter and select-and-scatter; nullopt for other opcodes, and where
// operands and computation do not fit. The arguments and results of the computation are converted at each application.
//
// map: those of the parameters. reduce and reduce-window: for each array and its initial value the wider type of the
// two parameters. scatter: for each array and its updates the wider of their types. select-and-scatter: the widest of
// the operands.
std::optional<AppliedTypes> AppliedTypesOf(Instruction instruction);

// Returns true if operands or results are of other types than these.
bool HasOtherTypes(Instruction instruction, const AppliedTypes& types);

}  // namespace hlokit

#endif  // HLOKIT_IR_INFERENCE_APPLIED_TYPES_H_
