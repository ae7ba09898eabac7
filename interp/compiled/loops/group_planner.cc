// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/loops/group_planner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "interp/compiled/loops/inplace_input.h"
#include "interp/compiled/loops/loop_builder.h"
#include "interp/compiled/loops/reduce_thunk.h"
#include "ir/graph/traversal.h"

namespace hlokit::interp::compiled {
namespace {

class GroupPlanner {
 public:
  GroupPlanner(Computation computation, const GroupOptions& options, const std::function<bool(Instruction)>& may_join)
      : options_(options), may_join_(may_join) {
    for (InstructionId id : PostOrder(computation)) {
      position_[id.value] = static_cast<int>(order_.size());
      order_.push_back(computation.module().instruction(id));
    }
    group_of_.assign(order_.size(), -1);
    user_count_.assign(order_.size(), 0);
    for (Instruction i : order_) {
      for (Instruction operand : i.operands()) ++user_count_[PositionOf(operand)];
    }
  }

  std::vector<InstructionGroup> Run() {
    for (int at = 0; at < static_cast<int>(order_.size()); ++at) {
      std::optional<Group> made = GroupOfOne(at);
      if (!made) continue;
      const int own = static_cast<int>(groups_.size());
      groups_.push_back(*std::move(made));
      group_of_[at] = own;
      // What it moves comes from outside of its loop.
      if (IsInplaceInput(order_[at])) continue;
      for (Instruction operand : order_[at].operands()) {
        const int source = PositionOf(operand);
        if (group_of_[source] >= 0 && group_of_[source] != own) Merge(group_of_[source], own);
      }
      if (groups_[own].members.size() == 1 && IsView(order_[at])) {
        // By itself a view of its operand, without a loop.
        groups_.pop_back();
        group_of_[at] = -1;
      }
    }
    // Reductions of other dimensions join what they reduce, if that is not needed by a loop over rows.
    for (int at = 0; at < static_cast<int>(order_.size()); ++at) {
      std::optional<Group> made = GroupOfReduction(at);
      if (!made) continue;
      const int own = static_cast<int>(groups_.size());
      groups_.push_back(*std::move(made));
      group_of_[at] = own;
      const int source = group_of_[PositionOf(order_[at].operand(0))];
      if (source >= 0) Merge(source, own);
    }
    std::vector<InstructionGroup> result;
    for (const Group& group : groups_) {
      if (group.members.empty() || !IsWorthCode(group)) continue;
      InstructionGroup made;
      for (int at : group.members) made.members.push_back(order_[at]);
      made.shape = group.shape;
      made.row_rank = group.row_rank;
      made.reduced = group.reduced;
      result.push_back(std::move(made));
    }
    return result;
  }

 private:
  struct Group {
    std::vector<int> members;      // positions, ascending; empty: merged into another
    int64_t elements = 0;          // of `shape`
    Shape shape;                   // of the loop
    int64_t row_rank = -1;         // leading dimensions of `shape` that count rows; -1: no reductions
    bool reshapes = false;         // members have other dimensions
    std::vector<int64_t> reduced;  // dimensions that members reduce whose results leave the loop
    bool norms = false;            // has batch normalizations
    bool inplace = false;          // has members that move elements
  };

  // Of a member.
  static bool IsView(Instruction i) {
    return HasTrait(i.opcode(), kReinterprets) || HasTrait(i.opcode(), kForwards) || i.opcode() == Opcode::kBroadcast;
  }

