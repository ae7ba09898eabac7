// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/loops/while_simplifier.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/builder/builder.h"
#include "ir/graph/side_effects.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/loop.h"
#include "passes/analysis/trip_count.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/change_loop.h"
#include "passes/rewrite/clone.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/dead_code.h"

namespace hlokit {
namespace {

// Returns the trip count if it is known to be zero or one.
std::optional<int64_t> TripCountUpToOne(Instruction loop) {
  const auto condition = SplatOf(loop.computation_attr(Attr::kCondition).root());
  if (condition && condition->IsZero()) return 0;
  const std::optional<CountedLoop> counted = CountLoop(loop);
  return counted && counted->trip_count <= 1 ? std::optional(counted->trip_count) : std::nullopt;
}

// Adds the metadata of the loop counter to `result`, which replaces a loop with a known trip count: the condition, the
// state elements it reads, their initial values and, if the loop ran, their updates in the body.
void CarryCount(Module& module, Instruction loop, bool ran, InstructionId result) {
  const Computation condition = loop.computation_attr(Attr::kCondition), body = loop.computation_attr(Attr::kBody);
  MergeMetadata(module, loop.id(), result);  // the loop's name comes first
  MergeMetadataOfComputations(module, {condition}, result);
  std::vector<InstructionId> open;
  for (const auto& use : condition.parameter(0).uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement) continue;
    const int64_t index = use.user.int_attr(Attr::kIndex);
    const Instruction root = body.root(), init = loop.operand(0);
    if (ran && root.opcode() == Opcode::kTuple) open.push_back(root.operand(index).id());
    if (init.opcode() == Opcode::kTuple && init.operand(index).operand_count() <= 1) {
      open.push_back(init.operand(index).id());
    }
  }
  absl::flat_hash_set<uint32_t> seen;
  while (!open.empty()) {
    const Instruction i = module.instruction(open.back());
    open.pop_back();
    if (i.opcode() == Opcode::kParameter || !seen.insert(i.id().value).second) continue;
    MergeMetadata(module, i.id(), result);
    for (Instruction operand : i.operands()) {
      // Follow counters through unary operations and through the increment.
      if (i.operand_count() == 1 || i.parent() == body) open.push_back(operand.id());
    }
  }
}

// Returns the state elements that results, the condition or side effects need in any iteration.
std::vector<uint8_t> NeededElements(const CanonicalLoop& plain, const ConservativeSideEffects& effects) {
  const Module& module = plain.loop.module();
  std::vector<uint8_t> needed(static_cast<size_t>(plain.size), 0);
  std::vector<int64_t> open;
  const auto need = [&](int64_t index) {
    if (needed[static_cast<size_t>(index)]++ == 0) open.push_back(index);
    needed[static_cast<size_t>(index)] = 1;
  };
  bool whole = plain.loop.is_root();
  for (const auto& use : plain.loop.uses()) {
    if (use.user.opcode() == Opcode::kGetTupleElement) {
      need(use.user.int_attr(Attr::kIndex));
    } else {
      whole = true;
    }
  }
  for (int64_t k = 0; whole && k < plain.size; ++k) {
    // Its initial value serves as well.
    if (!plain.unchanged[static_cast<size_t>(k)]) need(k);
  }
  for (const auto& use : plain.condition.parameter(0).uses()) need(use.user.int_attr(Attr::kIndex));
  std::vector<InstructionId> reach;
  absl::flat_hash_map<uint32_t, bool> seen;
  const Instruction root = plain.body.root();
  for (Instruction i : plain.body.instructions()) {
    if (effects.Of(i) || i.has_control_edges()) reach.push_back(i.id());
  }
  while (true) {
    while (!reach.empty()) {
      const Instruction i = module.instruction(reach.back());
      reach.pop_back();
      if (!seen.try_emplace(i.id().value, true).second) continue;
      if (IsStateElement(i, plain.body)) {
        need(i.int_attr(Attr::kIndex));
        continue;
      }
      for (Instruction operand : i.operands()) reach.push_back(operand.id());
    }
    if (open.empty()) return needed;
    reach.push_back(root.operand(open.back()).id());
    open.pop_back();
  }
}

// Merges unchanged elements with equal initial values: their reads become reads of one of them.
bool MergeEqualElements(Module& module, const CanonicalLoop& plain) {
  if (plain.init.opcode() != Opcode::kTuple) return false;
  absl::flat_hash_map<uint32_t, int64_t> first;
  std::vector<int64_t> instead(static_cast<size_t>(plain.size));
  for (int64_t k = 0; k < plain.size; ++k) {
    instead[static_cast<size_t>(k)] = k;
    if (!plain.unchanged[static_cast<size_t>(k)]) continue;
    instead[static_cast<size_t>(k)] = first.try_emplace(plain.init.operand(k).id().value, k).first->second;
  }
  bool changed = false;
  for (Instruction state : {plain.body.parameter(0), plain.condition.parameter(0)}) {
    for (const auto& use : state.uses()) {
      const int64_t index = use.user.int_attr(Attr::kIndex), other = instead[static_cast<size_t>(index)];
      // The read that forwards the element stays.
      bool passes_on = false;
      for (const auto& next : use.user.uses()) {
        passes_on |= next.user == plain.body.root() && next.operand_index == index;
      }
      if (other == index) continue;
      if (passes_on) {
        // Erased with the element, whose value is the initial one.
        MergeMetadata(module, use.user.id(), plain.init.operand(index).id());
        continue;
      }
      module.SetAttr(use.user.id(), Attr::kIndex, module.EncodeInt64(other));
      changed = true;
    }
  }
  return changed;
}

// Replaces uses of an unchanged element after the loop by its initial value.
bool ForwardUnchanged(Module& module, const CanonicalLoop& plain) {
  std::vector<InstructionId> elements;
  for (const auto& use : plain.loop.uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement || use.user.has_control_edges()) continue;
    if (plain.unchanged[static_cast<size_t>(use.user.int_attr(Attr::kIndex))]) elements.push_back(use.user.id());
  }
  for (InstructionId element : elements) {
    const int64_t index = module.instruction(element).int_attr(Attr::kIndex);
    Replace(module, element, InitElement(module, plain, index));
  }
  return !elements.empty();
}

