// SPDX-License-Identifier: Apache-2.0
#include "passes/target/fused_collectives.h"

#include <algorithm>
#include <vector>

#include "ir/core/saturating.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "ir/sharding/replica_groups.h"
#include "passes/target/aliases.h"
#include "passes/target/tiling.h"
#include "passes/target/tpu_target.h"

namespace hlokit::tpu {

namespace {

constexpr size_t kMaxCollectives = 16;  // listed of one fusion

bool BeginsCollective(Instruction i) {
  return HasTrait(i.opcode(), kCollective) && !HasTrait(i.opcode(), kEndsAsync) && !HasTrait(i.opcode(), kUpdatesAsync);
}

// Returns true for an instruction with this name, but for a suffix, or a custom-call of this target.
bool IsNamed(Instruction i, std::string_view name, std::string_view target) {
  if (i.opcode() == Opcode::kCustomCall) return i.string_attr(Attr::kCustomCallTarget) == target;
  return i.opcode() == Opcode::kFusion && i.name().starts_with(name);
}

int64_t DevicesPerGroup(Instruction collective) {
  const ListId groups = AttrReader(collective).list_id(Attr::kReplicaGroups);
  const ReplicaGroupCounts counts = CountReplicaGroups(collective.module().context(), groups);
  if (counts.groups == 0) return DevicesOf(collective.module());
  return counts.group_size;
}

// Returns true if the device keeps only its part of the result, as after a reduce-scatter.
bool Scatters(Instruction all_reduce) {
  if (all_reduce.opcode() != Opcode::kAllReduce || !all_reduce.shape().IsArray()) return false;
  const int64_t devices = DevicesPerGroup(all_reduce);
  Instruction value = all_reduce;
  while (devices > 1) {
    Instruction only;
    for (Instruction user : value.users()) {
      if (only.valid()) return false;
      only = user;
    }
    if (!only.valid()) return false;
    if (only.opcode() == Opcode::kDynamicSlice) {
      return only.operand(0) == value &&
             SaturatingMultiply(ElementsOf(only.shape()), devices) <= ElementsOf(value.shape());
    }
    const Opcode opcode = only.opcode();
    static constexpr OpcodeSet kUnary = {Opcode::kBitcast, Opcode::kReshape, Opcode::kConvert, Opcode::kCopy};
    if (!kUnary.Contains(opcode)) {
      return false;
    }
    value = only;
  }
  return false;
}

}  // namespace

class FusedCollectiveFinder {
 public:
  FusedCollectiveFinder(const Module& module, absl::flat_hash_map<uint32_t, FusedCollective>* found)
      : module_(module), found_(*found), within_(module.computation_id_bound()) {}

  void Run() {
    bool collectives = false, fusions = false;
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) {
        collectives |= BeginsCollective(i);
        fusions |= i.opcode() == Opcode::kFusion;
      }
    }
    if (!collectives || !fusions) return;
    const std::vector<ComputationId> callees_first = ComputationPostOrder(module_);
    for (ComputationId id : callees_first) List(module_.computation(id));
    for (ComputationId id : callees_first) FindRoles(module_.computation(id));
    for (uint32_t start : starts_) {
      if (found_[start].collectives.empty()) found_.erase(start);
    }
    absl::erase_if(found_, [&](const auto& entry) {
      return entry.second.start.valid() && !found_.contains(entry.second.start.value);
    });
    for (auto& [id, fused] : found_) {
      if (!fused.collectives.empty()) fused.scatters = Scatters(module_.instruction(fused.collectives[0]));
    }
  }

 private:
  static void Add(InstructionId collective, std::vector<InstructionId>* list) {
    if (list->size() >= kMaxCollectives) return;
    if (std::find(list->begin(), list->end(), collective) == list->end()) list->push_back(collective);
  }

  // Lists the collectives of a computation, those of its fusions included.
  void List(Computation c) {
    std::vector<InstructionId>& list = within_[c.id().value];
    for (Instruction i : c.instructions()) {
      if (BeginsCollective(i)) Add(i.id(), &list);
      for (InstructionId inner : InBodyOf(i)) Add(inner, &list);
    }
  }

  std::vector<InstructionId> InBodyOf(Instruction i) const {
    if (i.opcode() != Opcode::kFusion) return {};
    const Computation body = i.computation_attr(Attr::kCalls);
    return body.valid() ? within_[body.id().value] : std::vector<InstructionId>();
  }

  void FindRoles(Computation c) {
    absl::flat_hash_map<uint32_t, InstructionId> in_flight;  // by instruction whose value has the state of a start
    for (InstructionId id : PostOrder(c)) {
      const Instruction i = module_.instruction(id);
      InstructionId start;
      for (Instruction operand : i.operands()) {
        const auto found = in_flight.find(operand.id().value);
        if (found != in_flight.end() && !start.valid()) start = found->second;
      }
      if (OpcodeSet{Opcode::kGetTupleElement, Opcode::kTuple}.Contains(i.opcode()) || IsAlias(i)) {
        if (start.valid()) in_flight[id.value] = start;
        continue;
      }
      if (IsNamed(i, "async-collective-start", "AsyncCollectiveStart")) {
        found_[id.value] = {CollectiveRole::kStart, InBodyOf(i), {}, false};
        starts_.push_back(id.value);
        in_flight[id.value] = id;
        continue;
      }
      const bool done = IsNamed(i, "async-collective-done", "AsyncCollectiveDone");
      if (start.valid() && (done || i.opcode() == Opcode::kFusion)) {
        std::vector<InstructionId>& started = found_[start.value].collectives;
        if (started.empty()) started = InBodyOf(i);
        found_[id.value] = {done ? CollectiveRole::kDone : CollectiveRole::kCarrier, {}, start, false};
        if (!done) in_flight[id.value] = start;
      } else if (std::vector<InstructionId> inner = InBodyOf(i); !inner.empty()) {
        found_[id.value] = {CollectiveRole::kWhole, std::move(inner), {}, false};
      }
    }
  }

  const Module& module_;
  absl::flat_hash_map<uint32_t, FusedCollective>& found_;
  std::vector<std::vector<InstructionId>> within_;  // by ComputationId
  std::vector<uint32_t> starts_;
};

FusedCollectives::FusedCollectives(const Module& module) { FusedCollectiveFinder(module, &found_).Run(); }

std::string_view NameOfCollective(Instruction collective, bool scatters) {
  if (scatters) return ToString(Opcode::kReduceScatter);
  std::string_view text = ToString(collective.opcode());
  constexpr std::string_view kStart = "-start";
  if (text.ends_with(kStart)) text.remove_suffix(kStart.size());
  return text;
}

}  // namespace hlokit::tpu
