// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/traversal.h"

#include <algorithm>
#include <utility>

#include "ir/graph/instruction_map.h"

namespace hlokit {

std::vector<InstructionId> PostOrder(Computation computation) {
  const Module& module = computation.module();
  std::vector<InstructionId> order;
  order.reserve(static_cast<size_t>(computation.instruction_count()));
  enum : uint8_t { kNew, kOpen, kDone };
  InstructionMap<uint8_t> state(computation, kNew);
  std::vector<InstructionId> stack;
  stack.reserve(64);
  const bool control_edges = module.may_have_control_edges();
  const auto traverse = [&](InstructionId root) {
    if (state[root] == kNew) stack.push_back(root);
    while (!stack.empty()) {
      const InstructionId id = stack.back();
      uint8_t& s = state[id];
      if (s != kNew) {
        stack.pop_back();
        if (s == kOpen) {
          s = kDone;
          order.push_back(id);
        }
        continue;
      }
      s = kOpen;
      const size_t waiting = stack.size();
      const InstructionRecord& r = module.record(id);
      const auto push = [&](InstructionId next) {
        // Does not read the record of the visited instruction: that may be a cache miss.
        const uint8_t* const found = state.Find(next);
        if (found == nullptr || *found != kNew) return;
        if (module.record(next).parent == r.parent) stack.push_back(next);
      };
      for (uint32_t k = r.operand_count; k-- > 0;) push(module.use(UseId(r.operand_begin + k)).def);
      if (control_edges) {
        for (int64_t p : module.instruction(id).list_attr(Attr::kControlPredecessors)) {
          push(InstructionId(static_cast<uint32_t>(p)));
        }
      }
      if (stack.size() != waiting) continue;
      // No dependencies left.
      stack.pop_back();
      s = kDone;
      order.push_back(id);
    }
  };
  for (Instruction i : computation.instructions()) {
    if (!i.has_users()) traverse(i.id());
  }
  // Instructions on cycles have users and are reachable from no root: visit the remaining ones.
  if (order.size() < static_cast<size_t>(computation.instruction_count())) {
    for (Instruction i : computation.instructions()) traverse(i.id());
  }
  return order;
}

ComputationRoles RolesOf(const Module& module) {
  ComputationRoles roles;
  roles.fusion.resize(module.computation_id_bound(), 0);
  roles.async.resize(module.computation_id_bound(), 0);
  // In id order, in which records are stored.
  for (uint32_t k = 0; k < module.instruction_id_bound(); ++k) {
    const Opcode opcode = module.record(InstructionId(k)).opcode;
    if (!HasTrait(opcode, kOwnsCallee)) continue;
    const Instruction i = module.instruction(InstructionId(k));
    if (!i.record().parent.valid()) continue;
    const Computation callee = i.computation_attr(Attr::kCalls);
    if (!callee.valid()) continue;
    (opcode == Opcode::kFusion ? roles.fusion : roles.async)[callee.id().value] = 1;
  }
  return roles;
}

}  // namespace hlokit
