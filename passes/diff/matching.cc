// SPDX-License-Identifier: Apache-2.0
#include "passes/diff/matching.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/types/span.h"
#include "ir/core/hashing.h"
#include "ir/ops/opcode_set.h"
#include "passes/diff/instruction_labels.h"

namespace hlokit {
namespace {

using Key = uint64_t;

struct Keyed {
  Key key;
  uint32_t position;
  InstructionId id;
};

// Sorted by key; equal keys in the order of the instructions.
class KeyedList {
 public:
  void Add(Key key, InstructionId id) { list_.push_back({key, static_cast<uint32_t>(list_.size()), id}); }
  void Sort() {
    std::sort(list_.begin(), list_.end(),
              [](const Keyed& x, const Keyed& y) { return x.key != y.key ? x.key < y.key : x.position < y.position; });
  }
  absl::Span<const Keyed> list() const { return list_; }

 private:
  std::vector<Keyed> list_;
};

// Calls `visit(span of a, span of b)` for each key that both lists have, ascending.
template <typename Visit>
void ForEachCommonKey(KeyedList& a, KeyedList& b, Visit visit) {
  a.Sort();
  b.Sort();
  const absl::Span<const Keyed> in_a = a.list(), in_b = b.list();
  const auto run = [](absl::Span<const Keyed> list, size_t begin) {
    size_t end = begin;
    while (end < list.size() && list[end].key == list[begin].key) ++end;
    return end - begin;
  };
  for (size_t i = 0, j = 0; i < in_a.size() && j < in_b.size();) {
    if (in_a[i].key != in_b[j].key) {
      ++(in_a[i].key < in_b[j].key ? i : j);
      continue;
    }
    const size_t count_a = run(in_a, i), count_b = run(in_b, j);
    visit(in_a.subspan(i, count_a), in_b.subspan(j, count_b));
    i += count_a;
    j += count_b;
  }
}

struct Side {
  explicit Side(const Module& m)
      : module(m),
        labels(LabelInstructions(m)),
        partner(m.instruction_id_bound()),
        computation_partner(m.computation_id_bound()),
        color(m.instruction_id_bound()),
        next_color(m.instruction_id_bound()) {}

  bool IsFree(InstructionId id) const { return !partner[id.value].valid(); }
  std::vector<InstructionId> FreeOf(ComputationId computation) const {
    std::vector<InstructionId> free;
    for (InstructionId id : labels.order[computation.value]) {
      if (IsFree(id)) free.push_back(id);
    }
    return free;
  }

  const Module& module;
  const InstructionLabels labels;
  std::vector<InstructionId> partner;
  std::vector<ComputationId> computation_partner;
  // Of the refinement: of a matched pair the same on both sides.
  std::vector<Key> color, next_color;
};

class Matcher {
 public:
  Matcher(const Module& a, const Module& b) : a_(a), b_(b) {}

  ModuleMatching Run() {
    PairComputations(a_.module.entry(), b_.module.entry());
    MatchPendingComputations();
    // Computations whose callers have no counterparts.
    PairFreeComputations([](const Side& side, Computation c) { return side.labels.computations[c.id().value]; });
    PairFreeComputations([](const Side&, Computation c) { return MixHash(c.record().name.value, 1); });
    MatchAcrossComputations();
    return {std::move(a_.partner), std::move(b_.partner), std::move(a_.computation_partner),
            std::move(b_.computation_partner)};
  }

 private:
  // ---- computations ----

  void PairComputations(Computation x, Computation y) {
    if (!x.valid() || !y.valid()) return;
    ComputationId &in_b = a_.computation_partner[x.id().value], &in_a = b_.computation_partner[y.id().value];
    if (in_b.valid() || in_a.valid()) return;
    in_b = y.id();
    in_a = x.id();
    pending_computations_.push_back(x.id());
  }

  template <typename KeyOf>
  void PairFreeComputations(KeyOf key_of) {
    KeyedList in_a, in_b;
    const auto collect = [&](const Side& side, KeyedList* list) {
      for (const Computation c : side.module.computations()) {
        // The id stands for the first instruction, since lists are of instructions.
        if (!side.computation_partner[c.id().value].valid()) list->Add(key_of(side, c), InstructionId(c.id().value));
      }
    };
    collect(a_, &in_a);
    collect(b_, &in_b);
    std::vector<std::pair<ComputationId, ComputationId>> pairs;
    ForEachCommonKey(in_a, in_b, [&](absl::Span<const Keyed> x, absl::Span<const Keyed> y) {
      if (x.size() != y.size()) return;
      for (size_t k = 0; k < x.size(); ++k) {
        pairs.emplace_back(ComputationId(x[k].id.value), ComputationId(y[k].id.value));
      }
    });
    for (const auto& [x, y] : pairs) PairComputations(a_.module.computation(x), b_.module.computation(y));
    MatchPendingComputations();
  }

