// SPDX-License-Identifier: Apache-2.0
// What passes ask of while loops. What they do to them is in passes/rewrite/change_loop.h.
#ifndef HLOKIT_PASSES_ANALYSIS_LOOP_H_
#define HLOKIT_PASSES_ANALYSIS_LOOP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

// A while over a tuple whose condition and body belong to it alone, with a body that ends in a tuple and uses the state
// through get-tuple-element only.
struct CanonicalLoop {
  Instruction loop;
  Computation condition;
  Computation body;
  int64_t size = 0;                // elements of the state
  Instruction init;                // the operand; perhaps no tuple
  std::vector<uint8_t> unchanged;  // by element: the body passes it on
};

// True if `value` is an element of the state as `computation` sees it, the body or the condition of a loop; the second
// asks for one element.
inline bool IsStateElement(Instruction value, Computation computation) {
  return value.opcode() == Opcode::kGetTupleElement && value.operand(0) == computation.parameter(0);
}
inline bool IsStateElement(Instruction value, Computation computation, int64_t index) {
  return IsStateElement(value, computation) && value.int_attr(Attr::kIndex) == index;
}

// nullopt if `loop` is no such loop. `callers`: how many call sites each computation has, by id.
std::optional<CanonicalLoop> MatchCanonicalLoop(Instruction loop, const std::vector<uint32_t>& callers);

std::vector<uint32_t> CountCallers(const Module& module);

// While loops that may be changed, those of callees first.
std::vector<InstructionId> WhileLoops(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_LOOP_H_
