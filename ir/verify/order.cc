// SPDX-License-Identifier: Apache-2.0
// Verifies the absence of cycles, and the order of instructions in scheduled modules.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "ir/graph/call_walk.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

// Formats "`a` -> `b` -> `a`", shortening long cycles in the middle.
template <typename NameOf>
std::string CycleToString(absl::Span<const uint32_t> ids, const NameOf& name_of) {
  constexpr size_t kShown = 6;
  std::string out;
  for (size_t n = 0; n < ids.size(); ++n) {
    if (n == kShown / 2 && ids.size() > kShown) {
      StrAppend(&out, "... -> ");
      n = ids.size() - kShown / 2;
    }
    StrAppend(&out, "`", name_of(ids[n]), "` -> ");
  }
  StrAppend(&out, "`", name_of(ids[0]), "`");
  return out;
}

struct Frame {
  uint32_t node;
  uint32_t next_child;
};

enum Color : uint8_t { kNew, kOpen, kDone };

// Depth-first search of one computation along operands and control predecessors.
class OperandCycles {
 public:
  OperandCycles(VerifierContext& v, Computation c) : v_(v), computation_(c) {}

  bool Run() {
    base_ = v_.position(computation_.record().first);
    colors_.assign(static_cast<size_t>(computation_.instruction_count()), kNew);
    for (Instruction i : computation_.instructions()) {
      if (ColorOf(i.id()) == kNew && !Search(i)) return false;
    }
    return true;
  }

 private:
  uint8_t& ColorOf(InstructionId id) { return colors_[v_.position(id) - base_]; }

  // Returns the n-th instruction that must come before `i`, or an invalid id.
  InstructionId Child(Instruction i, uint32_t n) const {
    if (n < i.record().operand_count) return i.operand(n).id();
    n -= i.record().operand_count;
    const absl::Span<const int64_t> control = i.list_attr(Attr::kControlPredecessors);
    return n < control.size() ? InstructionId(static_cast<uint32_t>(control[n])) : InstructionId();
  }

  bool Search(Instruction start) {
    std::vector<Frame> stack = {{start.id().value, 0}};
    ColorOf(start.id()) = kOpen;
    while (!stack.empty()) {
      const Instruction i = v_.module.instruction(InstructionId(stack.back().node));
      const InstructionId child = Child(i, stack.back().next_child++);
      if (!child.valid()) {
        ColorOf(i.id()) = kDone;
        stack.pop_back();
        continue;
      }
      if (ColorOf(child) == kOpen) {
        Report(stack, child);
        return false;
      }
      if (ColorOf(child) == kNew) {
        ColorOf(child) = kOpen;
        stack.push_back({child.value, 0});
      }
    }
    return true;
  }

  void Report(const std::vector<Frame>& stack, InstructionId again) {
    std::vector<uint32_t> cycle;
    for (size_t n = stack.size(); n-- > 0;) {
      cycle.push_back(stack[n].node);
      if (stack[n].node == again.value) break;
    }
    std::reverse(cycle.begin(), cycle.end());
    const auto name_of = [this](uint32_t id) { return v_.module.instruction(InstructionId(id)).name(); };
    v_.Report(v_.module.instruction(again), DiagnosticKind::kCyclicOperands,
              StrCat("depends on itself: ", CycleToString(cycle, name_of)));
  }

  VerifierContext& v_;
  Computation computation_;
  uint32_t base_ = 0;
  std::vector<uint8_t> colors_;
};

// Depth-first search of the call graph.
class CallCycles {
 public:
  explicit CallCycles(VerifierContext& v) : v_(v) {
    const size_t bound = v.module.computation_id_bound();
    // The edges are grouped by ascending caller.
    first_edge_.assign(bound + 1, 0);
    for (const CallEdge& e : v.call_edges) ++first_edge_[v.module.record(e.caller).parent.value + 1];
    for (size_t c = 0; c < bound; ++c) first_edge_[c + 1] += first_edge_[c];
  }

  bool Run() {
    const size_t bound = v_.module.computation_id_bound();
    CallWalk walk(bound, [this](ComputationId id, uint32_t k) {
      const uint32_t edge = first_edge_[id.value] + k;
      return edge < first_edge_[id.value + 1] ? v_.call_edges[edge].callee : ComputationId();
    });
    const auto report = [&](ComputationId callee) {
      std::vector<uint32_t> cycle;
      for (size_t n = walk.path().size(); n-- > 0;) {
        cycle.push_back(walk.path()[n].id.value);
        if (walk.path()[n].id == callee) break;
      }
      const CallEdge& edge = v_.call_edges[first_edge_[cycle.front()] + walk.path().back().next - 1];
      std::reverse(cycle.begin(), cycle.end());
      const auto name_of = [this](uint32_t id) { return v_.module.computation(ComputationId(id)).name(); };
      v_.Report(v_.module.instruction(edge.caller), DiagnosticKind::kCyclicCalls,
                StrCat("makes a computation recursive: ", CycleToString(cycle, name_of)));
      return false;
    };
    for (uint32_t c = 0; c < bound; ++c) {
      if (!walk.From(
              ComputationId(c), [](ComputationId) {}, report))
        return false;
    }
    return true;
  }

 private:
  VerifierContext& v_;
  std::vector<uint32_t> first_edge_;  // by ComputationId
};

// Checks that the instructions of a scheduled computation come after their operands and control predecessors.
void CheckSchedule(VerifierContext& v, Computation c) {
  for (Instruction i : c.instructions()) {
    const uint32_t at = v.position(i.id());
    for (Instruction operand : i.operands()) {
      if (v.position(operand.id()) < at) continue;
      v.Report(i, DiagnosticKind::kSchedule, StrCat("is scheduled before its operand `", operand.name(), "`"));
    }
    for (int64_t id : i.list_attr(Attr::kControlPredecessors)) {
      const InstructionId before(static_cast<uint32_t>(id));
      if (v.position(before) < at) continue;
      v.Report(i, DiagnosticKind::kSchedule,
               StrCat("is scheduled before its control predecessor `", v.module.instruction(before).name(), "`"));
    }
  }
}

}  // namespace

bool CheckOrder(VerifierContext& v) {
  bool safe = true;
  for (uint32_t id = 0; id < v.module.computation_id_bound(); ++id) {
    const Computation c = v.module.computation(ComputationId(id));
    if (c.record().erased || !v.callers(c).has_forward_operands) continue;
    if (!OperandCycles(v, c).Run()) {
      safe = false;
    } else if (v.module.header().is_scheduled && !v.IsFused(c)) {
      // A fusion runs as a unit, so its internal order is irrelevant.
      CheckSchedule(v, c);
    }
  }
  return CallCycles(v).Run() && safe;
}

}  // namespace hlokit::verify_internal
