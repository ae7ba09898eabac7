// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/calls/conditional_forms.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/builder/builder.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/loop.h"
#include "passes/annotations/annotations.h"
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

}  // namespace

absl::StatusOr<bool> ConditionalCanonicalizer::Run(Module& module) {
  std::vector<InstructionId> conditionals;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (ReturnsArray(i) && !i.has(Attr::kSharding)) conditionals.push_back(i.id());
    }
  }
  if (conditionals.empty()) return false;
  std::vector<uint32_t> callers = CountCallers(module);
  int64_t changed = 0;
  for (InstructionId id : conditionals) {
    const std::vector<Computation> branches = module.instruction(id).called_computations();
    const bool separable = std::all_of(branches.begin(), branches.end(), [&](Computation branch) {
      return (callers[branch.id().value] == 1 || IsCloneable(branch)) &&
             branch.root().shape() == module.instruction(id).shape();
    });
    if (!separable || branches.empty()) continue;
    module.ReplaceCallees(id, [&](ComputationId branch) {
      // Other callers keep the result as it is.
      const ComputationId own = callers[branch.value] == 1 ? branch : CloneWithFusions(module, branch);
      if (own != branch) --callers[branch.value];
      Builder builder(&module, own);
      const InstructionId root = module.computation(own).root().id();
      const AnnotationScope scope(&builder, {root});
      builder.SetRoot(builder.MakeTuple({root}));
      return own;
    });
    callers.resize(module.computation_id_bound(), 1);
    const Shape shape = module.instruction(id).shape();
    module.SetShape(id, module.context().shapes.Tuple({shape}));
    Builder builder(&module, module.record(id).parent);
    builder.SetInsertionPointAfter(id);
    const AnnotationScope scope(&builder, {id});
    module.ReplaceAllUses(id, builder.MakeElement(id, 0));
    ++changed;
  }
  if (changed == 0) return false;
  Count("conditionals given tuples as results", changed);
  return true;
}

absl::StatusOr<bool> ConditionalToSelect::Run(Module& module) {
  const CallGraph graph(module);
  const std::vector<ComputationId> order(graph.PostOrder().begin(), graph.PostOrder().end());
  const std::vector<uint8_t> applied = AppliedToElements(module, graph);
  const SideEffects effects(module);
  int64_t changed = 0;
  // Callees first, so that branches have no conditionals left.
  for (ComputationId c : order) {
    if (applied[c.value] == 0) continue;
    std::vector<InstructionId> conditionals;
    for (Instruction i : module.computation(c).instructions()) {
      if (ReturnsArray(i) && !HasControlEdges(i)) conditionals.push_back(i.id());
    }
    for (InstructionId id : conditionals) {
      const Instruction conditional = module.instruction(id);
      const std::vector<Computation> branches = conditional.called_computations();
      if (branches.size() != 2 || conditional.operand(0).shape().element_type() != ElementType::kPred) continue;
      int64_t size = 0;
      bool selectable = true;
      for (Computation branch : branches) {
        size += branch.instruction_count();
        selectable &= IsCloneable(branch) && !effects.Of(branch) && branch.root().shape() == conditional.shape();
      }
      if (!selectable || size > kMaxSelectedInstructions) continue;
      const InstructionId arguments[] = {conditional.operand(1).id(), conditional.operand(2).id()};
      const InstructionId predicate = conditional.operand(0).id();
      const InstructionId on_true = CloneBody(module, branches[0], {arguments[0]}, id);
      const InstructionId on_false = CloneBody(module, branches[1], {arguments[1]}, id);
      Builder builder(&module, id);
      const AnnotationScope scope(&builder, {id});
      Replace(module, id,
              builder.Make(Opcode::kSelect, module.instruction(id).shape(), {predicate, on_true, on_false}));
      ++changed;
    }
  }
  if (changed == 0) return false;
  Count("conditionals made selects", changed);
  EraseUnreachable(module);
  return true;
}

}  // namespace hlokit
