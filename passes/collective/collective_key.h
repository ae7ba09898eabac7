// SPDX-License-Identifier: Apache-2.0
// Which collectives do the same among the same devices.
#ifndef HLOKIT_PASSES_COLLECTIVE_COLLECTIVE_KEY_H_
#define HLOKIT_PASSES_COLLECTIVE_COLLECTIVE_KEY_H_

#include <optional>
#include <string>

#include "ir/graph/module.h"

namespace hlokit {

// The one operation of a function of two scalars, add or maximum say: nullopt if it does anything else.
std::optional<Opcode> ReducerOpcode(Computation reducer);

// Equal for collectives of one opcode that may be merged into one: the attributes but the channel, with reducers by
// what they do and element types where a reducer is called. Nullopt for instructions that are no plain collective: with
// control edges, a constrained layout, a sharding.
std::optional<std::string> CollectiveKey(Instruction collective);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_COLLECTIVE_COLLECTIVE_KEY_H_
