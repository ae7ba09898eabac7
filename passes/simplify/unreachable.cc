#include "passes/simplify/unreachable.h"

#include "ir/call_traits.h"

namespace hlokit {

int64_t EraseUnreachable(Module& module) {
  CallerList callers(module);
  for (Computation c : module.computations()) {
    callers.Begin(c.id());
    for (Instruction i : c.instructions()) {
      if (MayCall(i.opcode())) callers.Add(i.id());
    }
    callers.End(c.id());
  }
  return EraseUnreachable(module, callers);
}

int64_t EraseUnreachable(Module& module, const CallerList& callers) {
  std::vector<uint8_t> reached(module.computation_id_bound(), 0);
  std::vector<ComputationId> open = {module.entry().id()};
  reached[module.entry().id().value] = 1;
  const auto reach = [&](ComputationId callee) {
    if (reached[callee.value] != 0) return;
    reached[callee.value] = 1;
    open.push_back(callee);
  };
  while (!open.empty()) {
    const ComputationId id = open.back();
    open.pop_back();
    for (InstructionId caller : callers.Of(id)) {
      const InstructionRecord& r = module.record(caller);
      if (!r.parent.valid()) continue;
      for (const AttrValue& a : module.attrs_of(r)) {
        const AttrType type = InfoOf(a.attr).type;
        if (type == AttrType::kComputation) {
          reach(ComputationId(a.payload));
        } else if (type == AttrType::kComputationList) {
          for (int64_t callee : module.context().list(ListId(a.payload))) {
            reach(ComputationId(static_cast<uint32_t>(callee)));
          }
        }
      }
    }
  }
  int64_t erased = 0;
  for (Computation c : module.computations()) {
    if (reached[c.id().value]) continue;
    module.EraseComputation(c.id());
    ++erased;
  }
  return erased;
}

int64_t EraseUnused(Module& module, Computation computation, const KnownEffects& effects) {
  int64_t erased = 0;
  // Users stand behind what they use.
  for (InstructionId id = computation.record().last, previous; id.valid(); id = previous) {
    previous = module.record(id).previous;
    const Instruction i = module.instruction(id);
    if (i.has_users() || i.is_root() || i.opcode() == Opcode::kParameter || i.has(Attr::kControlPredecessors) ||
        !i.control_successors().empty() || effects.Of(i)) {
      continue;
    }
    module.Erase(id);
    ++erased;
  }
  return erased;
}

}  // namespace hlokit
