#include "passes/simplify/dce.h"

#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/call_traits.h"
#include "ir/side_effects.h"
#include "ir/traversal.h"
#include "passes/simplify/unreachable.h"

namespace hlokit {

absl::StatusOr<bool> Dce::Run(Module& module) {
  // Most modules have little that is dead: effects and roles are found when something may be.
  std::optional<SideEffects> effects;
  std::optional<ComputationRoles> roles;
  const auto dead = [&](Instruction i) {
    if (i.has_users() || i.is_root() || i.opcode() == Opcode::kParameter) return false;
    if (i.has(Attr::kControlPredecessors) || !i.control_successors().empty() || HasOwnSideEffect(i)) return false;
    if (!MayCall(i.opcode())) return true;
    if (!effects) effects.emplace(module);
    return !effects->Of(i);
  };
  bool changed = false;
  std::vector<InstructionId> work;
  CallerList callers(module);
  for (Computation c : module.computations()) {
    callers.Begin(c.id());
    for (InstructionId id = c.record().first; id.valid();) {
      const InstructionRecord& r = module.record(id);
      if (MayCall(r.opcode)) callers.Add(id);
      if (!r.first_use.valid() && dead(module.instruction(id))) work.push_back(id);
      id = r.next;
    }
    callers.End(c.id());
    if (work.empty()) continue;
    if (!roles) roles = RolesOf(module);
    // What a fusion or an asynchronous operation holds is settled.
    if (roles->fusion[c.id().value] || roles->async[c.id().value]) work.clear();
    while (!work.empty()) {
      const Instruction i = module.instruction(work.back());
      work.pop_back();
      if (!i.record().parent.valid()) continue;
      absl::InlinedVector<InstructionId, 8> operands;
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
  if (const int64_t erased = EraseUnreachable(module, callers); erased != 0) {
    Count("computations removed", erased);
    changed = true;
  }
  return changed;
}

}  // namespace hlokit
