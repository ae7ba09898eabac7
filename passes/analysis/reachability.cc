// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/reachability.h"

#include <algorithm>

#include "ir/graph/traversal.h"

namespace hlokit {

Reachability::Reachability(Computation computation) {
  const std::vector<InstructionId> order = PostOrder(computation);
  position_ = InstructionMap<uint32_t>(order);
  for (uint32_t n = 0; n < order.size(); ++n) position_[order[n]] = n;
  mark_.assign(order.size(), 0);
}

bool Reachability::Reaches(Instruction from, Instruction to) {
  const uint32_t start = PositionOf(from);
  ++question_;
  stack_.assign(1, to);
  while (!stack_.empty()) {
    const Instruction i = stack_.back();
    stack_.pop_back();
    if (i == from) return true;
    const auto visit = [&](Instruction before) {
      const uint32_t at = PositionOf(before);
      if (at < start || mark_[at] == question_) return;
      mark_[at] = question_;
      stack_.push_back(before);
    };
    for (Instruction operand : i.operands()) visit(operand);
    if (i.has(Attr::kControlPredecessors)) {
      for (Instruction p : i.control_predecessors()) visit(p);
    }
  }
  return false;
}

}  // namespace hlokit
