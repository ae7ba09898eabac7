// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/dead_operands.h"

#include <vector>

#include "ir/graph/instruction_queries.h"
#include "ir/graph/side_effects.h"
#include "passes/annotations/annotations.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {

void EraseDead(Module& module, InstructionId first, InstructionId to) {
  std::vector<InstructionId> dead = {first};
  while (!dead.empty()) {
    const Instruction i = module.instruction(dead.back());
    dead.pop_back();
    if (!i.record().parent.valid() || !IsUnused(i) || i.has_control_edges() ||
        (i.id() != first && HasSideEffectNoRecurse(i)) ||
        (i.id() != first && MightHaveCalledComputations(i.opcode()))) {
      continue;
    }
    MergeMetadata(module, i.id(), to);
    for (Instruction operand : i.operands()) dead.push_back(operand.id());
    module.Erase(i.id());
  }
}

}  // namespace hlokit
