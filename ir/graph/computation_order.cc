// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "ir/graph/call_walk.h"
#include "ir/graph/traversal.h"

namespace hlokit {
namespace {

// In the order XLA stores them: a loop has its body before its condition. Those erased since are left out.
void AppendCallees(Instruction i, std::vector<ComputationId>* callees) {
  const size_t begin = callees->size();
  i.ForEachCallee([&](Computation callee) {
    if (!callee.record().erased) callees->push_back(callee.id());
  });
  if (i.opcode() == Opcode::kWhile && callees->size() == begin + 2) {
    std::swap((*callees)[begin], (*callees)[begin + 1]);
  }
}

class CallTable {
 public:
  CallTable(const Module& module, const PotentialCallers& callers)
      : places_(module.computation_id_bound()), called_(module.computation_id_bound(), 0) {
    for (Computation c : module.computations()) {
      Begin(c.id());
      for (InstructionId caller : callers.Of(c.id())) Add(module.instruction(caller));
      End(c.id());
    }
    for (ComputationId callee : callees_) called_[callee.value] = 1;
  }

  // From now on instructions call in the order in which they are printed.
  void UsePrintedOrder(const Module& module) {
    const ComputationRoles roles = RolesOf(module);
    for (Computation c : module.computations()) {
      const Place& mine = places_[c.id().value];
      if (mine.end - mine.begin < 2 || (module.header().is_scheduled && roles.fusion[c.id().value] == 0)) continue;
      Begin(c.id());
      for (InstructionId id : PostOrder(c)) {
        if (MightHaveCalledComputations(module.record(id).opcode)) Add(module.instruction(id));
      }
      End(c.id());
    }
  }

  // Returns XLA's traversal order of computations that are in `listed` order. All callees of one instruction are marked
  // before the first is visited: a callee that another of them calls comes after it.
  std::vector<ComputationId> XlaOrder(const std::vector<ComputationId>& listed) const {
    std::vector<ComputationId> order;
    order.reserve(listed.size());
    std::vector<uint8_t> state(places_.size(), kNew);
    for (ComputationId id : listed) {
      if (called_[id.value] == 0) XlaWalk(id, &state, &order);
    }
    for (ComputationId id : listed) XlaWalk(id, &state, &order);  // those on a cycle
    return order;
  }

  std::vector<ComputationId> CalleesFirst(const std::vector<ComputationId>& listed) const {
    std::vector<ComputationId> order;
    order.reserve(listed.size());
    CallWalk walk(places_.size(), [this](ComputationId id, uint32_t k) {
      const uint32_t at = CalleesBegin(places_[id.value].begin) + k;
      return at < CalleesBegin(places_[id.value].end) ? callees_[at] : ComputationId();
    });
    const auto visit = [&](ComputationId id) { order.push_back(id); };
    for (ComputationId id : listed) {
      if (called_[id.value] == 0) walk.From(id, visit);
    }
    for (ComputationId id : listed) walk.From(id, visit);  // those on a cycle
    return order;
  }

  bool HasCalleesFirst(const std::vector<ComputationId>& order) const {
    std::vector<uint8_t> seen(places_.size(), 0);
    for (ComputationId id : order) {
      const Place& mine = places_[id.value];
      for (uint32_t n = CalleesBegin(mine.begin); n < CalleesBegin(mine.end); ++n) {
        if (seen[callees_[n].value] == 0) return false;
      }
      seen[id.value] = 1;
    }
    return true;
  }

 private:
  enum : uint8_t { kNew, kMarked, kOpen };

