#include "passes/simplify/dce.h"

#include <vector>

#include "ir/side_effects.h"
#include "ir/traversal.h"
#include "passes/simplify/unreachable.h"

namespace hlokit {

absl::StatusOr<bool> Dce::Run(Module& module) {
  const SideEffects effects(module);
  const ComputationRoles roles = RolesOf(module);
  bool changed = false;
  const auto dead = [&](Instruction i) {
    return !i.has_users() && !i.is_root() && i.opcode() != Opcode::kParameter && !effects.Of(i) &&
           i.control_successors().empty() && !i.has(Attr::kControlPredecessors);
  };
  std::vector<InstructionId> work;
  for (Computation c : module.computations()) {
    if (roles.fusion[c.id().value] || roles.async[c.id().value]) continue;
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
  if (const int64_t erased = EraseUnreachable(module); erased != 0) {
    Count("computations removed", erased);
    changed = true;
  }
  return changed;
}

}  // namespace hlokit