  void MatchPendingComputations() {
    while (!pending_computations_.empty()) {
      const ComputationId x = pending_computations_.front();
      pending_computations_.pop_front();
      MatchComputations(x, a_.computation_partner[x.value]);
      // Callees of matched callers.
      for (InstructionId id : a_.labels.order[x.value]) {
        if (a_.IsFree(id)) continue;
        const std::vector<Computation> in_a = a_.module.instruction(id).called_computations();
        if (in_a.empty()) continue;
        const std::vector<Computation> in_b = b_.module.instruction(a_.partner[id.value]).called_computations();
        for (size_t k = 0; k < in_a.size() && k < in_b.size(); ++k) PairComputations(in_a[k], in_b[k]);
      }
    }
  }

  // ---- one pair of computations ----

  void MatchComputations(ComputationId x, ComputationId y) {
    const auto whole = [](const Side& side, InstructionId id) {
      return MixHash(side.labels.upstream[id.value], side.labels.downstream[id.value]);
    };
    MatchByKey(x, y, whole, /*equal_counts=*/true);
    MatchByKey(
        x, y, [](const Side& side, InstructionId id) { return side.labels.upstream[id.value]; },
        /*equal_counts=*/false);
    MatchByKey(
        x, y, [](const Side& side, InstructionId id) { return side.labels.downstream[id.value]; },
        /*equal_counts=*/false);
    for (size_t level = 0; level < kLabelLevels; ++level) Refine(x, y, static_cast<LabelLevel>(level));
    MatchParameters(a_.module.computation(x), b_.module.computation(y));
    const Instruction root_a = a_.module.computation(x).root(), root_b = b_.module.computation(y).root();
    if (a_.IsFree(root_a.id()) && b_.IsFree(root_b.id()) && root_a.opcode() == root_b.opcode()) {
      Match(root_a.id(), root_b.id());
    }
    Propagate(LabelLevel::kOpcode);
    MatchChangedOpcodes(x);
  }

  void Match(InstructionId x, InstructionId y) {
    a_.partner[x.value] = y;
    b_.partner[y.value] = x;
    const Key color = MixHash(x.value, y.value + uint64_t{1});
    a_.color[x.value] = a_.next_color[x.value] = color;
    b_.color[y.value] = b_.next_color[y.value] = color;
    pairs_.push_back(x);
  }

  // Matches free instructions whose key only one instruction has on each side and then, with `equal_counts`, those
  // whose key equally many have, in their order.
  template <typename KeyOf>
  bool MatchByKey(ComputationId x, ComputationId y, KeyOf key_of, bool equal_counts) {
    return MatchByKey(a_.FreeOf(x), b_.FreeOf(y), key_of, equal_counts);
  }
  template <typename KeyOf>
  bool MatchByKey(absl::Span<const InstructionId> free_a, absl::Span<const InstructionId> free_b, KeyOf key_of,
                  bool equal_counts) {
    KeyedList in_a, in_b;
    for (InstructionId id : free_a) in_a.Add(key_of(a_, id), id);
    for (InstructionId id : free_b) in_b.Add(key_of(b_, id), id);
    const size_t before = pairs_.size();
    std::vector<std::pair<absl::Span<const Keyed>, absl::Span<const Keyed>>> groups;
    ForEachCommonKey(in_a, in_b, [&](absl::Span<const Keyed> x, absl::Span<const Keyed> y) {
      if (x.size() == 1 && y.size() == 1) {
        Match(x[0].id, y[0].id);
      } else if (equal_counts && x.size() == y.size()) {
        groups.emplace_back(x, y);
      }
    });
    Propagate(LabelLevel::kContents);
    // Members of a group that their neighbors do not tell apart.
    for (const auto& [x, y] : groups) {
      for (size_t i = 0, j = 0; i < x.size() && j < y.size();) {
        if (!a_.IsFree(x[i].id)) {
          ++i;
        } else if (!b_.IsFree(y[j].id)) {
          ++j;
        } else {
          Match(x[i].id, y[j].id);
          Propagate(LabelLevel::kContents);
        }
      }
    }
    return pairs_.size() != before;
  }