bool IsLoopOfOneIteration(Instruction loop, Computation body) {
  return loop.opcode() == Opcode::kWhile && loop.computation_attr(Attr::kBody) == body && TripCountUpToOne(loop) == 1;
}

// Returns by computation whether its copies, as the body of loops of one iteration with several callers, add at most
// `max_added` instructions. Bodies contain loops with others: the copies of these multiply with each level.
std::vector<uint8_t> BodiesToCopy(const Module& module, int64_t max_added) {
  constexpr int64_t kMaxSites = int64_t{1} << 31;
  const CallGraph graph(module);
  std::vector<uint8_t> may_copy(module.computation_id_bound(), 0);
  std::vector<int64_t> copies(module.computation_id_bound(), 1);
  const absl::Span<const ComputationId> post_order = graph.PostOrder();
  for (size_t k = post_order.size(); k-- > 0;) {  // callers first
    const Computation body = module.computation(post_order[k]);
    const absl::Span<const CallSite> callers = graph.caller_callsites(body);
    int64_t sites = 0;
    for (const CallSite& site : callers) {
      sites = std::min(sites + copies[module.record(site.caller).parent.value], kMaxSites);
    }
    const int64_t size = body.instruction_count();
    if (sites <= 1 || size > max_added / sites || !IsCloneable(body)) continue;
    const bool is_copied = std::any_of(callers.begin(), callers.end(), [&](const CallSite& site) {
      return IsLoopOfOneIteration(module.instruction(site.caller), body);
    });
    if (!is_copied) continue;
    may_copy[body.id().value] = 1;
    copies[body.id().value] = sites;
  }
  return may_copy;
}

}  // namespace

