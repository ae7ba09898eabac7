#include "passes/simplify/dce.h"

#include <vector>

#include "ir/side_effects.h"

namespace hlokit {

absl::StatusOr<bool> Dce::Run(Module& module) {
  const SideEffects effects(module);
  bool changed = false;
  const auto dead = [&](Instruction i) {
    return !i.has_users() && !i.is_root() && i.opcode() != Opcode::kParameter && !effects.Of(i) &&
           i.control_successors().empty() && !i.has(Attr::kControlPredecessors);
  };
  std::vector<InstructionId> work;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (dead(i)) work.push_back(i.id());
    }
    while (!work.empty()) {
      const Instruction i = module.instruction(work.back());
      work.pop_back();
      if (!i.record().parent.valid()) continue;
      std::vector<InstructionId> operands;
      for (Instruction operand : i.operands()) operands.push_back(operand.id());
      module.Erase(i.id());
      Count("instructions removed");
      changed = true;
      for (InstructionId operand : operands) {
        const Instruction o = module.instruction(operand);
        if (o.record().parent.valid() && dead(o)) work.push_back(operand);
      }
    }
  }
  // Computations that cannot be reached from the entry.
  std::vector<uint8_t> reached(module.computation_id_bound(), 0);
  std::vector<ComputationId> open = {module.entry().id()};
  reached[module.entry().id().value] = 1;
  while (!open.empty()) {
    const Computation c = module.computation(open.back());
    open.pop_back();
    for (Instruction i : c.instructions()) {
      for (Computation callee : i.called_computations()) {
        if (reached[callee.id().value]++ == 0) open.push_back(callee.id());
        reached[callee.id().value] = 1;
      }
    }
  }
  for (Computation c : module.computations()) {
    if (reached[c.id().value]) continue;
    module.EraseComputation(c.id());
    Count("computations removed");
    changed = true;
  }
  return changed;
}

}  // namespace hlokit