  // Matches instructions whose neighborhoods are equal and occur once, from large ones to small ones, until no more are
  // found.
  void Refine(ComputationId x, ComputationId y, LabelLevel level) {
    constexpr int kMaxRounds = 6;
    constexpr int kSteps = 3;
    Propagate(level);
    for (int round = 0; round < kMaxRounds; ++round) {
      const std::vector<InstructionId> free_a = a_.FreeOf(x), free_b = b_.FreeOf(y);
      if (free_a.empty() || free_b.empty()) return;
      std::vector<std::vector<Key>> colors_a(kSteps), colors_b(kSteps);
      StartColors(a_, free_a, level);
      StartColors(b_, free_b, level);
      for (int step = 0; step < kSteps; ++step) {
        RefineColors(a_, free_a, &colors_a[static_cast<size_t>(step)]);
        RefineColors(b_, free_b, &colors_b[static_cast<size_t>(step)]);
      }
      bool found = false;
      for (int step = kSteps; step-- > 0 && !found;) {
        for (size_t k = 0; k < free_a.size(); ++k) a_.color[free_a[k].value] = colors_a[static_cast<size_t>(step)][k];
        for (size_t k = 0; k < free_b.size(); ++k) b_.color[free_b[k].value] = colors_b[static_cast<size_t>(step)][k];
        found = MatchByKey(
            free_a, free_b, [](const Side& side, InstructionId id) { return side.color[id.value]; },
            /*equal_counts=*/level <= LabelLevel::kOperation && step == kSteps - 1);
        Propagate(level);
      }
      if (!found) return;
    }
  }

  static void StartColors(Side& side, absl::Span<const InstructionId> free, LabelLevel level) {
    for (InstructionId id : free) side.color[id.value] = side.labels.of(level, id);
  }

  // One step: the color of an instruction, of its operands by position, and of its users with the operand's position.
  static void RefineColors(Side& side, absl::Span<const InstructionId> free, std::vector<Key>* colors) {
    colors->reserve(free.size());
    for (InstructionId id : free) {
      const Instruction i = side.module.instruction(id);
      Key color = side.color[id.value];
      for (const Instruction operand : i.operands()) color = MixHash(color, side.color[operand.id().value]);
      Key users = i.is_root() ? 1 : 0;
      for (const auto [user, index] : i.uses()) {
        users += MixHash(side.color[user.id().value], static_cast<uint64_t>(index));
      }
      colors->push_back(MixHash(color, users));
    }
    for (size_t k = 0; k < free.size(); ++k) side.color[free[k].value] = (*colors)[k];
  }

  void MatchParameters(Computation x, Computation y) {
    if (x.parameter_count() != y.parameter_count()) return;
    for (int64_t i = 0; i < x.parameter_count(); ++i) {
      const Instruction p = x.parameter(i), q = y.parameter(i);
      if (p.valid() && q.valid() && a_.IsFree(p.id()) && b_.IsFree(q.id())) Match(p.id(), q.id());
    }
  }

  // ---- neighbors of matched pairs ----

  // Matches the counterparts of the operands and users of all pairs as far as their labels are equal, first by the
  // strongest label.
  void Propagate(LabelLevel weakest) {
    for (size_t level = 0; level <= static_cast<size_t>(weakest);) {
      size_t& done = propagated_[level];
      if (done == pairs_.size()) {
        ++level;
        continue;
      }
      const InstructionId x = pairs_[done++];
      const size_t before = pairs_.size();
      const InstructionId y = a_.partner[x.value];
      PropagateToOperands(a_.module.instruction(x), b_.module.instruction(y), static_cast<LabelLevel>(level));
      PropagateToUsers(a_.module.instruction(x), b_.module.instruction(y), static_cast<LabelLevel>(level));
      if (pairs_.size() != before) level = 0;  // stronger evidence first
    }
  }

  void PropagateToOperands(Instruction x, Instruction y, LabelLevel level) {
    if (x.operand_count() == y.operand_count()) {
      for (int64_t k = 0; k < x.operand_count(); ++k) {
        const InstructionId p = x.operand(k).id(), q = y.operand(k).id();
        if (!a_.IsFree(p) || !b_.IsFree(q)) continue;
        if (a_.labels.of(level, p) == b_.labels.of(level, q)) Match(p, q);
      }
      return;
    }
    // Operands were added or removed: those that occur once.
    KeyedList in_a, in_b;
    for (const Instruction operand : x.operands()) {
      if (a_.IsFree(operand.id())) in_a.Add(a_.labels.of(level, operand.id()), operand.id());
    }
    for (const Instruction operand : y.operands()) {
      if (b_.IsFree(operand.id())) in_b.Add(b_.labels.of(level, operand.id()), operand.id());
    }
    MatchUnique(in_a, in_b);
  }

  void PropagateToUsers(Instruction x, Instruction y, LabelLevel level) {
    // Users of a large number of users are told apart by their other neighbors.
    constexpr size_t kMaxUsers = 1000;
    KeyedList in_a, in_b;
    const auto collect = [&](const Side& side, Instruction i, KeyedList* list) {
      size_t users = 0;
      for (const auto [user, index] : i.uses()) {
        if (++users > kMaxUsers) return;
        if (!side.IsFree(user.id())) continue;
        list->Add(MixHash(side.labels.of(level, user.id()), static_cast<uint64_t>(index)), user.id());
      }
    };
    collect(a_, x, &in_a);
    if (in_a.list().empty()) return;
    collect(b_, y, &in_b);
    if (in_b.list().empty()) return;
    MatchUnique(in_a, in_b);
  }

