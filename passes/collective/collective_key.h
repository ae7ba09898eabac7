// SPDX-License-Identifier: Apache-2.0
// Keys of collectives that do the same among the same devices.
#ifndef HLOKIT_PASSES_COLLECTIVE_COLLECTIVE_KEY_H_
#define HLOKIT_PASSES_COLLECTIVE_COLLECTIVE_KEY_H_

#include <optional>
#include <string>

#include "ir/graph/module.h"

namespace hlokit {

// Returns the one operation of a function of two scalars, such as add or maximum, or nullopt if it does anything else.
std::optional<Opcode> ReducerOpcode(Computation reducer);

// Returns a key that is equal for collectives of one opcode that may be merged: all attributes but the channel,
// reducers by their operation, and element types if there is a reducer. Returns nullopt for collectives with control
// edges, a constrained layout or a sharding, and for other instructions.
std::optional<std::string> CollectiveKey(Instruction collective);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_COLLECTIVE_COLLECTIVE_KEY_H_
