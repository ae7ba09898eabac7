// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/dead_code.h"

#include <utility>

#include "ir/graph/instruction_queries.h"

namespace hlokit {

int64_t EraseUnreachable(Module& module) { return EraseUnreachable(module, PotentialCallers(module)); }

int64_t EraseUnreachable(Module& module, const PotentialCallers& callers) {
  std::vector<uint8_t> reached(module.computation_id_bound(), 0);
  std::vector<ComputationId> open = {module.entry().id()};
  reached[module.entry().id().value] = 1;
  while (!open.empty()) {
    const ComputationId id = open.back();
    open.pop_back();
    for (InstructionId caller : callers.Of(id)) {
      if (!module.record(caller).parent.valid()) continue;
      module.instruction(caller).ForEachCallee([&](Computation callee) {
        if (std::exchange(reached[callee.id().value], 1) == 0) open.push_back(callee.id());
      });
    }
  }
  int64_t erased = 0;
  for (uint32_t k = 0; k < reached.size(); ++k) {
    if (reached[k] != 0 || module.record(ComputationId(k)).erased) continue;
    module.EraseComputation(ComputationId(k));
    ++erased;
  }
  return erased;
}

int64_t EraseUnused(Module& module, Computation computation, const ConservativeSideEffects& effects) {
  int64_t erased = 0;
  // Users come after their operands.
  for (InstructionId id = computation.record().last, previous; id.valid(); id = previous) {
    previous = module.record(id).previous;
    const Instruction i = module.instruction(id);
    if (!IsUnused(i) || i.has_control_edges() || effects.Of(i)) {
      continue;
    }
    module.Erase(id);
    ++erased;
  }
  return erased;
}

}  // namespace hlokit