  void XlaWalk(ComputationId root, std::vector<uint8_t>* state, std::vector<ComputationId>* order) const {
    struct Frame {
      ComputationId id;
      uint32_t next = 0;  // of its calling instructions
    };
    if ((*state)[root.value] != kNew) return;
    std::vector<Frame> stack = {{root}};
    while (!stack.empty()) {
      const ComputationId id = stack.back().id;
      const Place& mine = places_[id.value];
      const uint32_t k = stack.back().next++;
      if (k == 0) (*state)[id.value] = kOpen;
      if (k == mine.end - mine.begin) {
        order->push_back(id);
        stack.pop_back();
        continue;
      }
      const uint32_t begin = CalleesBegin(mine.begin + k);
      for (uint32_t n = CalleesBegin(mine.begin + k + 1); n-- > begin;) {
        const ComputationId callee = callees_[n];
        if ((*state)[callee.value] != kNew) continue;
        (*state)[callee.value] = kMarked;
        stack.push_back({callee});
      }
    }
  }

  // The calling instructions of a computation, by index in ends_.
  struct Place {
    uint32_t begin = 0, end = 0;
  };

  void Begin(ComputationId id) { places_[id.value].begin = static_cast<uint32_t>(ends_.size()); }
  void End(ComputationId id) { places_[id.value].end = static_cast<uint32_t>(ends_.size()); }
  void Add(Instruction i) {
    const size_t begin = callees_.size();
    AppendCallees(i, &callees_);
    if (callees_.size() != begin) ends_.push_back(static_cast<uint32_t>(callees_.size()));
  }
  uint32_t CalleesBegin(uint32_t call) const { return call == 0 ? 0 : ends_[call - 1]; }

  std::vector<Place> places_;   // by ComputationId
  std::vector<uint32_t> ends_;  // of the callees of each calling instruction
  std::vector<ComputationId> callees_;
  std::vector<uint8_t> called_;
};

std::vector<ComputationId> Listed(const Module& module) {
  std::vector<ComputationId> listed;
  for (Computation c : module.computations()) listed.push_back(c.id());
  return listed;
}

}  // namespace

std::vector<ComputationId> ComputationPostOrder(const Module& module) {
  return ComputationPostOrder(module, PotentialCallers(module));
}

std::vector<ComputationId> ComputationPostOrder(const Module& module, const PotentialCallers& callers) {
  return CallTable(module, callers).CalleesFirst(Listed(module));
}

std::vector<ComputationId> ReachableComputations(const Module& module, absl::Span<const ComputationId> roots) {
  // The callees of a computation are collected when the traversal reaches it.
  struct Place {
    uint32_t begin = 0, end = 0;
    bool known = false;
  };
  std::vector<Place> places(module.computation_id_bound());
  std::vector<ComputationId> callees, order;
  CallWalk walk(places.size(), [&](ComputationId id, uint32_t k) {
    Place& place = places[id.value];
    if (!place.known) {
      place = {static_cast<uint32_t>(callees.size()), 0, true};
      for (Instruction i : module.computation(id).instructions()) AppendCallees(i, &callees);
      place.end = static_cast<uint32_t>(callees.size());
    }
    return place.begin + k < place.end ? callees[place.begin + k] : ComputationId();
  });
  for (ComputationId root : roots) {
    walk.From(root, [&](ComputationId id) { order.push_back(id); });
  }
  return order;
}

std::vector<ComputationId> ComputationTextOrder(const Module& module, bool stable_computation_order) {
  std::vector<ComputationId> order = Listed(module);
  if (order.size() < 2) return order;
  CallTable table(module, PotentialCallers(module));
  order = table.XlaOrder(order);
  if (!stable_computation_order && table.HasCalleesFirst(order)) return order;
  table.UsePrintedOrder(module);
  constexpr int kRounds = 8;  // two iterations have always been enough
  for (int round = 0; round < kRounds; ++round) {
    std::vector<ComputationId> again = table.XlaOrder(order);
    if (again == order && table.HasCalleesFirst(order)) return order;
    order = std::move(again);
  }
  return table.CalleesFirst(order);
}

std::vector<ComputationId> ComputationListedOrder(const Module& module) {
  std::vector<ComputationId> order = Listed(module);
  if (order.size() < 2 || CallTable(module, PotentialCallers(module)).HasCalleesFirst(order)) return order;
  return ComputationTextOrder(module, /*stable_computation_order=*/false);
}

}  // namespace hlokit