bool WhileLoopSimplifier::RemoveShortLoops(Module& module) {
  const ConservativeSideEffects effects(module);
  const std::vector<uint8_t> may_copy = BodiesToCopy(module, options().Int("max-added"));
  std::vector<uint32_t> callers = CountCallers(module);
  std::vector<uint8_t> seen(module.computation_id_bound(), 0);
  std::vector<ComputationId> open = {module.entry().id()};
  bool changed = false;
  // Outer loops first: the body of a loop in another is then cloned to its final position, not once for each level.
  while (!open.empty()) {
    const ComputationId computation = open.back();
    open.pop_back();
    for (InstructionId id = module.record(computation).first, next; id.valid(); id = next) {
      const Instruction i = module.instruction(id);
      next = i.record().next;
      const std::optional<int64_t> trip_count =
          i.opcode() == Opcode::kWhile && !i.has_control_edges() ? TripCountUpToOne(i) : std::nullopt;
      if (trip_count && i.operand(0).shape() == i.shape() && !effects.Of(i.computation_attr(Attr::kCondition))) {
        if (*trip_count == 0) {
          CarryCount(module, i, /*ran=*/false, i.operand(0).id());
          Replace(module, id, i.operand(0).id());
          Count("loops without iterations removed");
          changed = true;
          continue;
        }
        const Computation body = i.computation_attr(Attr::kBody);
        const bool only_caller = callers[body.id().value] == 1;
        if ((only_caller || IsCloneable(body)) && body.root().shape() == i.shape() &&
            body.root().opcode() != Opcode::kParameter && (only_caller || may_copy[body.id().value] != 0)) {
          const InstructionId before = i.record().previous;
          const InstructionId result = CloneBody(module, body, {i.operand(0).id()}, id);
          // Loops of the clone are next.
          next = before.valid() ? module.record(before).next : module.record(computation).first;
          for (InstructionId made = next; !only_caller && made != id; made = module.record(made).next) {
            module.instruction(made).ForEachCallee([&callers](Computation callee) {
              if (callee.id().value < callers.size()) ++callers[callee.id().value];
            });
          }
          --callers[body.id().value];
          CarryCount(module, module.instruction(id), /*ran=*/true, result);
          if (next == id) next = module.record(id).next;
          Replace(module, id, result);
          Count("loops of one iteration removed");
          changed = true;
          continue;
        }
      }
      i.ForEachCallee([&](Computation callee) {
        if (callee.id().value < seen.size() && std::exchange(seen[callee.id().value], 1) == 0) {
          open.push_back(callee.id());
        }
      });
    }
  }
  if (changed) EraseUnreachable(module);
  return changed;
}

bool WhileLoopSimplifier::RunOnce(Module& module) {
  bool changed = RemoveShortLoops(module);
  const ConservativeSideEffects effects(module);
  const std::vector<uint32_t> callers = CountCallers(module);
  for (InstructionId id : WhileLoops(module)) {
    const Instruction loop = module.instruction(id);
    if (!loop.record().parent.valid() || loop.has_control_edges()) continue;
    const Computation body = loop.computation_attr(Attr::kBody);
    if (callers[body.id().value] == 1) EraseUnused(module, body, effects);
    const Computation condition = loop.computation_attr(Attr::kCondition);
    if (callers[condition.id().value] == 1) EraseUnused(module, condition, effects);
    std::optional<CanonicalLoop> plain = MatchCanonicalLoop(loop, callers);
    if (!plain) continue;
    if (ForwardUnchanged(module, *plain)) {
      Count("loops with unchanged results");
      changed = true;
    }
    if (MergeEqualElements(module, *plain)) {
      Count("loops with equal inputs");
      changed = true;
    }
    const std::vector<uint8_t> needed = NeededElements(*plain, effects);
    const int64_t kept = std::count(needed.begin(), needed.end(), 1);
    if (kept == plain->size || kept == 0) continue;
    RewriteLoopState(module, *plain, needed, {});
    Count("elements of loop states removed", plain->size - kept);
    changed = true;
  }
  return changed;
}

