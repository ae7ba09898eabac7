// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/calls/inline.h"

#include <vector>

#include "ir/graph/traversal.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/rewrite/clone.h"
#include "passes/simplify/dead_code.h"

namespace hlokit {
namespace {

bool MayInline(Instruction call, Computation callee) {
  return !call.bool_attr(Attr::kIsComposite) && callee.execution_thread() == call.parent().execution_thread() &&
         !call.has(Attr::kControlPredecessors) && call.control_successors().empty() &&
         !call.has(Attr::kBackendConfig) && call.operand_count() == callee.parameter_count() &&
         callee.root().shape() == call.shape();
}

// Returns how many instructions the module gains if all calls of `callee` are inlined, before simplification.
int64_t AddedByInlining(Computation callee, const CallGraph& graph) {
  const int64_t calls = static_cast<int64_t>(graph.caller_callsites(callee).size());
  const int64_t body = callee.instruction_count() - callee.parameter_count();
  return calls * (body - 1) - callee.instruction_count();
}

}  // namespace

absl::StatusOr<bool> Inline::Run(Module& module) {
  const int64_t before = static_cast<int64_t>(module.instruction_count());
  int64_t budget = before * options().Int("max-growth") + 1000;
  const bool only_single = options().Bool("single-call-only");
  const int64_t max_added = options().Int("max-added");
  const CallGraph graph(module);
  const ComputationRoles roles = RolesOf(module);
  bool changed = false;
  for (ComputationId id : graph.PostOrder()) {
    if (roles.fusion[id.value] || roles.async[id.value]) continue;
    std::vector<InstructionId> calls;
    for (const CallSite& site : graph.callsites(module.computation(id))) {
      if (module.record(site.caller).opcode == Opcode::kCall) calls.push_back(site.caller);
    }
    for (InstructionId at : calls) {
      const Instruction call = module.instruction(at);
      const Computation callee = call.computation_attr(Attr::kToApply);
      const bool single = graph.caller_callsites(callee).size() == 1;
      if (!MayInline(call, callee) || (only_single && !single) || (!single && !IsCloneable(callee))) continue;
      if (!single && AddedByInlining(callee, graph) > max_added) continue;
      if (budget < callee.instruction_count()) continue;
      budget -= callee.instruction_count();
      std::vector<InstructionId> arguments;
      for (Instruction operand : call.operands()) arguments.push_back(operand.id());
      const InstructionId root = CloneBody(module, callee, arguments, at);
      Replace(module, at, root);
      if (single) module.EraseComputation(callee.id());
      Count("calls inlined");
      changed = true;
    }
  }
  if (changed) EraseUnreachable(module);
  return changed;
}

absl::StatusOr<bool> FlattenCallGraph::Run(Module& module) {
  int64_t budget = static_cast<int64_t>(module.instruction_count()) * options().Int("max-growth") + 1000;
  bool changed = false;
  // Callers first: calls in a cloned body are visited in turn.
  std::vector<uint8_t> owned(module.computation_id_bound(), 0);
  std::vector<ComputationId> open = {module.entry().id()};
  while (!open.empty()) {
    const ComputationId caller = open.back();
    open.pop_back();
    std::vector<InstructionId> sites;
    for (Instruction i : module.computation(caller).instructions()) {
      if (CallsSequentialCode(i.opcode())) {
        sites.push_back(i.id());
      }
    }
    const auto own = [&](ComputationId callee) {
      owned.resize(module.computation_id_bound(), 0);
      const Computation c = module.computation(callee);
      if (owned[callee.value]++ == 0 || budget < c.instruction_count() || !IsCloneable(c)) {
        owned[callee.value] = 1;
        open.push_back(callee);
        return callee;
      }
      owned[callee.value] = 1;
      budget -= c.instruction_count();
      const ComputationId copy = CloneWithFusions(module, callee);
      owned.resize(module.computation_id_bound(), 0);
      owned[copy.value] = 1;
      open.push_back(copy);
      Count("computations copied");
      changed = true;
      return copy;
    };
    for (InstructionId site : sites) module.ReplaceCallees(site, own);
  }
  return changed;
}

}  // namespace hlokit
