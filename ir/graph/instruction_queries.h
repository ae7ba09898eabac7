// SPDX-License-Identifier: Apache-2.0
// Questions about an instruction and what is next to it that many passes ask.
#ifndef HLOKIT_IR_GRAPH_INSTRUCTION_QUERIES_H_
#define HLOKIT_IR_GRAPH_INSTRUCTION_QUERIES_H_

#include <string_view>

#include "ir/graph/module.h"

namespace hlokit {

// Returns the target of a custom call, "" for other instructions.
inline std::string_view CustomCallTargetOf(Instruction i) {
  return i.opcode() == Opcode::kCustomCall ? i.string_attr(Attr::kCustomCallTarget) : std::string_view();
}

// `target` is not empty.
inline bool IsCustomCall(Instruction i, std::string_view target) { return CustomCallTargetOf(i) == target; }

// Returns true if nothing reads the value: it has no users, is not the root, and is no parameter, which callers bind.
inline bool IsUnused(Instruction i) { return !i.has_users() && !i.is_root() && i.opcode() != Opcode::kParameter; }

// Returns true for an array all of whose elements are one scalar of the program.
inline bool IsBroadcastOfScalar(Instruction i) {
  return i.opcode() == Opcode::kBroadcast && i.operand(0).shape().IsScalar();
}

// Returns true for constants whose value is known: not elided in the text.
inline bool HasKnownValue(Instruction i) { return i.opcode() == Opcode::kConstant && !i.literal().elided; }

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_INSTRUCTION_QUERIES_H_
