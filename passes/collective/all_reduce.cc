// SPDX-License-Identifier: Apache-2.0
// Folds and reassociates all-reduces, and reassociates reduce-scatters.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "ir/sharding/replica_groups.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/collective/collective_key.h"
#include "passes/collective/collectives.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {
namespace {

constexpr int64_t kMaxDevices = 1 << 16;

using Groups = std::vector<std::vector<int64_t>>;

bool HasOnlyOneUse(Instruction i) { return !i.is_root() && HasOneUser(i); }

// Returns the groups of reducing over `first`, then over `second`, or nullopt if a device would count twice or the
// devices of a group would differ.
std::optional<Groups> Compose(const Groups& first, const Groups& second) {
  std::vector<std::pair<int64_t, size_t>> group_of;  // device, its group in `first`
  for (size_t g = 0; g < first.size(); ++g) {
    for (int64_t device : first[g]) group_of.push_back({device, g});
  }
  std::sort(group_of.begin(), group_of.end());
  const auto find = [&](int64_t device) -> std::optional<size_t> {
    const auto at = std::lower_bound(group_of.begin(), group_of.end(), std::make_pair(device, size_t{0}));
    if (at == group_of.end() || at->first != device) return std::nullopt;
    return at->second;
  };
  Groups result;
  for (const std::vector<int64_t>& group : second) {
    std::vector<int64_t> all;
    for (int64_t device : group) {
      const std::optional<size_t> g = find(device);
      if (!g) return std::nullopt;
      all.insert(all.end(), first[*g].begin(), first[*g].end());
    }
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end()) return std::nullopt;
    result.push_back(std::move(all));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  // Every device is in exactly one group, and all devices of a group get the same result.
  std::vector<int64_t> devices, all;
  for (const auto& group : second) devices.insert(devices.end(), group.begin(), group.end());
  for (const auto& group : result) all.insert(all.end(), group.begin(), group.end());
  std::sort(devices.begin(), devices.end());
  std::sort(all.begin(), all.end());
  if (devices != all) return std::nullopt;
  return result;
}

// Returns true for two all-reduces (reduce-scatters) of one array each that differ in their groups at most.
bool SameButGroups(Instruction a, Instruction b) {
  const std::optional<Opcode> x = ReducerOpcode(a.computation_attr(Attr::kToApply));
  return x && x == ReducerOpcode(b.computation_attr(Attr::kToApply)) && a.operand_count() == 1 &&
         b.operand_count() == 1 && a.has(Attr::kChannelId) == b.has(Attr::kChannelId) &&
         a.bool_attr(Attr::kUseGlobalDeviceIds) == b.bool_attr(Attr::kUseGlobalDeviceIds) && CollectiveKey(a) &&
         CollectiveKey(b);
}

}  // namespace

absl::StatusOr<int64_t> FoldAllReduces(Module& module) {
  if (module.header().is_scheduled) return 0;
  int64_t folded = 0;
  for (Computation c : module.computations()) {
    for (InstructionId id : PostOrder(c)) {
      const Instruction outer = module.instruction(id);
      if (outer.opcode() != Opcode::kAllReduce || outer.operand_count() != 1) continue;
      const Instruction inner = outer.operand(0);
      if (inner.opcode() != Opcode::kAllReduce || !SameButGroups(outer, inner) || !HasOnlyOneUse(inner)) continue;
      const auto groups = [&](Instruction i) {
        return ExpandReplicaGroups(module.context(), AttrReader(i).list_id(Attr::kReplicaGroups), kMaxDevices);
      };
      if (!inner.has(Attr::kReplicaGroups) || !outer.has(Attr::kReplicaGroups)) continue;
      const absl::StatusOr<Groups> first = groups(inner), second = groups(outer);
      if (!first.ok() || !second.ok() || first->empty() || second->empty()) continue;
      std::optional<Groups> both = Compose(*first, *second);
      if (!both) continue;
      const ListId list = EncodeReplicaGroups(&module.context(), ReplicaGroups::List(*std::move(both)));
      module.SetAttr(id, Attr::kReplicaGroups, list.value);
      MergeMetadata(module, inner.id(), id);
      const InstructionId source = inner.operand(0).id(), removed = inner.id();
      module.ReplaceOperand(id, 0, source);
      module.Erase(removed);
      ++folded;
    }
  }
  return folded;
}

