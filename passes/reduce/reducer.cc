// SPDX-License-Identifier: Apache-2.0
#include "passes/reduce/reducer.h"

#include "passes/reduce/module_edits.h"

namespace hlokit::reduce {

std::vector<Target> InstructionReducer::Targets(const Module& module) const {
  std::vector<Target> targets;
  for (Computation c : module.computations()) {
    if (where_ == Where::kEntry && c.id() != module.entry().id()) continue;
    for (Instruction i : c.instructions()) {
      if (matches_(i)) targets.push_back({i.id().value, 0});
    }
  }
  return targets;
}

bool InstructionReducer::Apply(Module& module, Target target) const {
  const InstructionId id(target.id);
  return IsAlive(module, id) && edit_(module, module.instruction(id));
}

Reducers AllReducers(const RecordedValues* values) {
  Reducers reducers;
  AddCutReducers(&reducers);
  AddControlFlowReducers(&reducers);
  AddValueReducers(values, &reducers);
  AddPassReducers(&reducers);
  AddSizeReducers(&reducers);
  AddAnnotationReducers(&reducers);
  return reducers;
}

}  // namespace hlokit::reduce