absl::StatusOr<bool> WhileLoopSimplifier::Run(Module& module) {
  // Changes in one loop enable others around and inside it. Nests are shallow; bound the iterations for deep ones.
  bool changed = false;
  for (int round = 0; round < 20 && RunOnce(module); ++round) changed = true;
  return changed;
}

absl::StatusOr<bool> WhileLoopConstantSinking::Run(Module& module) {
  const std::vector<uint32_t> callers = CountCallers(module);
  bool changed = false;
  // Outer loops first: their constants are known when inner loops are visited.
  std::vector<InstructionId> loops = WhileLoops(module);
  std::reverse(loops.begin(), loops.end());
  for (InstructionId id : loops) {
    const std::optional<CanonicalLoop> plain = MatchCanonicalLoop(module.instruction(id), callers);
    if (!plain || plain->init.opcode() != Opcode::kTuple) continue;
    for (int64_t k = 0; k < plain->size; ++k) {
      const Instruction value = plain->init.operand(k);
      if (!plain->unchanged[static_cast<size_t>(k)] || value.opcode() != Opcode::kConstant ||
          !value.shape().IsArray()) {
        continue;
      }
      if (value.literal().elided) continue;
      for (const Computation& c : {plain->body, plain->condition}) {
        std::vector<InstructionId> reads;
        for (const auto& use : c.parameter(0).uses()) {
          if (use.user.int_attr(Attr::kIndex) != k || use.user.has_control_edges()) continue;
          // A read that only forwards the element needs no constant.
          bool other_use = use.user == c.root();
          for (const auto& next : use.user.uses())
            other_use |= next.user != plain->body.root() || next.operand_index != k;
          if (other_use) reads.push_back(use.user.id());
        }
        for (InstructionId read : reads) {
          Builder builder(&module, read);
          const InstructionId copy = builder.Make(Opcode::kConstant, value.shape(), {}, {}, value.record().payload);
          SetMetadataFrom(module, copy, {value.id(), read});
          // A read still forwards the element itself.
          std::vector<std::pair<InstructionId, int64_t>> users;
          for (const auto& next : module.instruction(read).uses()) {
            if (next.user == plain->body.root() && next.operand_index == k) continue;
            users.emplace_back(next.user.id(), next.operand_index);
          }
          for (const auto& [user, index] : users) module.ReplaceOperand(user, index, copy);
          if (module.instruction(read).is_root()) module.SetRoot(c.id(), copy);
          if (!module.instruction(read).has_users()) module.Erase(read);
          Count("constants moved into loops");
          changed = true;
        }
      }
    }
  }
  return changed;
}

absl::StatusOr<bool> WhileLoopUnroller::Run(Module& module) {
  const int64_t max_trip_count = options().Int("max-trips");
  const int64_t max_instructions = options().Int("max-instructions");
  const ConservativeSideEffects effects(module);
  bool changed = false;
  for (InstructionId id : WhileLoops(module)) {
    const Instruction loop = module.instruction(id);
    if (!loop.record().parent.valid() || loop.has_control_edges()) continue;
    const std::optional<CountedLoop> counted = CountLoop(loop);
    const Computation body = loop.computation_attr(Attr::kBody);
    if (!counted || counted->trip_count > max_trip_count || counted->trip_count < 1 || !IsCloneable(body) ||
        counted->trip_count * body.instruction_count() > max_instructions ||
        effects.Of(loop.computation_attr(Attr::kCondition)) || loop.operand(0).shape() != loop.shape() ||
        body.root().shape() != loop.shape()) {
      continue;
    }
    InstructionId state = loop.operand(0).id();
    for (int64_t iteration = 0; iteration < counted->trip_count; ++iteration)
      state = CloneBody(module, body, {state}, id);
    if (state == id) continue;
    CarryCount(module, module.instruction(id), /*ran=*/true, state);
    Replace(module, id, state);
    Count("loops unrolled");
    changed = true;
  }
  if (changed) EraseUnreachable(module);
  return changed;
}