  void MatchUnique(KeyedList& in_a, KeyedList& in_b) {
    ForEachCommonKey(in_a, in_b, [&](absl::Span<const Keyed> x, absl::Span<const Keyed> y) {
      if (x.size() == 1 && y.size() == 1 && a_.IsFree(x[0].id) && b_.IsFree(y[0].id)) Match(x[0].id, y[0].id);
    });
  }

  // Matches instructions of different opcodes whose operands are counterparts, and users if there is but one operand.
  void MatchChangedOpcodes(ComputationId x) {
    for (InstructionId id : a_.FreeOf(ComputationId(x))) {
      const Instruction i = a_.module.instruction(id);
      if (i.operand_count() == 0) continue;
      const InstructionId first = a_.partner[i.operand(0).id().value];
      if (!first.valid()) continue;
      Instruction found;
      size_t candidates = 0, users = 0;
      for (const auto [user, index] : b_.module.instruction(first).uses()) {
        constexpr size_t kMaxUsers = 1000;
        if (++users > kMaxUsers) break;
        if (index != 0 || !b_.IsFree(user.id()) || !AreCounterparts(i, user)) continue;
        found = user;
        ++candidates;
      }
      if (candidates == 1) Match(id, found.id());
    }
  }

  bool AreCounterparts(Instruction x, Instruction y) const {
    if (x.operand_count() != y.operand_count() || x.is_root() != y.is_root()) return false;
    for (int64_t k = 0; k < x.operand_count(); ++k) {
      if (a_.partner[x.operand(k).id().value] != y.operand(k).id()) return false;
    }
    // Two operands are evidence enough.
    if (x.operand_count() > 1 && x.operand(0) != x.operand(1)) return true;
    if (!x.has_users() || !y.has_users()) return x.has_users() == y.has_users();
    const auto first_of = [](Instruction i) { return *i.uses().begin(); };
    return a_.partner[first_of(x).user.id().value] == first_of(y).user.id();
  }

  // ---- across computations ----

  void MatchAcrossComputations() {
    const auto free_of = [](const Side& side) {
      std::vector<InstructionId> free;
      for (const Computation c : side.module.computations()) {
        for (InstructionId id : side.FreeOf(c.id())) {
          const Opcode opcode = side.module.record(id).opcode;
          if (!OpcodeSet{Opcode::kParameter, Opcode::kTuple, Opcode::kGetTupleElement}.Contains(opcode)) {
            free.push_back(id);
          }
        }
      }
      return free;
    };
    // By operation and scope, then by operation and name.
    const auto scope_of = [](const Side& side, InstructionId id) {
      const Instruction i = side.module.instruction(id);
      return i.metadata_id().valid() ? i.metadata().op_name : StringId();
    };
    const auto with_scope = [&](const Side& side) {
      std::vector<InstructionId> ids = free_of(side);
      std::erase_if(ids, [&](InstructionId id) { return !scope_of(side, id).valid(); });
      return ids;
    };
    MatchByKey(
        with_scope(a_), with_scope(b_),
        [&](const Side& side, InstructionId id) {
          return MixHash(side.labels.of(LabelLevel::kOperation, id), scope_of(side, id).value);
        },
        /*equal_counts=*/false);
    Propagate(LabelLevel::kKind);
    MatchByKey(
        free_of(a_), free_of(b_),
        [](const Side& side, InstructionId id) {
          return MixHash(side.labels.of(LabelLevel::kOperation, id), side.module.record(id).name.value);
        },
        /*equal_counts=*/false);
    Propagate(LabelLevel::kKind);
    for (const Computation c : a_.module.computations()) {
      for (const Instruction i : c.instructions()) {
        if (a_.IsFree(i.id())) continue;
        const std::vector<Computation> in_a = i.called_computations();
        if (in_a.empty()) continue;
        const std::vector<Computation> in_b = b_.module.instruction(a_.partner[i.id().value]).called_computations();
        for (size_t k = 0; k < in_a.size() && k < in_b.size(); ++k) PairComputations(in_a[k], in_b[k]);
      }
    }
    MatchPendingComputations();
  }

  Side a_, b_;
  std::deque<ComputationId> pending_computations_;  // of a; their partners are known
  std::vector<InstructionId> pairs_;                // of a, in the order in which they were matched
  size_t propagated_[kLabelLevels] = {};            // by level, the pairs whose neighbors were visited
};

}  // namespace

ModuleMatching MatchModules(const Module& a, const Module& b) { return Matcher(a, b).Run(); }

}  // namespace hlokit
