// SPDX-License-Identifier: Apache-2.0
// Reachability between instructions of a computation, along operands and control predecessors.
#ifndef HLOKIT_PASSES_ANALYSIS_REACHABILITY_H_
#define HLOKIT_PASSES_ANALYSIS_REACHABILITY_H_

#include <cstdint>
#include <vector>

#include "ir/graph/instruction_map.h"
#include "ir/graph/module.h"

namespace hlokit {

// Reflects the computation at construction. Linear memory; a query visits at most the instructions between the two in
// post-order.
class Reachability {
 public:
  explicit Reachability(Computation computation);

  // Returns true if `to` depends on `from`, or is `from`.
  bool Reaches(Instruction from, Instruction to);
  // Returns true if neither depends on the other.
  bool Independent(Instruction a, Instruction b) { return !Reaches(a, b) && !Reaches(b, a); }
  // Returns the index in post-order.
  uint32_t PositionOf(Instruction i) const { return position_[i.id()]; }

 private:
  InstructionMap<uint32_t> position_;
  std::vector<uint32_t> mark_;  // by position: the last query that visited it
  uint32_t question_ = 0;
  std::vector<Instruction> stack_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_REACHABILITY_H_
