// SPDX-License-Identifier: Apache-2.0
#include "passes/query/flow.h"

#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_set.h"
#include "ir/ops/opcode.h"
#include "ir/ops/opcode_set.h"

namespace hlokit::query {
namespace {

// Returns true for calls whose computations run with values of the instruction. Others apply them to elements: values
// are not followed into these functions, which many instructions share.
bool PassesValues(Opcode opcode) { return RunsCallees(opcode); }

// Returns true for calls that return a leaf of a root as the same leaf of their own.
bool ReturnsLeaves(Opcode opcode) { return HasTrait(opcode, kControlFlow); }

// Returns the number of the first leaf of element `k` of a tuple.
int64_t FirstLeafOf(Shape tuple, int64_t k) {
  int64_t first = 0;
  for (int64_t e = 0; e < k; ++e) first += tuple.element(e).leaf_count();
  return first;
}

// Calls `visit(operand number, parameter number)` for each parameter of a called computation that an operand is passed
// to. `branch`: the number of the computation among those that the instruction calls.
template <typename Visit>
void ForEachArgument(Instruction call, Computation callee, int64_t branch, Visit visit) {
  const int64_t parameters = callee.parameter_count(), operands = call.operand_count();
  const Opcode opcode = call.opcode();
  if (OpcodeSet{Opcode::kCall, Opcode::kFusion, Opcode::kAsyncStart}.Contains(opcode)) {
    for (int64_t k = 0; k < std::min(parameters, operands); ++k) visit(k, k);
  } else if (opcode == Opcode::kWhile) {
    if (operands > 0 && parameters > 0) visit(0, 0);
  } else if (opcode == Opcode::kConditional) {
    if (branch + 1 < operands && parameters > 0) visit(branch + 1, 0);
  } else {
    // Functions of elements: each parameter may get elements of each operand.
    for (int64_t k = 0; k < operands; ++k) {
      for (int64_t p = 0; p < parameters; ++p) visit(k, p);
    }
  }
}

}  // namespace

ValueFlow::ValueFlow(const Module& module) : module_(module), callers_(module.computation_id_bound()) {
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      i.ForEachCallee([&](Computation callee) {
        std::vector<InstructionId>& callers = callers_[callee.id().value];
        if (callers.empty() || callers.back() != i.id()) callers.push_back(i.id());
      });
    }
  }
}

std::vector<Instruction> ValueFlow::Next(Instruction i, FlowDirection direction, bool across_calls) const {
  std::vector<Instruction> next;
  absl::flat_hash_set<uint32_t> seen;
  const auto add = [&](Instruction n) {
    if (n.valid() && seen.insert(n.id().value).second) next.push_back(n);
  };
  const bool forward = direction == FlowDirection::kUsers;
  if (forward) {
    for (const Instruction user : i.users()) add(user);
  } else {
    for (const Instruction operand : i.operands()) add(operand);
  }
  if (!across_calls) return next;
  // Into the computations that users call, or that the instruction calls.
  const auto enter = [&](Instruction call) {
    if (!PassesValues(call.opcode())) return;
    int64_t branch = 0;
    call.ForEachCallee([&](Computation callee) {
      if (!forward) {
        add(callee.root());
      } else {
        ForEachArgument(call, callee, branch, [&](int64_t operand, int64_t parameter) {
          if (call.operand(operand) == i) add(callee.parameter(parameter));
        });
      }
      ++branch;
    });
  };
  if (forward) {
    for (const Instruction user : i.users()) enter(user);
  } else {
    enter(i);
  }
  // Out of the computation.
  const std::vector<InstructionId>& callers = callers_[i.parent().id().value];
  if (forward && i.is_root()) {
    for (InstructionId caller : callers) {
      add(module_.instruction(caller));
      // The next iteration of a loop.
      const Instruction loop = module_.instruction(caller);
      if (loop.opcode() != Opcode::kWhile) continue;
      loop.ForEachCallee([&](Computation callee) {
        if (callee.parameter_count() > 0) add(callee.parameter(0));
      });
    }
  }
  if (!forward && i.opcode() == Opcode::kParameter) {
    for (InstructionId caller : callers) {
      const Instruction call = module_.instruction(caller);
      int64_t branch = 0;
      call.ForEachCallee([&](Computation callee) {
        if (callee == i.parent()) {
          ForEachArgument(call, callee, branch, [&](int64_t operand, int64_t parameter) {
            if (parameter == i.parameter_number()) add(call.operand(operand));
          });
        }
        if (call.opcode() == Opcode::kWhile) add(call.computation_attr(Attr::kBody).root());
        ++branch;
      });
    }
  }
  return next;
}

