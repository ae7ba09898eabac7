// SPDX-License-Identifier: Apache-2.0
// Edits that reducers share.
#ifndef HLOKIT_PASSES_REDUCE_MODULE_EDITS_H_
#define HLOKIT_PASSES_REDUCE_MODULE_EDITS_H_

#include <vector>

#include "ir/graph/module.h"

namespace hlokit::reduce {

// Returns true if the instruction exists.
bool IsAlive(const Module& module, InstructionId id);

// Returns the values that the entry returns: the elements of its root if that is a tuple that nothing else uses,
// otherwise the root.
std::vector<InstructionId> Outputs(const Module& module);
// Makes the entry return these values: one as it is, more as a tuple. Requires: at least one.
void SetOutputs(Module& module, const std::vector<InstructionId>& outputs);

// Adds a parameter of the entry with the shape, name and metadata of `like`, an instruction of the entry.
InstructionId AddParameterLike(Module& module, InstructionId like);

// Makes all users of `old` use `by`, of the same computation, and erases `old` unless it is a parameter.
void ReplaceAndErase(Module& module, InstructionId old, InstructionId by);

// Brings an edited module into a form that verifies if the edit was sensible: dead code, unused parameters of the entry
// and of called computations, elements of tuples that are made where they are read, computations without callers; the
// header describes the entry as it is. Linear in the module.
void CleanUp(Module& module);

}  // namespace hlokit::reduce

#endif  // HLOKIT_PASSES_REDUCE_MODULE_EDITS_H_