  // Returns the group of an instruction alone, or nullopt if it belongs to no loop.
  std::optional<Group> GroupOfOne(int at) const {
    const Instruction i = order_[at];
    Group group;
    group.members = {at};
    group.shape = i.shape();
    if (IsLoopInstruction(i)) {
      group.reshapes = i.opcode() == Opcode::kReshape;
    } else if (IsLoopNorm(i)) {
      group.shape = i.operand(0).shape();
      group.norms = true;
    } else if (IsNormResult(i)) {
      if (group_of_[PositionOf(i.operand(0))] < 0) return std::nullopt;
    } else if (RowCombiner(i)) {
      group.shape = i.operand(0).shape();
      group.row_rank = i.shape().rank();
      const int64_t columns =
          i.shape().element_count() == 0 ? 0 : group.shape.element_count() / i.shape().element_count();
      if (columns < options_.min_columns || columns > options_.max_columns) return std::nullopt;
    } else if (IsRowBroadcast(i)) {
      // Only of values of rows that the loop computes.
      const int source = group_of_[PositionOf(i.operand(0))];
      group.row_rank = i.operand(0).shape().rank();
      if (source < 0 || groups_[source].row_rank != group.row_rank ||
          groups_[source].shape.dims() != i.shape().dims()) {
        return std::nullopt;
      }
    } else if (IsInplaceInput(i)) {
      if (i.opcode() == Opcode::kGather && i.shape().dims().back() < options_.min_run) return std::nullopt;
      group.inplace = true;
    } else {
      return std::nullopt;
    }
    if (!may_join_(i)) return std::nullopt;
    group.elements = group.shape.element_count();
    return group;
  }

  // Returns the group of a reduction alone that is in none, or nullopt if it is not to be compiled.
  std::optional<Group> GroupOfReduction(int at) const {
    const Instruction i = order_[at];
    Group group;
    if (group_of_[at] >= 0 || !ReduceCombiner(i, &group.reduced)) return std::nullopt;
    group.members = {at};
    group.shape = i.operand(0).shape();
    group.elements = group.shape.element_count();
    if (!IsReductionForLoop(group.shape, group.reduced) || !may_join_(i)) return std::nullopt;
    return group;
  }

  // Returns true if both can be one loop, and sets its shape in `b`'s place.
  static bool Agree(const Group& a, const Group& b, Group* merged) {
    merged->reshapes = a.reshapes || b.reshapes || a.shape.dims() != b.shape.dims();
    const Group& rows = a.row_rank >= 0 ? a : b;
    merged->shape = rows.shape;
    merged->elements = rows.elements;
    merged->row_rank = rows.row_rank;
    merged->norms = a.norms || b.norms;
    merged->inplace = a.inplace || b.inplace;
    merged->reduced = a.reduced.empty() ? b.reduced : a.reduced;
    if (merged->norms || !merged->reduced.empty()) {
      return rows.row_rank < 0 && !merged->reshapes &&
             (a.reduced.empty() || b.reduced.empty() || a.reduced == b.reduced);
    }
    if (rows.row_rank < 0) return a.elements == b.elements;
    if (a.reshapes || b.reshapes) return false;
    merged->reshapes = false;
    const Group& other = a.row_rank >= 0 ? b : a;
    if (other.row_rank >= 0) return a.row_rank == b.row_rank && a.shape.dims() == b.shape.dims();
    return other.shape.dims() == rows.shape.dims() ||
           other.shape.dims() == rows.shape.dims().subspan(0, static_cast<size_t>(rows.row_rank));
  }

  bool IsWorthCode(const Group& group) const {
    // A norm by itself saves the passes of its exact kernel.
    const int64_t saved = static_cast<int64_t>(group.members.size()) - 1 + (group.norms ? 2 : 0);
    // What only moves elements has exact kernels that copy.
    const bool computes = !group.inplace || std::any_of(group.members.begin(), group.members.end(), [&](int at) {
      return !IsInplaceInput(order_[at]) && !IsView(order_[at]);
    });
    return computes && group.elements >= options_.min_elements &&
           (saved * group.elements >= options_.min_saved || group.elements >= options_.min_single);
  }

  int PositionOf(Instruction i) const { return position_.at(i.id().value); }

  // Calls f(position) for what a member or a single instruction depends on.
  template <typename F>
  void ForEachDependency(int at, F f) const {
    for (Instruction operand : order_[at].operands()) f(PositionOf(operand));
    if (!order_[at].has(Attr::kControlPredecessors)) return;
    for (Instruction p : order_[at].control_predecessors()) f(PositionOf(p));
  }

  int LastOf(int at) const { return group_of_[at] < 0 ? at : groups_[group_of_[at]].members.back(); }

