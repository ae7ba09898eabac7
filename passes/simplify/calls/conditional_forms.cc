// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/calls/conditional_forms.h"

#include <cstdint>
#include <vector>

#include "ir/builder/builder.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/loop.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/clone.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/simplify/dead_code.h"

namespace hlokit {
namespace {

// Branches with more instructions stay conditional: both would execute, and nested ones multiply.
constexpr int64_t kMaxSelectedInstructions = 1000;

bool ReturnsArray(Instruction conditional) {
  return conditional.opcode() == Opcode::kConditional && conditional.shape().IsArray();
}

bool TakesArrays(Instruction conditional) {
  for (int64_t k = 1; k < conditional.operand_count(); ++k) {
    if (conditional.operand(k).shape().IsArray()) return true;
  }
  return false;
}

// Returns true if the branches can be changed, or cloned and changed, for this conditional alone.
bool MayChangeBranches(Instruction conditional, const std::vector<uint32_t>& callers) {
  int64_t k = 0;
  for (Computation branch : conditional.called_computations()) {
    const Instruction parameter = branch.parameter(0), argument = conditional.operand(++k);
    if (callers[branch.id().value] != 1 && !IsCloneable(branch)) return false;
    if (branch.root().shape() != conditional.shape() || parameter.shape() != argument.shape()) return false;
    if (parameter.has(Attr::kSharding)) return false;
  }
  return k > 0;
}

// Makes an array a tuple of it, whose users read its element.
void WrapInTuple(Module& module, InstructionId id) {
  module.SetShape(id, module.context().shapes.Tuple({module.instruction(id).shape()}));
  Builder builder(&module, module.record(id).parent);
  builder.SetInsertionPointAfter(id);
  const AnnotationScope scope(&builder, {id});
  module.ReplaceAllUses(id, builder.MakeElement(id, 0));
}

// Returns by computation whether it is applied to elements, by maps, reductions, sorts and the like, or called by such
// a computation.
std::vector<uint8_t> AppliedToElements(const Module& module, const CallGraph& graph) {
  std::vector<uint8_t> applied(module.computation_id_bound(), 0);
  const absl::Span<const ComputationId> post_order = graph.PostOrder();
  for (size_t k = post_order.size(); k-- > 0;) {
    const Computation caller = module.computation(post_order[k]);
    for (const CallSite& site : graph.callsites(caller)) {
      if (site.context == CallContext::kEmbedded || applied[caller.id().value] != 0) applied[site.callee.value] = 1;
    }
  }
  return applied;
}

// Returns by computation whether it or one that it calls contains a loop.
std::vector<uint8_t> ReachLoops(const Module& module, const CallGraph& graph) {
  std::vector<uint8_t> reach(module.computation_id_bound(), 0);
  for (ComputationId c : graph.PostOrder()) {
    for (const CallSite& site : graph.callsites(module.computation(c))) {
      reach[c.value] |= reach[site.callee.value];
      if (module.record(site.caller).opcode == Opcode::kWhile) reach[c.value] = 1;
    }
  }
  return reach;
}

}  // namespace

absl::StatusOr<bool> ConditionalCanonicalizer::Run(Module& module) {
  std::vector<InstructionId> conditionals;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() == Opcode::kConditional && !i.has(Attr::kSharding)) conditionals.push_back(i.id());
    }
  }
  std::vector<uint32_t> callers = CountCallers(module);
  int64_t results = 0, arguments = 0;
  for (InstructionId id : conditionals) {
    const bool wraps_result = ReturnsArray(module.instruction(id));
    const bool wraps_arguments = TakesArrays(module.instruction(id));
    if ((!wraps_result && !wraps_arguments) || !MayChangeBranches(module.instruction(id), callers)) continue;
    module.ReplaceCallees(id, [&](ComputationId branch) {
      // Other callers keep arguments and result as they are.
      const ComputationId own = callers[branch.value] == 1 ? branch : CloneWithFusions(module, branch);
      if (own != branch) --callers[branch.value];
      const Instruction parameter = module.computation(own).parameter(0);
      if (parameter.shape().IsArray()) WrapInTuple(module, parameter.id());
      const InstructionId root = module.computation(own).root().id();
      if (wraps_result) {
        Builder builder(&module, own);
        const AnnotationScope scope(&builder, {root});
        builder.SetRoot(builder.MakeTuple({root}));
      }
      return own;
    });
    callers.resize(module.computation_id_bound(), 1);
    for (int64_t k = 1; k < module.instruction(id).operand_count(); ++k) {
      const Instruction argument = module.instruction(id).operand(k);
      if (!argument.shape().IsArray()) continue;
      Builder builder(&module, id);
      const AnnotationScope scope(&builder, {id});
      module.ReplaceOperand(id, k, builder.MakeTuple({argument.id()}));
    }
    if (wraps_result) WrapInTuple(module, id);
    results += wraps_result ? 1 : 0;
    arguments += wraps_arguments ? 1 : 0;
  }
  if (results != 0) Count("conditionals given tuples as results", results);
  if (arguments != 0) Count("conditionals given tuples as arguments", arguments);
  return results + arguments != 0;
}

