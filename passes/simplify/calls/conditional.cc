// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/calls/conditional.h"

#include <algorithm>
#include <vector>

#include "ir/ops/opcode_set.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/clone.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/dead_code.h"

namespace hlokit {
namespace {

// Returns the index of the taken branch if it is known. Branches are in the order of called_computations().
std::optional<size_t> KnownBranch(Instruction conditional, const std::vector<Computation>& branches,
                                  const std::vector<uint32_t>& same) {
  const auto selector = SplatOf(conditional.operand(0));
  if (selector && selector->type == ElementType::kPred) return selector->IsOne() ? 0 : 1;
  if (selector) {
    const auto index = selector->AsInt();
    if (!index) return std::nullopt;
    const bool in_range = *index >= 0 && *index < static_cast<int64_t>(branches.size());
    return in_range ? static_cast<size_t>(*index) : branches.size() - 1;
  }
  for (size_t k = 1; k < branches.size(); ++k) {
    const bool equal = same[branches[k].id().value] == same[branches[0].id().value] &&
                       conditional.operand(static_cast<int64_t>(k) + 1) == conditional.operand(1);
    if (!equal) return std::nullopt;
  }
  return branches.empty() ? std::nullopt : std::optional<size_t>(0);
}

}  // namespace

absl::StatusOr<bool> ConditionalSimplifier::Run(Module& module) {
  std::vector<InstructionId> conditionals;
  const CallGraph graph(module);
  for (ComputationId c : graph.PostOrder()) {
    for (Instruction i : module.computation(c).instructions()) {
      if (i.opcode() == Opcode::kConditional) conditionals.push_back(i.id());
    }
  }
  if (conditionals.empty()) return false;
  const std::vector<uint32_t> same = EqualComputations(module);
  bool changed = false;
  for (InstructionId id : conditionals) {
    const Instruction conditional = module.instruction(id);
    if (conditional.has_control_edges()) continue;
    const std::vector<Computation> branches = conditional.called_computations();
    const std::optional<size_t> branch = KnownBranch(conditional, branches, same);
    if (!branch || *branch >= branches.size()) continue;
    const Computation taken = branches[*branch];
    if ((graph.caller_callsites(taken).size() != 1 && !IsCloneable(taken)) ||
        taken.root().shape() != conditional.shape()) {
      continue;
    }
    const InstructionId argument = conditional.operand(static_cast<int64_t>(*branch) + 1).id();
    const InstructionId result = CloneBody(module, taken, {argument}, id);
    MergeMetadata(module, conditional.operand(0).id(), result);
    Replace(module, id, result);
    Count("conditionals with a known branch removed");
    changed = true;
  }
  if (changed) EraseUnreachable(module);
  return changed;
}

absl::StatusOr<bool> DeadParameters::Run(Module& module) {
  const CallGraph graph(module);
  bool changed = false;
  const absl::Span<const ComputationId> order = graph.PostOrder();
  for (ComputationId id : order) {
    const Computation c = module.computation(id);
    if (c.is_entry()) continue;
    const absl::Span<const CallSite> sites = graph.caller_callsites(c);
    const bool by_calls = !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallSite& site) {
      const Opcode opcode = module.record(site.caller).opcode;
      const Instruction caller = module.instruction(site.caller);
      return OpcodeSet{Opcode::kCall, Opcode::kFusion}.Contains(opcode) &&
             !caller.has(Attr::kOutputToOperandAliasing) && !caller.bool_attr(Attr::kIsComposite) &&
             caller.operand_count() == c.parameter_count();
    });
    if (!by_calls) continue;
    for (int64_t k = c.parameter_count(); k-- > 0;) {
      const Instruction parameter = c.parameter(k);
      if (parameter.has_users() || parameter.is_root() || !parameter.control_successors().empty()) continue;
      for (const CallSite& site : sites) {
        std::vector<InstructionId> operands;
        for (Instruction operand : module.instruction(site.caller).operands()) operands.push_back(operand.id());
        operands.erase(operands.begin() + k);
        module.SetOperands(site.caller, operands);
      }
      module.RemoveParameter(parameter.id());
      Count("parameters removed");
      changed = true;
    }
  }
  return changed;
}

HLOKIT_PASS(ConditionalSimplifier) {
  return {.name = "conditional-simplifier",
          .category = "simplify",
          .summary = "replace conditionals with a known branch",
          .doc =
              "Replaces a conditional by the taken branch if the predicate is a constant, or if all branches "
              "and arguments are equal.",
          .example = R"(yes {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x), metadata={op_name="f/neg"}
}
no {
  x = f32[4] parameter(0)
  ROOT n = f32[4] abs(x)
}
ENTRY e {
  p = f32[4] parameter(0)
  t = pred[] constant(true)
  ROOT r = f32[4] conditional(t, p, p), true_computation=yes, false_computation=no, metadata={op_name="main/cond"}
})",
          .create = MakePass<ConditionalSimplifier>};
}

HLOKIT_PASS(DeadParameterRemoval) {
  return {.name = "dead-parameter-removal",
          .category = "simplify",
          .summary = "remove parameters that computations do not use",
          .doc =
              "Removes them from called and fused computations, with the operands of their callers. The "
              "entry keeps its parameters.",
          .example = R"(f {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT n = f32[4] negate(y)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  ROOT a = f32[4] call(p, q), to_apply=f
})",
          .create = MakePass<DeadParameters>};
}

}  // namespace hlokit
