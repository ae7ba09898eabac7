// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/graph_order.h"

#include <algorithm>
#include <utility>

namespace hlokit::sharding {
namespace {

// Returns the instructions of a computation, operands before users: depth first from the root by operand number, then
// from others without users, by name. Nothing of it depends on the order of the text.
std::vector<InstructionId> GraphPostOrder(Computation computation, std::vector<uint8_t>* state) {
  const Module& module = computation.module();
  std::vector<Instruction> starts = {computation.root()};
  std::vector<Instruction> dead;
  for (Instruction i : computation.instructions()) {
    if (!i.has_users() && i != computation.root()) dead.push_back(i);
  }
  std::sort(dead.begin(), dead.end(), [](Instruction a, Instruction b) { return a.name() < b.name(); });
  starts.insert(starts.end(), dead.begin(), dead.end());
  std::vector<InstructionId> order;
  std::vector<std::pair<InstructionId, int64_t>> stack;
  for (Instruction start : starts) {
    if ((*state)[start.id().value] != 0) continue;
    (*state)[start.id().value] = 1;
    stack.emplace_back(start.id(), 0);
    while (!stack.empty()) {
      const Instruction i = module.instruction(stack.back().first);
      if (stack.back().second == i.operand_count()) {
        order.push_back(i.id());
        stack.pop_back();
        continue;
      }
      const Instruction operand = i.operand(stack.back().second++);
      if ((*state)[operand.id().value] != 0) continue;
      (*state)[operand.id().value] = 1;
      stack.emplace_back(operand.id(), 0);
    }
  }
  return order;
}

}  // namespace

GraphOrder GraphOrderOf(const Module& module) {
  GraphOrder order;
  order.post_order.resize(module.computation_id_bound());
  order.position.resize(module.instruction_id_bound());
  std::vector<uint8_t> seen(module.instruction_id_bound(), 0);
  std::vector<uint8_t> listed(module.computation_id_bound(), 0);
  std::vector<Computation> starts = module.computations();
  std::sort(starts.begin(), starts.end(), [](Computation a, Computation b) {
    return a.is_entry() != b.is_entry() ? a.is_entry() : a.name() < b.name();
  });
  struct Visit {
    Computation computation;
    std::vector<Computation> callees;
    size_t next = 0;
  };
  std::vector<Visit> stack;
  const auto enter = [&](Computation c) {
    if (listed[c.id().value] != 0) return;
    listed[c.id().value] = 1;
    order.post_order[c.id().value] = GraphPostOrder(c, &seen);
    Visit visit{c, {}, 0};
    for (InstructionId id : order.post_order[c.id().value]) {
      module.instruction(id).ForEachCallee([&](Computation callee) { visit.callees.push_back(callee); });
    }
    stack.push_back(std::move(visit));
  };
  for (Computation start : starts) {
    enter(start);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next == top.callees.size()) {
        order.computations.push_back(top.computation);
        stack.pop_back();
        continue;
      }
      enter(top.callees[top.next++]);
    }
  }
  uint32_t position = 0;
  for (Computation c : order.computations) {
    for (InstructionId id : order.post_order[c.id().value]) order.position[id.value] = position++;
  }
  return order;
}

}  // namespace hlokit::sharding
