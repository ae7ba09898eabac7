#include "ir/traversal.h"

#include <algorithm>
#include <utility>

namespace hlokit {
std::vector<InstructionId> PostOrder(Computation computation) {
  const Module& module = computation.module();
  std::vector<InstructionId> order;
  order.reserve(static_cast<size_t>(computation.instruction_count()));
  // Ids of a computation lie close together, but a side array must not be larger than the computation deserves.
  uint32_t low = 0xffffffffu, high = 0;
  for (Instruction i : computation.instructions()) {
    low = std::min(low, i.id().value);
    high = std::max(high, i.id().value);
  }
  if (low > high) return order;
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(high - low + 1, kNew);
  std::vector<InstructionId> stack;
  const auto walk = [&](InstructionId root) {
    if (state[root.value - low] == kNew) stack.push_back(root);
    while (!stack.empty()) {
      const InstructionId id = stack.back();
      uint8_t& s = state[id.value - low];
      if (s != kNew) {
        stack.pop_back();
        if (s == kOpen) {
          s = kDone;
          order.push_back(id);
        }
        continue;
      }
      s = kOpen;
      const InstructionRecord& r = module.record(id);
      const auto push = [&](InstructionId next) {
        // The record of what has been visited is not looked at: it may be far away.
        if (next.value < low || next.value > high || state[next.value - low] != kNew) return;
        if (module.record(next).parent == r.parent) stack.push_back(next);
      };
      for (uint32_t k = r.operand_count; k-- > 0;) push(module.use(UseId(r.operand_begin + k)).def);
      for (const AttrValue& a : module.attrs_of(r)) {
        if (a.attr != Attr::kControlPredecessors) continue;
        for (int64_t p : module.context().list(ListId(a.payload))) push(InstructionId(static_cast<uint32_t>(p)));
      }
    }
  };
  for (Instruction i : computation.instructions()) {
    if (!i.has_users()) walk(i.id());
  }
  // Instructions on cycles have users and are reached from none: keep the promise to visit all.
  if (order.size() < static_cast<size_t>(computation.instruction_count())) {
    for (Instruction i : computation.instructions()) walk(i.id());
  }
  return order;
}

ComputationRoles RolesOf(const Module& module) {
  ComputationRoles roles;
  roles.fusion.resize(module.computation_id_bound(), 0);
  roles.async.resize(module.computation_id_bound(), 0);
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kFusion && i.opcode() != Opcode::kAsyncStart) continue;
      const Computation callee = i.computation_attr(Attr::kCalls);
      if (!callee.valid()) continue;
      (i.opcode() == Opcode::kFusion ? roles.fusion : roles.async)[callee.id().value] = 1;
    }
  }
  return roles;
}

}  // namespace hlokit