bool ValueFlow::ForwardsLeaves(Instruction i) {
  const Opcode opcode = i.opcode();
  return OpcodeSet{Opcode::kParameter, Opcode::kTuple, Opcode::kGetTupleElement}.Contains(opcode) ||
         HasTrait(opcode, kIdentity) || ReturnsLeaves(opcode);
}

std::vector<ValueLeaf> ValueFlow::Forwarded(ValueLeaf at) const {
  std::vector<ValueLeaf> next;
  const Instruction i = at.instruction;
  // Calls `visit(callee, its number)` if the call returns leaves.
  const auto for_each_callee = [](Instruction call, auto visit) {
    if (!ReturnsLeaves(call.opcode())) return;
    int64_t branch = 0;
    call.ForEachCallee([&](Computation callee) { visit(callee, branch++); });
  };
  // The result of a loop, its operand and the results of its body are one state.
  const auto add_state = [&](Instruction loop) {
    next.push_back({loop, at.leaf});
    next.push_back({loop.operand(0), at.leaf});
    next.push_back({loop.computation_attr(Attr::kBody).root(), at.leaf});
  };
  // What the result is made of.
  if (i.opcode() == Opcode::kTuple) {
    int64_t first = 0;
    for (const Instruction operand : i.operands()) {
      const int64_t leaves = operand.shape().leaf_count();
      if (at.leaf >= first && at.leaf < first + leaves) next.push_back({operand, at.leaf - first});
      first += leaves;
    }
  } else if (i.opcode() == Opcode::kGetTupleElement) {
    next.push_back({i.operand(0), FirstLeafOf(i.operand(0).shape(), i.int_attr(Attr::kIndex)) + at.leaf});
  } else if (i.opcode() == Opcode::kWhile) {
    add_state(i);
  } else if (HasTrait(i.opcode(), kIdentity)) {
    next.push_back({i.operand(0), at.leaf});
  } else {
    for_each_callee(i, [&](Computation callee, int64_t) { next.push_back({callee.root(), at.leaf}); });
  }
  // What is made of it.
  for (const auto use : i.uses()) {
    const Instruction user = use.user;
    if (user.opcode() == Opcode::kTuple) {
      next.push_back({user, FirstLeafOf(user.shape(), use.operand_index) + at.leaf});
    } else if (user.opcode() == Opcode::kGetTupleElement) {
      const int64_t leaf = at.leaf - FirstLeafOf(i.shape(), user.int_attr(Attr::kIndex));
      if (leaf >= 0 && leaf < user.shape().leaf_count()) next.push_back({user, leaf});
    } else if (user.opcode() == Opcode::kWhile) {
      next.push_back({user, at.leaf});
    } else if (HasTrait(user.opcode(), kIdentity) && use.operand_index == 0) {
      next.push_back({user, at.leaf});
    }
    for_each_callee(user, [&](Computation callee, int64_t branch) {
      ForEachArgument(user, callee, branch, [&](int64_t operand, int64_t parameter) {
        if (operand == use.operand_index) next.push_back({callee.parameter(parameter), at.leaf});
      });
    });
  }
  // Out of the computation: to the calls, or to their arguments.
  if (!i.is_root() && i.opcode() != Opcode::kParameter) return next;
  for (const InstructionId id : callers_[i.parent().id().value]) {
    const Instruction call = module_.instruction(id);
    for_each_callee(call, [&](Computation callee, int64_t branch) {
      if (callee != i.parent()) return;
      const bool is_loop = call.opcode() == Opcode::kWhile;
      if (i.is_root() && (!is_loop || callee == call.computation_attr(Attr::kBody))) next.push_back({call, at.leaf});
      if (i.opcode() != Opcode::kParameter) return;
      if (is_loop) return add_state(call);
      ForEachArgument(call, callee, branch, [&](int64_t operand, int64_t parameter) {
        if (parameter == i.parameter_number()) next.push_back({call.operand(operand), at.leaf});
      });
    });
  }
  return next;
}

