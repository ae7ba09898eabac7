#include <algorithm>
#include <utility>
#include <vector>

#include "ir/call_traits.h"
#include "ir/traversal.h"

namespace hlokit {
namespace {

// The callees of each calling instruction of a computation, in the order XLA stores them: a loop has its body before
// its condition.
struct Calls {
  std::vector<ComputationId> callees;
  std::vector<uint32_t> ends;  // of each instruction's callees

  void Add(Instruction i) {
    if (!MayCall(i.opcode())) return;
    const size_t begin = callees.size();
    for (const AttrValue& a : i.attrs()) {
      const AttrType type = InfoOf(a.attr).type;
      if (type == AttrType::kComputation) {
        callees.push_back(ComputationId(a.payload));
      } else if (type == AttrType::kComputationList) {
        for (int64_t id : i.module().context().list(ListId(a.payload))) {
          callees.push_back(ComputationId(static_cast<uint32_t>(id)));
        }
      }
    }
    if (callees.size() == begin) return;
    if (i.opcode() == Opcode::kWhile && callees.size() == begin + 2) std::swap(callees[begin], callees[begin + 1]);
    ends.push_back(static_cast<uint32_t>(callees.size()));
  }
};

class CallTable {
 public:
  explicit CallTable(const Module& module) : calls_(module.computation_id_bound()), called_(calls_.size(), 0) {
    for (Computation c : module.computations()) {
      Calls& mine = calls_[c.id().value];
      for (Instruction i : c.instructions()) mine.Add(i);
      for (ComputationId callee : mine.callees) called_[callee.value] = 1;
    }
  }

  // From now on instructions call in the order in which they are printed.
  void UsePrintedOrder(const Module& module) {
    const ComputationRoles roles = RolesOf(module);
    for (Computation c : module.computations()) {
      Calls& mine = calls_[c.id().value];
      if (mine.ends.size() < 2 || (module.header().is_scheduled && roles.fusion[c.id().value] == 0)) continue;
      mine = Calls();
      for (InstructionId id : PostOrder(c)) mine.Add(module.instruction(id));
    }
  }

  // XLA's walk of computations that stand in `listed` order. All callees of one instruction are marked before the first
  // is walked: one that another of them calls comes after it.
  std::vector<ComputationId> XlaOrder(const std::vector<ComputationId>& listed) const {
    return Walk(listed, /*mark_siblings=*/true);
  }

  std::vector<ComputationId> CalleesFirst(const std::vector<ComputationId>& listed) const {
    return Walk(listed, /*mark_siblings=*/false);
  }

  bool HasCalleesFirst(const std::vector<ComputationId>& order) const {
    std::vector<uint8_t> seen(calls_.size(), 0);
    for (ComputationId id : order) {
      for (ComputationId callee : calls_[id.value].callees) {
        if (seen[callee.value] == 0) return false;
      }
      seen[id.value] = 1;
    }
    return true;
  }

 private:
  std::vector<ComputationId> Walk(const std::vector<ComputationId>& listed, bool mark_siblings) const {
    enum : uint8_t { kNew, kMarked, kOpen };
    std::vector<ComputationId> order;
    order.reserve(listed.size());
    std::vector<uint8_t> state(calls_.size(), kNew);
    struct Frame {
      ComputationId id;
      size_t next = 0;  // index into ends
    };
    std::vector<Frame> stack;
    const auto walk = [&](ComputationId root) {
      if (state[root.value] != kNew) return;
      stack.push_back({root});
      while (!stack.empty()) {
        const ComputationId id = stack.back().id;
        const Calls& mine = calls_[id.value];
        const size_t k = stack.back().next++;
        if (k == 0) {
          if (state[id.value] == kOpen) {  // waited here while another path got to it first
            stack.pop_back();
            continue;
          }
          state[id.value] = kOpen;
        }
        if (k == mine.ends.size()) {
          order.push_back(id);
          stack.pop_back();
          continue;
        }
        const uint32_t begin = k == 0 ? 0 : mine.ends[k - 1];
        for (uint32_t n = mine.ends[k]; n-- > begin;) {
          const ComputationId callee = mine.callees[n];
          if (state[callee.value] != kNew) continue;
          if (mark_siblings) state[callee.value] = kMarked;
          stack.push_back({callee});
        }
      }
    };
    for (ComputationId id : listed) {
      if (called_[id.value] == 0) walk(id);
    }
    for (ComputationId id : listed) walk(id);  // those that call in a circle
    return order;
  }

  std::vector<Calls> calls_;
  std::vector<uint8_t> called_;
};

std::vector<ComputationId> Listed(const Module& module) {
  std::vector<ComputationId> listed;
  for (Computation c : module.computations()) listed.push_back(c.id());
  return listed;
}

}  // namespace

std::vector<ComputationId> ComputationPostOrder(const Module& module) {
  return CallTable(module).CalleesFirst(Listed(module));
}

std::vector<ComputationId> ComputationTextOrder(const Module& module, bool settled) {
  std::vector<ComputationId> order = Listed(module);
  if (order.size() < 2) return order;
  CallTable table(module);
  order = table.XlaOrder(order);
  if (!settled && table.HasCalleesFirst(order)) return order;
  table.UsePrintedOrder(module);
  constexpr int kRounds = 8;  // two are the most that was ever needed
  for (int round = 0; round < kRounds; ++round) {
    std::vector<ComputationId> again = table.XlaOrder(order);
    if (again == order && table.HasCalleesFirst(order)) return order;
    order = std::move(again);
  }
  return table.CalleesFirst(order);
}

}  // namespace hlokit
