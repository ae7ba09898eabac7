// SPDX-License-Identifier: Apache-2.0
// All-gathers of equal values, and of broadcasts.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/call_graph.h"
#include "passes/collective/collective_key.h"
#include "passes/collective/collective_rules.h"
#include "passes/collective/collectives.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/dead_operands.h"

namespace hlokit {
namespace {

constexpr int kMaxForwards = 64;

// Returns a text that is equal for equal values: the instruction that defines the value and the conversions after it.
// Looks through tuples and optimization barriers.
std::string ValueKey(Instruction value) {
  std::string key;
  std::vector<int64_t> elements;  // of the tuple `value`, innermost first
  for (int step = 0; step < kMaxForwards; ++step) {
    const Opcode opcode = value.opcode();
    if (value.has_control_edges()) break;
    if (opcode == Opcode::kGetTupleElement) {
      elements.push_back(value.int_attr(Attr::kIndex));
      value = value.operand(0);
    } else if (opcode == Opcode::kTuple && !elements.empty()) {
      value = value.operand(elements.back());
      elements.pop_back();
    } else if (opcode == Opcode::kOptimizationBarrier && value.operand_count() == 1) {
      value = value.operand(0);
    } else if (opcode == Opcode::kConvert) {
      StrAppend(&key, " to ", value.shape().id().value);
      value = value.operand(0);
    } else {
      break;
    }
  }
  StrAppend(&key, " of ", value.id().value);
  for (int64_t element : elements) StrAppend(&key, ".", element);
  return key;
}

// all-gather(broadcast(x)) becomes broadcast(all-gather(x)), which sends less, unless all dimensions of the broadcast
// but the gathered one come from x.
bool GatherBeforeBroadcast(PatternRewriter& rewriter, Instruction gather) {
  const Instruction broadcast = gather.operand(0);
  if (gather.operand_count() != 1 || broadcast.opcode() != Opcode::kBroadcast || !CollectiveKey(gather)) return false;
  if (broadcast.has_control_edges() || !gather.shape().IsArray()) return false;
  const Instruction x = broadcast.operand(0);
  const int64_t dimension = gather.list_attr(Attr::kDimensions)[0];
  const absl::Span<const int64_t> map = broadcast.list_attr(Attr::kDimensions);
  const Shape result = gather.shape(), before = broadcast.shape();
  const auto from_x = [&](int64_t d) { return std::find(map.begin(), map.end(), d) != map.end(); };
  int64_t repeated = 1;
  for (int64_t d = 0; d < result.rank(); ++d) {
    if (d != dimension && !from_x(d)) repeated *= result.dim(d);
  }
  // Along a dimension that the broadcast adds, the gathered pieces are repetitions too.
  if (!from_x(dimension)) repeated *= before.dim(dimension);
  if (repeated <= 1 || before.dim(dimension) == 0) return false;

  std::vector<AttrValue> attrs;
  for (AttrValue attr : gather.attrs()) {
    if (attr.attr != Attr::kDimensions && !IsCommon(attr.attr)) attrs.push_back(attr);
  }
  const ElementType type = result.element_type();
  std::vector<int64_t> sizes(x.shape().dims().begin(), x.shape().dims().end());
  std::vector<int64_t> places(map.begin(), map.end());
  const auto make_broadcast = [&](Shape shape, InstructionId operand) {
    const MetadataScope scope(&rewriter, broadcast.metadata_id());
    return rewriter.Make(Opcode::kBroadcast, shape, {operand}, {rewriter.List(Attr::kDimensions, places)});
  };
  InstructionId by;
  if (from_x(dimension)) {
    const int64_t at = std::find(map.begin(), map.end(), dimension) - map.begin();
    attrs.push_back(rewriter.List(Attr::kDimensions, {at}));
    sizes[static_cast<size_t>(at)] = result.dim(dimension);
    const InstructionId gathered =
        rewriter.Make(Opcode::kAllGather, rewriter.shapes().Array(type, sizes), {x.id()}, attrs);
    by = make_broadcast(result, gathered);
  } else {
    // A new first dimension is gathered, and merged with the gathered one after the broadcast.
    const int64_t members = result.dim(dimension) / before.dim(dimension);
    sizes.insert(sizes.begin(), 1);
    const InstructionId piece = rewriter.MakeReshape(x.id(), rewriter.shapes().Array(type, sizes));
    sizes[0] = members;
    attrs.push_back(rewriter.List(Attr::kDimensions, {0}));
    const InstructionId gathered =
        rewriter.Make(Opcode::kAllGather, rewriter.shapes().Array(type, sizes), {piece}, attrs);
    std::vector<int64_t> split(result.dims().begin(), result.dims().end());
    split[static_cast<size_t>(dimension)] = members;
    split.insert(split.begin() + dimension + 1, before.dim(dimension));
    for (int64_t& place : places) place += place > dimension ? 1 : 0;
    places.insert(places.begin(), dimension);
    by = rewriter.MakeReshape(make_broadcast(rewriter.shapes().Array(type, split), gathered), result);
  }
  if (!rewriter.ReplaceEffect(gather, by)) return false;
  return true;
}

}  // namespace

void AddAllGatherBroadcastReorderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kAllGather}, "all-gathers moved above broadcasts", GatherBeforeBroadcast);
}