Instruction ValueFlow::FunctionCaller(Computation computation) const {
  for (const InstructionId id : callers_[computation.id().value]) {
    const Instruction caller = module_.instruction(id);
    if (!ReturnsLeaves(caller.opcode())) return caller;
  }
  return Instruction();
}

std::vector<FlowStep> ValueFlow::Reach(absl::Span<const Instruction> starts, FlowDirection direction, int64_t depth,
                                       bool across_calls) const {
  std::vector<FlowStep> reached;
  std::vector<bool> seen(module_.instruction_id_bound());
  const auto add = [&](Instruction i, int64_t distance) {
    if (seen[i.id().value]) return;
    seen[i.id().value] = true;
    reached.push_back({i, distance});
  };
  for (const Instruction start : starts) add(start, 0);
  for (size_t k = 0; k < reached.size(); ++k) {
    const FlowStep at = reached[k];
    if (depth >= 0 && at.distance >= depth) continue;
    for (const Instruction next : Next(at.instruction, direction, across_calls)) add(next, at.distance + 1);
  }
  return reached;
}

Neighborhood ValueFlow::NeighborsOf(Instruction instruction, int64_t distance) const {
  Neighborhood neighborhood;
  const auto reach = [&](FlowDirection direction, std::vector<Instruction>* out) {
    for (const FlowStep& step : Reach({&instruction, 1}, direction, distance, /*across_calls=*/false)) {
      if (step.distance > 0) out->push_back(step.instruction);
    }
  };
  reach(FlowDirection::kOperands, &neighborhood.before);
  std::reverse(neighborhood.before.begin(), neighborhood.before.end());
  reach(FlowDirection::kUsers, &neighborhood.after);
  return neighborhood;
}

std::vector<Instruction> ValueFlow::Path(Instruction from, Instruction to) const {
  std::vector<InstructionId> before(module_.instruction_id_bound());
  std::deque<Instruction> open = {from};
  before[from.id().value] = from.id();
  while (!open.empty() && !before[to.id().value].valid()) {
    const Instruction at = open.front();
    open.pop_front();
    for (const Instruction next : Next(at, FlowDirection::kUsers, /*across_calls=*/true)) {
      if (before[next.id().value].valid()) continue;
      before[next.id().value] = at.id();
      open.push_back(next);
    }
  }
  std::vector<Instruction> path;
  if (!before[to.id().value].valid()) return path;
  for (Instruction at = to; at != from; at = module_.instruction(before[at.id().value])) path.push_back(at);
  path.push_back(from);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<Instruction> ValueFlow::AllOnPaths(Instruction from, Instruction to) const {
  std::vector<bool> after(module_.instruction_id_bound()), before(module_.instruction_id_bound());
  for (const FlowStep& step : Reach({&from, 1}, FlowDirection::kUsers, -1, true))
    after[step.instruction.id().value] = true;
  for (const FlowStep& step : Reach({&to, 1}, FlowDirection::kOperands, -1, true)) {
    before[step.instruction.id().value] = true;
  }
  std::vector<Instruction> all;
  if (!after[to.id().value]) return all;
  for (const Computation c : module_.computations()) {
    for (const Instruction i : c.instructions()) {
      if (after[i.id().value] && before[i.id().value]) all.push_back(i);
    }
  }
  return all;
}

}  // namespace hlokit::query
