// SPDX-License-Identifier: Apache-2.0
// Merges small collectives into large ones.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/saturating.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/cost.h"
#include "passes/annotations/annotations.h"
#include "passes/collective/collective_key.h"
#include "passes/collective/collectives.h"
#include "passes/core/pass_row.h"
#include "passes/fusion/incremental_topological_order.h"

namespace hlokit {
namespace {

// Large enough to reach from one layer's gradients to another's.
constexpr IncrementalTopologicalOrder::SearchLimits kSearch = {.groups = 1 << 14, .edges = 1 << 16};

struct Bundle {
  std::vector<uint32_t> nodes;
  int64_t bytes = 0;
  int64_t operands = 0;
};

int64_t BytesOf(Instruction i) {
  int64_t bytes = 0;
  for (Instruction operand : i.operands()) bytes = SaturatingAdd(bytes, BufferBytes(operand.shape()));
  return bytes;
}

// Replaces the collectives of `bundle` by one.
absl::Status Merge(Module& module, ComputationId computation, absl::Span<const InstructionId> bundle) {
  std::vector<InstructionId> operands;
  std::vector<Shape> shapes;
  for (InstructionId id : bundle) {
    const Instruction i = module.instruction(id);
    for (Instruction operand : i.operands()) operands.push_back(operand.id());
    if (i.shape().IsTuple()) {
      shapes.insert(shapes.end(), i.shape().elements().begin(), i.shape().elements().end());
    } else {
      shapes.push_back(i.shape());
    }
  }
  const Instruction first = module.instruction(bundle[0]);
  const std::vector<AttrValue> attrs(first.attrs().begin(), first.attrs().end());
  Builder builder(&module, computation);
  builder.WithName(first.name());
  const Builder::Result merged = builder.Add(first.opcode(), operands, attrs, module.context().shapes.Tuple(shapes));
  if (!merged.ok()) return merged.status();
  SetMetadataFrom(module, *merged, bundle);
  int64_t part = 0;
  const auto take = [&](InstructionId source) -> absl::StatusOr<InstructionId> {
    const Builder::Result taken = builder.GetTupleElement(*merged, part++);
    if (taken.ok()) module.SetMetadata(*taken, module.record(source).metadata);
    return taken;
  };
  for (InstructionId id : bundle) {
    const Shape shape = module.instruction(id).shape();
    std::vector<InstructionId> parts;
    for (int64_t k = 0; k < (shape.IsTuple() ? shape.tuple_size() : 1); ++k) {
      const absl::StatusOr<InstructionId> taken = take(id);
      if (!taken.ok()) return taken.status();
      parts.push_back(*taken);
    }
    InstructionId by = parts[0];
    if (shape.IsTuple()) {
      const Builder::Result tuple = builder.Tuple(parts);
      if (!tuple.ok()) return tuple.status();
      module.SetMetadata(*tuple, module.record(id).metadata);
      by = *tuple;
    }
    module.ReplaceAllUses(id, by);
    module.Erase(id);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CombineCounts> CombineCollectives(Module& module, Opcode opcode, const CombineLimits& limits) {
  CombineCounts counts;
  if (module.header().is_scheduled || !module.entry().valid()) return counts;
  const CallGraph calls(module);
  for (Computation c : module.computations()) {
    if (!calls.IsSequential(c) || !calls.IsLive(c)) continue;
    bool any = false;
    for (Instruction i : c.instructions()) any |= i.opcode() == opcode;
    if (!any) continue;
    const std::vector<InstructionId> order = PostOrder(c);
    std::vector<uint32_t> node(module.instruction_id_bound(), 0);
    for (uint32_t n = 0; n < order.size(); ++n) node[order[n].value] = n;
    std::vector<uint32_t> begin = {0}, users;
    for (InstructionId id : order) {
      const Instruction i = module.instruction(id);
      for (const auto& use : i.uses()) users.push_back(node[use.user.id().value]);
      for (Instruction after : i.control_successors()) users.push_back(node[after.id().value]);
      begin.push_back(static_cast<uint32_t>(users.size()));
    }
    IncrementalTopologicalOrder groups(kSearch);
    groups.Begin(begin, users);
    // By key, the bundles that can still grow.
    std::map<std::string, std::vector<Bundle>> open;
    for (uint32_t n = 0; n < order.size(); ++n) {
      const Instruction i = module.instruction(order[n]);
      if (i.opcode() != opcode || i.has(Attr::kPermuteSliceSizes)) continue;
      const std::optional<std::string> key = CollectiveKey(i);
      if (!key) continue;
      std::vector<Bundle>& bundles = open[*key];
      const int64_t bytes = BytesOf(i);
      bool done = false;
      // Latest first: nearby collectives are more likely to be independent.
      for (size_t k = bundles.size(); k-- > 0 && bundles.size() - k <= 8 && !done;) {
        Bundle& bundle = bundles[k];
        if (SaturatingAdd(bundle.bytes, bytes) > limits.max_bytes) continue;
        if (bundle.operands + i.operand_count() > limits.max_count) continue;
        if (!groups.Join(bundle.nodes[0], n)) continue;
        bundle.nodes.push_back(n);
        bundle.bytes = SaturatingAdd(bundle.bytes, bytes);
        bundle.operands += i.operand_count();
        done = true;
      }
      if (!done) bundles.push_back({{n}, bytes, i.operand_count()});
    }
    for (const auto& [key, bundles] : open) {
      for (const Bundle& bundle : bundles) {
        if (bundle.nodes.size() < 2) continue;
        std::vector<InstructionId> ids;
        for (uint32_t n : bundle.nodes) ids.push_back(order[n]);
        if (absl::Status status = Merge(module, c.id(), ids); !status.ok()) return status;
        counts.merged += static_cast<int64_t>(ids.size());
        ++counts.made;
      }
    }
  }
  return counts;
}

namespace {

template <Opcode opcode>
class Combine : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<CombineCounts> counts =
        CombineCollectives(module, opcode, {options().Int("max-bytes"), options().Int("max-count")});
    if (!counts.ok()) return counts.status();
    if (counts->made == 0) return false;
    Count("collectives merged", counts->merged);
    Count("collectives made", counts->made);
    return true;
  }
};

template <Opcode opcode>
PassInfo CombinerInfo(std::string_view name, std::string_view summary, std::string_view max_bytes,
                      std::string_view example) {
  return {.name = name,
          .category = "collective",
          .summary = summary,
          .doc =
              "Merges independent collectives with the same groups and reduction into one with several operands, in "
              "program order, up to a size. The merged collective keeps the channel of the first one.",
          .example = example,
          .options = {{.name = "max-bytes",
                       .type = OptionInfo::Type::kInt,
                       .default_text = max_bytes,
                       .doc = "maximum bytes of the operands of one collective"},
                      {.name = "max-count",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "256",
                       .doc = "maximum number of operands",
                       .min = 1}},
          .preconditions = kNoSchedule,
          .create = MakePass<Combine<opcode>>};
}

}  // namespace

HLOKIT_PASS(AllReduceCombiner) {
  return CombinerInfo<Opcode::kAllReduce>("all-reduce-combiner", "merge small all-reduces into large ones", "31457280",
                                          R"(HloModule gradients

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[128]{0} parameter(0)
  y = f32[64]{0} parameter(1)
  dx = f32[128]{0} all-reduce(x), replica_groups={{0,1}}, to_apply=sum
  dy = f32[64]{0} all-reduce(y), replica_groups={{0,1}}, to_apply=sum
  ROOT t = (f32[128]{0}, f32[64]{0}) tuple(dx, dy)
}
)");
}

HLOKIT_PASS(AllGatherCombiner) {
  return CombinerInfo<Opcode::kAllGather>("all-gather-combiner", "merge small all-gathers into large ones", "31457280",
                                          "");
}

HLOKIT_PASS(ReduceScatterCombiner) {
  return CombinerInfo<Opcode::kReduceScatter>("reduce-scatter-combiner", "merge small reduce-scatters into large ones",
                                              "31457280", "");
}

HLOKIT_PASS(CollectivePermuteCombiner) {
  return CombinerInfo<Opcode::kCollectivePermute>("collective-permute-combiner",
                                                  "merge small collective-permutes into large ones", "31457280",
                                                  R"(HloModule neighbors, replica_count=2

ENTRY main {
  x = f32[8] parameter(0)
  y = s32[4] parameter(1)
  from_left = f32[8] collective-permute(x), source_target_pairs={{0,1},{1,0}}
  count = s32[4] collective-permute(y), source_target_pairs={{0,1},{1,0}}
  ROOT t = (f32[8], s32[4]) tuple(from_left, count)
})");
}

}  // namespace hlokit
