// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/module_edits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit {

void RenameAll(Module* module) {
  StringPool& strings = module->context().strings;
  int64_t number = 0;
  for (const Computation computation : module->computations()) {
    module->SetName(computation.id(), strings.Intern(StrCat("c", ++number)));
    for (const Instruction instruction : computation.instructions()) {
      module->SetName(instruction.id(), strings.Intern(StrCat("i", ++number)));
    }
  }
}

void Shuffle(Module* module, Random& random) {
  std::vector<int> missing(module->instruction_id_bound());
  std::vector<std::vector<InstructionId>> waiting(module->instruction_id_bound());
  std::vector<ComputationId> order;
  for (const Computation computation : module->computations()) {
    order.push_back(computation.id());
    std::vector<InstructionId> ready, sorted;
    for (const Instruction instruction : computation.instructions()) {
      int& count = missing[instruction.id().value];
      const auto wait_for = [&](Instruction other) {
        waiting[other.id().value].push_back(instruction.id());
        ++count;
      };
      for (const Instruction operand : instruction.operands()) wait_for(operand);
      for (const Instruction predecessor : instruction.control_predecessors()) wait_for(predecessor);
      if (count == 0) ready.push_back(instruction.id());
    }
    while (!ready.empty()) {
      std::swap(ready[random() % ready.size()], ready.back());
      const InstructionId id = ready.back();
      ready.pop_back();
      sorted.push_back(id);
      for (const InstructionId user : waiting[id.value]) {
        if (--missing[user.value] == 0) ready.push_back(user);
      }
    }
    if (static_cast<int64_t>(sorted.size()) != computation.instruction_count()) continue;  // cyclic operands
    for (size_t i = sorted.size() - 1; i > 0; --i) module->MoveBefore(sorted[i - 1], sorted[i]);
  }
  std::shuffle(order.begin(), order.end(), random);
  module->SetComputationOrder(order);
}

}  // namespace hlokit
