// SPDX-License-Identifier: Apache-2.0
// Instructions that share a value: a loop with its body and condition, a call and a conditional with the roots of their
// callees, and the members of a shard group.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/ops/opcode_set.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "passes/sharding/propagator.h"

namespace hlokit::sharding {

void Propagator::FindCallers() {
  for (Computation c : order_) {
    if (!InThreads(c)) continue;
    for (InstructionId id : post_order_[c.id().value]) {
      const Instruction i = module_.instruction(id);
      if (i.opcode() == Opcode::kWhile) {
        callers_[i.computation_attr(Attr::kBody).id().value].push_back(i);
        callers_[i.computation_attr(Attr::kCondition).id().value].push_back(i);
      } else if (OpcodeSet{Opcode::kConditional, Opcode::kCall}.Contains(i.opcode())) {
        i.ForEachCallee([&](Computation callee) { callers_[callee.id().value].push_back(i); });
      }
    }
  }
}

std::vector<Instruction> Propagator::RelatedTo(Instruction caller) const {
  std::vector<Instruction> related = {caller};
  if (caller.opcode() == Opcode::kWhile) {
    const Computation body = caller.computation_attr(Attr::kBody),
                      condition = caller.computation_attr(Attr::kCondition);
    related.insert(related.end(), {body.root(), body.parameter(0), condition.parameter(0)});
  } else {
    caller.ForEachCallee([&](Computation callee) { related.push_back(callee.root()); });
  }
  return related;
}

// The first sharding that one of them has holds for all.
void Propagator::ShareAtStart() {
  for (Computation c : order_) {
    if (!InThreads(c)) continue;
    for (InstructionId id : post_order_[c.id().value]) {
      const Instruction i = module_.instruction(id);
      if (!CallsSequentialCode(i.opcode())) continue;
      const std::vector<Instruction> related = RelatedTo(i);
      const auto first = std::find_if(related.begin(), related.end(), [this](Instruction r) { return Has(r); });
      if (first == related.end()) continue;
      for (Instruction other : related) {
        if (Get(other) == Get(*first) || LeafShapes(other).size() != Get(*first).size()) continue;
        SetFrom(other, Get(*first), {SourceKind::kSameValue, *first});
        if (IsFixed(*first)) fixed_[other.id().value] = 1;
      }
    }
  }
}

void Propagator::ShareWithRelated(Instruction start) {
  std::vector<Instruction> pending = {start};
  while (!pending.empty()) {
    const Instruction i = pending.back();
    pending.pop_back();
    std::vector<Instruction> callers;
    if (CallsSequentialCode(i.opcode())) {
      callers.push_back(i);
    }
    if (i.opcode() == Opcode::kParameter || i.is_root()) {
      if (const auto found = callers_.find(i.parent().id().value); found != callers_.end()) {
        callers.insert(callers.end(), found->second.begin(), found->second.end());
      }
    }
    for (Instruction caller : callers) {
      const std::vector<Instruction> related = RelatedTo(caller);
      if (std::find(related.begin(), related.end(), i) == related.end()) {
        // The operand of a call may learn from the parameter.
        if (i.opcode() == Opcode::kParameter) {
          for (Instruction operand : caller.operands()) from_users_done_[operand.id().value] = 0;
        }
        continue;
      }
      for (Instruction other : related) {
        if (IsFixed(other) || Get(other) == Get(i) || LeafShapes(other).size() != Get(i).size()) continue;
        SetFrom(other, Get(i), {SourceKind::kSameValue, i});
        ClearVisited(other);
        pending.push_back(other);
      }
      // Parameters of callees follow the operands.
      caller.ForEachCallee([&](Computation callee) {
        for (int64_t p = 0; p < callee.parameter_count(); ++p) from_operands_done_[callee.parameter(p).id().value] = 0;
      });
    }
    for (Instruction user : i.users()) {
      if (!OpcodeSet{Opcode::kConditional, Opcode::kCall}.Contains(user.opcode())) continue;
      user.ForEachCallee([&](Computation callee) {
        for (int64_t p = 0; p < callee.parameter_count(); ++p) from_operands_done_[callee.parameter(p).id().value] = 0;
      });
    }
  }
}

void Propagator::FindShardGroups() {
  for (const auto& [instruction, key] : group_marks_) {
    ShardGroupMembers& group = groups_[key];
    group.like = key.second;
    group.members.push_back(module_.instruction(instruction));
  }
  for (auto& [key, group] : groups_) {
    std::sort(group.members.begin(), group.members.end(),
              [this](Instruction a, Instruction b) { return position_[a.id().value] < position_[b.id().value]; });
    group.members.erase(std::unique(group.members.begin(), group.members.end()), group.members.end());
    for (Instruction member : group.members) group_of_[member.id().value] = &group;
  }
}

bool Propagator::InferFromShardGroup(Instruction i) {
  const ShardGroupMembers& group = *group_of_.find(i.id().value)->second;
  bool changed = false;
  for (Instruction member : group.members) {
    if (member == i || !Has(member) || Get(member).size() != LeafShapes(i).size()) continue;
    changed |= ImproveAll(i, Get(member), false, {SourceKind::kShardGroup, member});
  }
  return changed;
}

// The members of a shard_as group get one sharding: that of all merged, or else of the first.
void Propagator::AgreeInShardGroups() {
  for (auto& [key, group] : groups_) {
    if (group.like) continue;
    LeafTilings common;
    Instruction first;
    for (Instruction member : group.members) {
      if (!Has(member)) continue;
      if (common.empty()) {
        common = Get(member);
        first = member;
        continue;
      }
      if (Get(member).size() != common.size()) continue;
      for (size_t k = 0; k < common.size(); ++k) {
        if (std::optional<Tiling> merged = Merge(*Get(member)[k], *common[k], MergePolicy::kWholeDimensions)) {
          common[k] = Intern(*merged);
        }
      }
    }
    for (Instruction member : group.members) {
      if (common.size() != LeafShapes(member).size() || Get(member) == common) continue;
      SetFrom(member, common, {SourceKind::kShardGroup, first});
    }
    for (Instruction member : group.members) fixed_[member.id().value] = 1;
  }
}

}  // namespace hlokit::sharding
