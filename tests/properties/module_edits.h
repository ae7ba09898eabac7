// SPDX-License-Identifier: Apache-2.0
// Random changes of modules for property tests. Those that keep the meaning: other names, another order.
#ifndef HLOKIT_TESTS_PROPERTIES_MODULE_EDITS_H_
#define HLOKIT_TESTS_PROPERTIES_MODULE_EDITS_H_

#include <random>

#include "ir/graph/module.h"

namespace hlokit {

using Random = std::mt19937_64;

// Gives every computation and instruction a name without a meaning.
void RenameAll(Module* module);
// Shuffles the computations, and the instructions of each, keeping operands and control predecessors first.
void Shuffle(Module* module, Random& random);

}  // namespace hlokit

#endif  // HLOKIT_TESTS_PROPERTIES_MODULE_EDITS_H_