HLOKIT_PASS(WhileLoopConstantSinking) {
  return {.name = "while-loop-constant-sinking",
          .category = "simplify",
          .summary = "sink loop-carried constants into loop bodies",
          .doc =
              "A loop-invariant state element with a constant initial value is replaced by the constant in "
              "body and condition. while-loop-simplifier then removes it from the state.",
          .example = R"(cond {
  cs = (s32[], f32[4], f32[4]) parameter(0)
  ci = s32[] get-tuple-element(cs), index=0
  lim = s32[] constant(10)
  ROOT lt = pred[] compare(ci, lim), direction=LT
}
body {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[4] get-tuple-element(s), index=1
  b = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  sum = f32[4] add(a, b), metadata={op_name="main/while/add"}
  ROOT out = (s32[], f32[4], f32[4]) tuple(next, sum, b)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  k = f32[4] constant({1, 2, 3, 4}), metadata={op_name="main/k"}
  zero = s32[] constant(0)
  init = (s32[], f32[4], f32[4]) tuple(zero, p, k)
  w = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body, metadata={op_name="main/while"}
  ROOT r = f32[4] get-tuple-element(w), index=1
})",
          .create = MakePass<WhileLoopConstantSinking>};
}

HLOKIT_PASS(WhileLoopSimplifier) {
  return {.name = "while-loop-simplifier",
          .category = "simplify",
          .summary = "simplify loops and their state",
          .doc =
              "Loops that are known never to run are removed, loops that run once become their body. State "
              "elements that neither results nor condition nor side effects need are removed; loop-invariant "
              "results are replaced by the initial values; equal loop-invariant elements are merged. Loops "
              "whose computations have other callers do not change: flatten-call-graph helps. Loops that run "
              "once get copies of a body with other callers, within a limit.",
          .example = R"(cond {
  cs = (s32[], f32[4], f32[4]) parameter(0)
  ci = s32[] get-tuple-element(cs), index=0
  lim = s32[] constant(10)
  ROOT lt = pred[] compare(ci, lim), direction=LT
}
body {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[4] get-tuple-element(s), index=1
  b = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  twice = f32[4] add(a, a)
  other = f32[4] multiply(b, a)
  ROOT out = (s32[], f32[4], f32[4]) tuple(next, twice, other)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[4], f32[4]) tuple(zero, p, q)
  w = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body, metadata={op_name="main/while"}
  ROOT r = f32[4] get-tuple-element(w), index=1
})",
          .options = {{"max-added", OptionInfo::Type::kInt, "1000",
                       "limit on the instructions that copies of one body with several callers add"}},
          .create = MakePass<WhileLoopSimplifier>};
}

HLOKIT_PASS(WhileLoopUnroller) {
  return {
      .name = "while-loop-unroller",
      .category = "simplify",
      .summary = "unroll loops of few iterations",
      .doc = "For loops with a known trip count whose bodies contain no channels or asynchronous operations.",
      .example = R"(cond {
  cs = (s32[], f32[4], f32[4]) parameter(0)
  ci = s32[] get-tuple-element(cs), index=0
  lim = s32[] constant(2)
  ROOT lt = pred[] compare(ci, lim), direction=LT
}
body {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[4] get-tuple-element(s), index=1
  b = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  sum = f32[4] add(a, b), metadata={op_name="main/while/add"}
  ROOT out = (s32[], f32[4], f32[4]) tuple(next, sum, b)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[4], f32[4]) tuple(zero, p, q)
  w = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body, metadata={op_name="main/while"}
  ROOT r = f32[4] get-tuple-element(w), index=1
})",
      .options = {{"max-trips", OptionInfo::Type::kInt, "8", "loops with a larger trip count are not unrolled"},
                  {"max-instructions", OptionInfo::Type::kInt, "800", "loops that would become larger than this stay"}},
      .create = MakePass<WhileLoopUnroller>};
}

}  // namespace hlokit