namespace {

// Reassociates collectives of an opcode that reduces.
absl::StatusOr<int64_t> ReassociateCollectives(Module& module, Opcode opcode, bool reassociate) {
  if (module.header().is_scheduled) return 0;
  int64_t moved = 0;
  for (Computation c : module.computations()) {
    for (InstructionId id : PostOrder(c)) {
      const Instruction i = module.instruction(id);
      if (i.operand_count() != 2 || !HasTrait(i.opcode(), kCommutative)) continue;
      const Instruction a = i.operand(0), b = i.operand(1);
      if (a == b || a.opcode() != opcode || b.opcode() != opcode) continue;
      if (!SameButGroups(a, b) || CollectiveKey(a) != CollectiveKey(b) || !HasOnlyOneUse(a) || !HasOnlyOneUse(b))
        continue;
      if (ReducerOpcode(a.computation_attr(Attr::kToApply)) != i.opcode()) continue;
      const ElementType type = i.shape().element_type();
      const bool order_matters = OpcodeSet{Opcode::kAdd, Opcode::kMultiply}.Contains(i.opcode());
      if (order_matters && !reassociate && !IsInteger(type) && type != ElementType::kPred) continue;
      const Shape whole = a.operand(0).shape();
      if (a.shape() != i.shape() || b.shape() != i.shape() || b.operand(0).shape() != whole) continue;
      if (opcode == Opcode::kAllReduce && whole != i.shape()) continue;
      // The operation gets the operands, and one of the collectives its result.
      const InstructionId keep = a.id(), removed = b.id();
      const InstructionId x = a.operand(0).id(), y = b.operand(0).id();
      Builder builder(&module, c.id());
      const Builder::Result sum = builder.Add(i.opcode(), {x, y}, {}, whole);
      if (!sum.ok()) return sum.status();
      const InstructionId sources[] = {id};
      SetMetadataFrom(module, *sum, sources);
      module.ReplaceOperand(keep, 0, *sum);
      MergeMetadata(module, removed, keep);
      module.ReplaceAllUses(id, keep);
      module.Erase(id);
      module.Erase(removed);
      ++moved;
    }
  }
  return moved;
}

}  // namespace

absl::StatusOr<int64_t> ReassociateAllReduces(Module& module, bool reassociate) {
  return ReassociateCollectives(module, Opcode::kAllReduce, reassociate);
}

absl::StatusOr<int64_t> ReassociateReduceScatters(Module& module, bool reassociate) {
  return ReassociateCollectives(module, Opcode::kReduceScatter, reassociate);
}

namespace {

class AllReduceFolder : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = FoldAllReduces(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("collectives changed", *count);
    return *count > 0;
  }
};

class ReassociateScatters : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = ReassociateReduceScatters(module, options().Bool("reassociate-floats"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("reduce-scatters removed", *count);
    return *count > 0;
  }
};

class Reassociate : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = ReassociateAllReduces(module, options().Bool("reassociate-floats"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("all-reduces removed", *count);
    return *count > 0;
  }
};

}  // namespace

HLOKIT_PASS(ReduceScatterReassociate) {
  return {.name = "reduce-scatter-reassociate",
          .category = "collective",
          .summary = "reassociate operations on the results of reduce-scatters",
          .doc =
              "The sum of two reduce-scatters with addition becomes the reduce-scatter of the sum, and "
              "likewise for the other reductions. XLA reassociates floats too, here on request.",
          .example = R"(HloModule total, replica_count=2

sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}

ENTRY main {
  x = s32[8] parameter(0)
  y = s32[8] parameter(1)
  rx = s32[4] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=sum
  ry = s32[4] reduce-scatter(y), replica_groups={{0,1}}, dimensions={0}, to_apply=sum
  ROOT s = s32[4] add(rx, ry)
})",
          .options = {{.name = "reassociate-floats",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "false",
                       .doc = "sums and products of floats too, which changes the order of operations"}},
          .preconditions = kNoSchedule,
          .tolerance = 1e-5,
          .create = MakePass<ReassociateScatters>};
}

HLOKIT_PASS(AllReduceFolder) {
  return {
      .name = "all-reduce-folder",
      .category = "collective",
      .summary = "merge an all-reduce of an all-reduce into one",
      .doc = "Two consecutive all-reduces become one over the combined groups, if each of these has every device once.",
      .example = R"(HloModule axes

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[128]{0} parameter(0)
  rows = f32[128]{0} all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum
  ROOT all = f32[128]{0} all-reduce(rows), replica_groups={{0,2},{1,3}}, to_apply=sum
}
)",
      .preconditions = kNoSchedule,
      .tolerance = 1e-5,
      .create = MakePass<AllReduceFolder>};
}

HLOKIT_PASS(AllReduceReassociate) {
  return {.name = "all-reduce-reassociate",
          .category = "collective",
          .summary = "reassociate operations on the results of all-reduces",
          .doc =
              "The sum of two all-reduces with addition becomes the all-reduce of the sum, and likewise for "
              "the other reductions.",
          .example = R"(HloModule total

sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}

ENTRY main {
  x = s32[128]{0} parameter(0)
  y = s32[128]{0} parameter(1)
  rx = s32[128]{0} all-reduce(x), replica_groups={{0,1}}, to_apply=sum
  ry = s32[128]{0} all-reduce(y), replica_groups={{0,1}}, to_apply=sum
  ROOT s = s32[128]{0} add(rx, ry)
}
)",
          .options = {{.name = "reassociate-floats",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "false",
                       .doc = "sums and products of floats too, which changes the order of operations"}},
          .preconditions = kNoSchedule,
          .tolerance = 1e-5,
          .create = MakePass<Reassociate>};
}

}  // namespace hlokit