absl::StatusOr<int64_t> MergeAllGathers(Module& module) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  const CallGraph calls(module);
  const ComputationRoles roles = RolesOf(module);
  int64_t merged = 0;
  for (Computation c : module.computations()) {
    if (!calls.IsSequential(c) || roles.async[c.id().value] != 0) continue;
    std::map<std::string, InstructionId> known;
    for (InstructionId id : PostOrder(c)) {
      const Instruction i = module.instruction(id);
      // Those of the dead operands of an earlier one are gone.
      if (!i.record().parent.valid() || i.opcode() != Opcode::kAllGather) continue;
      std::optional<std::string> key = CollectiveKey(i);
      if (!key) continue;
      StrAppend(&*key, " ", i.shape().id().value);
      for (Instruction operand : i.operands()) StrAppend(&*key, ",", ValueKey(operand));
      const auto [at, added] = known.emplace(*std::move(key), id);
      if (added) continue;
      module.ReplaceAllUses(id, at->second);
      EraseDead(module, id, at->second);
      ++merged;
    }
  }
  return merged;
}

namespace {

class AllGatherCse : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = MergeAllGathers(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("all-gathers merged", *count);
    return *count > 0;
  }
};

}  // namespace

HLOKIT_PASS(AllGatherCse) {
  return {.name = "all-gather-cse",
          .category = "collective",
          .summary = "merge all-gathers of equal values",
          .doc =
              "All-gathers with the same groups become one if their operands are equal behind optimization "
              "barriers, tuples and conversions. XLA merges those of parameters, with equal channels; here "
              "the values may be any, and the channels may differ.",
          .example = R"(HloModule weights, replica_count=2

ENTRY main {
  w = f32[4] parameter(0)
  forward = f32[8] all-gather(w), channel_id=1, replica_groups={{0,1}}, dimensions={0}
  again = f32[4] opt-barrier(w)
  backward = f32[8] all-gather(again), channel_id=2, replica_groups={{0,1}}, dimensions={0}
  ROOT sum = f32[8] add(forward, backward)
})",
          .preconditions = kNoSchedule,
          .create = MakePass<AllGatherCse>};
}

HLOKIT_PASS(AllGatherBroadcastReorder) {
  return {.name = "all-gather-broadcast-reorder",
          .category = "collective",
          .summary = "gather before broadcasting",
          .doc =
              "An all-gather of a broadcast becomes a broadcast of an all-gather, which sends less. As in XLA, "
              "except that a repeated gathered dimension suffices.",
          .example = R"(HloModule rows, replica_count=2

ENTRY main {
  x = f32[4] parameter(0)
  rows = f32[3,4] broadcast(x), dimensions={1}
  ROOT all = f32[3,8] all-gather(rows), replica_groups={{0,1}}, dimensions={1}
})",
          .preconditions = kNoSchedule,
          .create = MakePass<CollectiveRules<AddAllGatherBroadcastReorderRules>>};
}

}  // namespace hlokit
