// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/calls/inline.h"

#include <string_view>
#include <vector>

#include "ir/graph/traversal.h"
#include "ir/text/frontend_attributes.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/clone.h"
#include "passes/simplify/dead_code.h"

namespace hlokit {
namespace {

// Returns true for calls of which the program says that they stay calls. Shardy says it of the bodies of its manual
// computations, until the program is partitioned.
bool IsKept(Instruction call, Computation callee) {
  const StringId value = FindFrontendAttribute(call, "inlineable");
  return value.valid() && call.module().context().str(value) == "false" &&
         callee.name().find("sdy.manual_computation_body") == std::string_view::npos;
}

bool MayInline(Instruction call, Computation callee) {
  return !IsKept(call, callee) && !call.bool_attr(Attr::kIsComposite) &&
         callee.execution_thread() == call.parent().execution_thread() && !call.has_control_edges() &&
         !call.has(Attr::kBackendConfig) && call.operand_count() == callee.parameter_count() &&
         callee.root().shape() == call.shape();
}

// Returns how many instructions the module gains if all calls of `callee` are inlined, before simplification.
int64_t AddedByInlining(Computation callee, const CallGraph& graph) {
  const int64_t calls = static_cast<int64_t>(graph.caller_callsites(callee).size());
  const int64_t body = callee.instruction_count() - callee.parameter_count();
  return calls * (body - 1) - callee.instruction_count();
}

// Replaces a call by the body of its callee.
void InlineCall(Module& module, Instruction call, Computation callee) {
  std::vector<InstructionId> arguments;
  for (Instruction operand : call.operands()) arguments.push_back(operand.id());
  const InstructionId root = CloneBody(module, callee, arguments, call.id());
  Replace(module, call.id(), root);
}

// Which bodies can be cloned. Each is read once, however many calls it has.
class CloneableBodies {
 public:
  bool Contains(Computation body) {
    const size_t id = body.id().value;
    if (id >= known_.size()) known_.resize(2 * id + 1, Known::kNot);
    if (known_[id] == Known::kNot) known_[id] = IsCloneable(body) ? Known::kCloneable : Known::kOnce;
    return known_[id] == Known::kCloneable;
  }

 private:
  enum class Known : uint8_t { kNot, kCloneable, kOnce };
  std::vector<Known> known_;  // by id
};

// Inlines callees that have one caller, callers first: each body is cloned once, to its last place.
class SingleCallInliner {
 public:
  explicit SingleCallInliner(Module* module) : module_(*module), graph_(*module), roles_(RolesOf(*module)) {}

  // Returns the number of calls inlined.
  int64_t Run() {
    std::vector<uint8_t> inlined(module_.computation_id_bound(), 0);
    const absl::Span<const ComputationId> order = graph_.PostOrder();
    int64_t count = 0;
    for (size_t k = order.size(); k-- > 0;) {
      const ComputationId id = order[k];
      if (inlined[id.value] || roles_.fusion[id.value] || roles_.async[id.value]) continue;
      std::vector<InstructionId> calls;
      for (const CallSite& site : graph_.callsites(module_.computation(id))) calls.push_back(site.caller);
      while (!calls.empty()) {
        const Instruction call = module_.instruction(calls.back());
        calls.pop_back();
        if (call.opcode() != Opcode::kCall) continue;
        const Computation callee = call.computation_attr(Attr::kToApply);
        if (graph_.caller_callsites(callee).size() != 1 || !MayInline(call, callee)) continue;
        const ComputationId callee_id = callee.id();
        const InstructionId before = call.record().previous, after = call.record().next;
        InlineCall(module_, call, callee);
        module_.EraseComputation(callee_id);
        inlined[callee_id.value] = 1;
        ++count;
        InstructionId i = before.valid() ? module_.record(before).next : module_.record(id).first;
        for (; i != after; i = module_.record(i).next) calls.push_back(i);
      }
    }
    return count;
  }

 private:
  Module& module_;
  const CallGraph graph_;
  const ComputationRoles roles_;
};

}  // namespace

absl::StatusOr<bool> Inline::Run(Module& module) {
  const int64_t before = static_cast<int64_t>(module.instruction_count());
  int64_t budget = before * options().Int("max-growth") + 1000;
  const int64_t max_added = options().Int("max-added");
  const int64_t singles = SingleCallInliner(&module).Run();
  if (singles > 0) Count("calls inlined", singles);
  bool changed = singles > 0;
  if (options().Bool("single-call-only")) return changed;
  const CallGraph graph(module);
  const ComputationRoles roles = RolesOf(module);
  CloneableBodies cloneable;  // callees first, so a body is final when it is asked about
  for (ComputationId id : graph.PostOrder()) {
    if (roles.fusion[id.value] || roles.async[id.value]) continue;
    std::vector<InstructionId> calls;
    for (const CallSite& site : graph.callsites(module.computation(id))) {
      if (module.record(site.caller).opcode == Opcode::kCall) calls.push_back(site.caller);
    }
    for (InstructionId at : calls) {
      const Instruction call = module.instruction(at);
      const Computation callee = call.computation_attr(Attr::kToApply);
      if (!MayInline(call, callee) || AddedByInlining(callee, graph) > max_added) continue;
      if (budget < callee.instruction_count() || !cloneable.Contains(callee)) continue;
      budget -= callee.instruction_count();
      InlineCall(module, call, callee);
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
  CloneableBodies cloneable;
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
      if (owned[callee.value] == 0) {
        owned[callee.value] = 1;
        open.push_back(callee);
        return callee;
      }
      // Its calls are those of another caller: they are visited once.
      if (budget < c.instruction_count() || !cloneable.Contains(c)) return callee;
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

namespace {

OptionInfo MaxGrowthOption() {
  return {"max-growth", OptionInfo::Type::kInt, "8", "how many times its size the module may grow by"};
}

}  // namespace

HLOKIT_PASS(FlattenCallGraph) {
  return {.name = "flatten-call-graph",
          .category = "simplify",
          .summary = "clone computations so that each call, while and conditional has separate ones",
          .doc =
              "Clones computations with several sequential callers, except those with channels and "
              "asynchronous operations.",
          .example = R"(f {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  m = f32[4] multiply(x, y), metadata={op_name="f/mul"}
  ROOT s = f32[4] add(m, x), metadata={op_name="f/add"}
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  a = f32[4] call(p, q), to_apply=f
  ROOT b = f32[4] call(a, q), to_apply=f
})",
          .options = {MaxGrowthOption()},
          .create = MakePass<FlattenCallGraph>};
}

HLOKIT_PASS(Inline) {
  return {.name = "inline",
          .category = "simplify",
          .summary = "replace calls by the called computations",
          .doc =
              "Callees first, so that none is left. Calls stay if they are composite, have control edges or a "
              "backend_config, or if a callee with channels has several callers.",
          .options = {MaxGrowthOption(),
                      {"max-added", OptionInfo::Type::kInt, "1000000",
                       "limit on the instructions that inlining a computation with several callers adds"},
                      {"single-call-only", OptionInfo::Type::kBool, "false", "only computations that are called once"}},
          .create = MakePass<Inline>};
}

}  // namespace hlokit