absl::StatusOr<bool> ConditionalToSelect::Run(Module& module) {
  const CallGraph graph(module);
  const std::vector<ComputationId> order(graph.PostOrder().begin(), graph.PostOrder().end());
  const std::vector<uint8_t> applied = AppliedToElements(module, graph);
  const std::vector<uint8_t> loops = ReachLoops(module, graph);
  const SideEffects effects(module);
  int64_t changed = 0;
  // Callees first, so that branches have no conditionals left.
  for (ComputationId c : order) {
    if (applied[c.value] == 0) continue;
    std::vector<InstructionId> conditionals;
    for (Instruction i : module.computation(c).instructions()) {
      if (ReturnsArray(i) && !i.has_control_edges()) conditionals.push_back(i.id());
    }
    for (InstructionId id : conditionals) {
      const Instruction conditional = module.instruction(id);
      const std::vector<Computation> branches = conditional.called_computations();
      if (branches.size() != 2) continue;
      int64_t size = 0;
      bool selectable = true;
      for (Computation branch : branches) {
        size += branch.instruction_count();
        // A loop may not end for the elements of the other branch.
        selectable &= IsCloneable(branch) && !effects.Of(branch) && loops[branch.id().value] == 0 &&
                      branch.root().shape() == conditional.shape();
      }
      if (!selectable || size > kMaxSelectedInstructions) continue;
      const InstructionId arguments[] = {conditional.operand(1).id(), conditional.operand(2).id()};
      const InstructionId which = conditional.operand(0).id();
      // The first branch is that of true, or of the index 0.
      const bool by_index = conditional.operand(0).shape().element_type() != ElementType::kPred;
      const InstructionId first = CloneBody(module, branches[0], {arguments[0]}, id);
      const InstructionId second = CloneBody(module, branches[1], {arguments[1]}, id);
      Builder builder(&module, id);
      const AnnotationScope scope(&builder, {id});
      const InstructionId predicate = builder.MakeConvert(which, ElementType::kPred);
      Replace(module, id,
              builder.Make(Opcode::kSelect, module.instruction(id).shape(),
                           {predicate, by_index ? second : first, by_index ? first : second}));
      ++changed;
    }
  }
  if (changed == 0) return false;
  Count("conditionals made selects", changed);
  EraseUnreachable(module);
  return true;
}

HLOKIT_PASS(ConditionalCanonicalizer) {
  return {.name = "conditional-canonicalizer",
          .category = "simplify",
          .summary = "give conditionals tuples as arguments and results",
          .doc =
              "An array that a conditional returns, or gives to a branch, becomes a tuple of it, of which "
              "users read the element. Branches with other callers are cloned; XLA's does not clone those "
              "of which all callers are conditionals.",
          .example = R"(up {
  x = f32[2] parameter(0)
  ROOT y = f32[2] exponential(x), metadata={op_name="f/up"}
}
down {
  x = f32[2] parameter(0)
  ROOT y = f32[2] negate(x), metadata={op_name="f/down"}
}
ENTRY e {
  c = pred[] parameter(0)
  p = f32[2] parameter(1)
  w = f32[2] conditional(c, p, p), true_computation=up, false_computation=down, metadata={op_name="f/cond"}
  ROOT r = f32[2] subtract(w, p)
})",
          .create = MakePass<ConditionalCanonicalizer>};
}

HLOKIT_PASS(ConditionalToSelect) {
  return {.name = "conditional-to-select",
          .category = "simplify",
          .summary = "replace conditionals in maps and reducers by selects",
          .doc =
              "Both branches are computed, and a select takes one of the results. As XLA's, only in "
              "computations that are applied to elements, and in those that they call, for two branches "
              "without side effects and loops that return an array. XLA's leaves out computations that are "
              "also called otherwise, and takes loops and fusions too; here the branches may have 1000 "
              "instructions.",
          .example = R"(inner_true {
  x = f32[] parameter(0)
  ROOT y = f32[] exponential(x), metadata={op_name="f/exp"}
}
inner_false {
  x = f32[] parameter(0)
  ROOT y = f32[] sine(x), metadata={op_name="f/sin"}
}
outer_true {
  x = f32[] parameter(0)
  one = f32[] constant(1)
  c = pred[] compare(x, one), direction=GT
  ROOT y = f32[] conditional(c, x, x), true_computation=inner_true, false_computation=inner_false, metadata={op_name="f/inner"}
}
outer_false {
  x = f32[] parameter(0)
  ROOT y = f32[] negate(x), metadata={op_name="f/neg"}
}
each {
  x = f32[] parameter(0)
  zero = f32[] constant(0)
  c = pred[] compare(x, zero), direction=GT
  ROOT y = f32[] conditional(c, x, x), true_computation=outer_true, false_computation=outer_false, metadata={op_name="f/outer"}
}
ENTRY e {
  p = f32[4] parameter(0)
  ROOT m = f32[4] map(p), dimensions={0}, to_apply=each, metadata={op_name="f/map"}
})",
          .create = MakePass<ConditionalToSelect>};
}

}  // namespace hlokit
