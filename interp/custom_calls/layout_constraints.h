// SPDX-License-Identifier: Apache-2.0
// The layouts that a custom call requires of its operands.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_LAYOUT_CONSTRAINTS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_LAYOUT_CONSTRAINTS_H_

#include <vector>

#include "ir/graph/module.h"
#include "ir/types/shape.h"

namespace hlokit::interp {

// Gives the leaves of operands the layouts of operand_layout_constraints; leaves them as they are if there are none.
// Functions that depend on the order of elements, those of typed custom calls of the PJRT plugin, copy to it.
void SetLayoutConstraints(Instruction custom_call, std::vector<Shape>* leaves);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_LAYOUT_CONSTRAINTS_H_
