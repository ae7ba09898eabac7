// SPDX-License-Identifier: Apache-2.0
// Whether one instruction of a computation must run before another, along operands and control predecessors.
#ifndef HLOKIT_PASSES_ANALYSIS_REACHABILITY_H_
#define HLOKIT_PASSES_ANALYSIS_REACHABILITY_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

// Of the computation as it is when this is made. Memory linear in it; a question costs at most the instructions between
// the two in post-order.
class Reachability {
 public:
  explicit Reachability(Computation computation);

  // True if `to` needs `from`, or is it.
  bool Reaches(Instruction from, Instruction to);
  // Neither needs the other.
  bool Independent(Instruction a, Instruction b) { return !Reaches(a, b) && !Reaches(b, a); }
  // Place in the post-order.
  uint32_t PositionOf(Instruction i) const { return position_[i.id().value - lowest_]; }

 private:
  std::vector<uint32_t> position_;  // by InstructionId, from lowest_
  uint32_t lowest_ = 0;
  std::vector<uint32_t> mark_;  // the question in which a place was met
  uint32_t question_ = 0;
  std::vector<Instruction> stack_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_REACHABILITY_H_