  // Returns true if a path leads from a member of `a` or `b` through an instruction outside of both to a member. Gives
  // up after a number of steps, as if there were one.
  bool HasOutsidePath(int a, int b) const {
    const int first = std::min(groups_[a].members.front(), groups_[b].members.front());
    const auto inside = [&](int at) { return group_of_[at] == a || group_of_[at] == b; };
    std::vector<int> pending;
    absl::flat_hash_set<int> seen;
    int steps = 0;
    const auto push = [&](int at) {
      ++steps;
      if (inside(at) || LastOf(at) < first) return;
      if (!seen.insert(group_of_[at] < 0 ? at : -1 - group_of_[at]).second) return;
      pending.push_back(at);
    };
    for (int g : {a, b}) {
      for (int member : groups_[g].members) ForEachDependency(member, push);
    }
    constexpr int kMaxSteps = 4000;
    while (!pending.empty()) {
      if (steps > kMaxSteps) return true;
      const int at = pending.back();
      pending.pop_back();
      bool back = false;
      const auto visit = [&](int on) {
        back = back || inside(on);
        push(on);
      };
      if (group_of_[at] < 0) {
        ForEachDependency(at, visit);
      } else {
        for (int member : groups_[group_of_[at]].members) ForEachDependency(member, visit);
      }
      if (back) return true;
    }
    return false;
  }

  // Returns the number of arrays that the loop of both groups reads or writes, at most.
  int CountArrays(int a, int b) const {
    absl::flat_hash_set<int> arrays;
    for (int g : {a, b}) {
      for (int member : groups_[g].members) {
        // More users than a group has members: some are outside.
        bool leaves = user_count_[member] == 0 || user_count_[member] > 3 * options_.max_members;
        if (!leaves) {
          for (Instruction user : order_[member].users()) {
            const int u = group_of_[PositionOf(user)];
            leaves = leaves || (u != a && u != b);
          }
        }
        if (leaves) arrays.insert(-1 - member);
        for (Instruction operand : order_[member].operands()) {
          const int at = PositionOf(operand);
          if (group_of_[at] != a && group_of_[at] != b) arrays.insert(at);
        }
      }
    }
    return static_cast<int>(arrays.size());
  }

  // Returns true if a member needs all elements of another first: of a reduction that leaves the loop, of the
  // operand of a norm, or of what it moves.
  bool HasBarrier(int a, int b, const Group& merged) const {
    const bool has_rows = merged.row_rank >= 0;
    if (!merged.norms && !merged.inplace && merged.reduced.empty()) return false;
    for (int g : {a, b}) {
      for (int member : groups_[g].members) {
        const bool takes_all = IsLoopNorm(order_[member]) || IsInplaceInput(order_[member]);
        for (Instruction operand : order_[member].operands()) {
          const int at = PositionOf(operand);
          if (group_of_[at] != a && group_of_[at] != b) continue;
          if (takes_all || (operand.opcode() == Opcode::kReduce && !has_rows)) return true;
        }
      }
    }
    return false;
  }

  // Merges group `a`, of an operand, into `b`, if that is possible.
  void Merge(int a, int b) {
    Group& from = groups_[a];
    Group& to = groups_[b];
    Group merged;
    if (!Agree(from, to, &merged) || HasBarrier(a, b, merged) ||
        static_cast<int>(from.members.size() + to.members.size()) > options_.max_members ||
        CountArrays(a, b) > options_.max_arrays || HasOutsidePath(a, b)) {
      return;
    }
    std::vector<int> members(from.members.size() + to.members.size());
    std::merge(from.members.begin(), from.members.end(), to.members.begin(), to.members.end(), members.begin());
    for (int at : from.members) group_of_[at] = b;
    from.members.clear();
    merged.members = std::move(members);
    to = std::move(merged);
  }

  const GroupOptions& options_;
  const std::function<bool(Instruction)>& may_join_;
  std::vector<Instruction> order_;
  absl::flat_hash_map<uint32_t, int> position_;
  std::vector<int> group_of_;
  std::vector<int> user_count_;  // uses, of each position
  std::vector<Group> groups_;
};

}  // namespace

std::vector<InstructionGroup> PlanGroups(Computation computation, const GroupOptions& options,
                                         const std::function<bool(Instruction)>& may_join) {
  return GroupPlanner(computation, options, may_join).Run();
}

}  // namespace hlokit::interp::compiled
