// SPDX-License-Identifier: Apache-2.0
// Analysis of while loops. passes/rewrite/change_loop.h changes them.
#ifndef HLOKIT_PASSES_ANALYSIS_LOOP_H_
#define HLOKIT_PASSES_ANALYSIS_LOOP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

// A while over a tuple whose condition and body have no other caller. The body ends in a tuple, and uses the state only
// through get-tuple-element.
struct CanonicalLoop {
  Instruction loop;
  Computation condition;
  Computation body;
  int64_t size = 0;                // elements of the state
  Instruction init;                // the operand, not necessarily a tuple
  std::vector<uint8_t> unchanged;  // by element: the body forwards it unchanged
};

// Returns true if `value` is an element of the state in `computation`, the body or condition of a loop; the overload
// with an index tests for that element.
inline bool IsStateElement(Instruction value, Computation computation) {
  return value.opcode() == Opcode::kGetTupleElement && value.operand(0) == computation.parameter(0);
}
inline bool IsStateElement(Instruction value, Computation computation, int64_t index) {
  return IsStateElement(value, computation) && value.int_attr(Attr::kIndex) == index;
}

// Returns nullopt if `loop` is not canonical. `callers`: number of call sites of each computation, by id.
std::optional<CanonicalLoop> MatchCanonicalLoop(Instruction loop, const std::vector<uint32_t>& callers);

std::vector<uint32_t> CountCallers(const Module& module);

// Returns the while loops that may be changed, those of callees first.
std::vector<InstructionId> WhileLoops(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_LOOP_H_
