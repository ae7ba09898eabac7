#include "passes/simplify/unreachable.h"

#include "ir/call_traits.h"

namespace hlokit {

int64_t EraseUnreachable(Module& module) {
  int64_t erased = 0;
  std::vector<uint8_t> reached(module.computation_id_bound(), 0);
  std::vector<ComputationId> open = {module.entry().id()};
  reached[module.entry().id().value] = 1;
  while (!open.empty()) {
    const Computation c = module.computation(open.back());
    open.pop_back();
    for (Instruction i : c.instructions()) {
      if (!MayCall(i.opcode())) continue;
      for (Computation callee : i.called_computations()) {
        if (reached[callee.id().value]++ == 0) open.push_back(callee.id());
        reached[callee.id().value] = 1;
      }
    }
  }
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
