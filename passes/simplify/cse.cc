#include "passes/simplify/cse.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/call_traits.h"
#include "ir/side_effects.h"
#include "ir/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/simplify/instruction_key.h"
#include "passes/simplify/unreachable.h"

namespace hlokit {

namespace {

// What the callees of the one that stays stand for: those of the one that goes too. `carried`: pairs done before.
void CarryCallees(Module& module, Instruction goes, Instruction stays, absl::flat_hash_set<uint64_t>* carried) {
  if (!MayCall(goes.opcode())) return;
  const std::vector<Computation> from = goes.called_computations(), to = stays.called_computations();
  for (size_t k = 0; k < from.size() && k < to.size(); ++k) {
    const uint64_t pair = uint64_t{from[k].id().value} << 32 | to[k].id().value;
    if (from[k] == to[k] || !carried->insert(pair).second) continue;
    CarryBetweenEqual(module, from[k], to[k]);
  }
}

}  // namespace

absl::StatusOr<bool> Cse::Run(Module& module) {
  const SideEffects effects(module);
  const std::vector<uint32_t> same = EqualComputations(module);
  const ComputationRoles roles = RolesOf(module);
  KeySet key;
  absl::flat_hash_set<uint64_t> carried;
  bool changed = false;
  for (Computation c : module.computations()) {
    if (roles.fusion[c.id().value] || roles.async[c.id().value]) continue;
    key.Clear();
    key.Reserve(static_cast<size_t>(c.instruction_count()));
    // In the order of the computation, in which operands stand first, so that the one that stays stands before all
    // users.
    for (InstructionId id = c.record().first, next; id.valid(); id = next) {
      next = module.record(id).next;
      const Instruction i = module.instruction(id);
      if (i.opcode() == Opcode::kParameter || effects.Of(i) || i.has(Attr::kControlPredecessors) ||
          (i.opcode() == Opcode::kConstant && i.literal().elided)) {
        continue;
      }
      key.Add(static_cast<uint32_t>(i.opcode()));
      key.Add(i.record().shape.value);
      key.Add(i.record().payload);
      key.Add(static_cast<uint32_t>(i.operand_count()));
      if (HasTrait(i.opcode(), kCommutative) && i.operand_count() == 2) {
        const uint32_t a = i.operand(0).id().value, b = i.operand(1).id().value;
        key.Add(std::min(a, b));
        key.Add(std::max(a, b));
      } else {
        for (Instruction o : i.operands()) key.Add(o.id().value);
      }
      AddAttributes(&key, i, same);
      const InstructionId first(key.Find(id.value));
      if (first == id || !i.control_successors().empty()) continue;
      CarryCallees(module, i, module.instruction(first), &carried);
      Replace(module, id, first);
      Count("instructions merged");
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlokit
