// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/cse.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/core/hashing.h"
#include "ir/core/intern_index.h"
#include "ir/graph/side_effects.h"
#include "ir/graph/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/simplify/dead_code.h"

namespace hlokit {

namespace {

// Instructions no two of which are equal. An instruction is its own key: nothing is copied.
class InstructionSet {
 public:
  explicit InstructionSet(const Module& module) : module_(module) {}

  // The first instruction of its computation equal to this one: itself if there was none.
  InstructionId Find(InstructionId id) {
    const InstructionRecord& r = module_.record(id);
    return InstructionId(index_.FindOrInsert(
        Hash(r), [&](uint32_t other) { return Equal(module_.record(InstructionId(other)), r); },
        [id] { return id.value; }));
  }

 private:
  static bool IsSemantic(const AttrValue& a) { return InfoOf(a.attr).category != AttrCategory::kAnnotation; }
  static bool IsCommutative(const InstructionRecord& r) {
    return r.operand_count == 2 && HasTrait(r.opcode, kCommutative);
  }
  uint32_t OperandOf(const InstructionRecord& r, uint32_t k) const {
    return module_.use(UseId(r.operand_begin + k)).def.value;
  }

  uint64_t Hash(const InstructionRecord& r) const {
    uint64_t hash = MixHash(static_cast<uint64_t>(r.opcode) << 32 | r.shape.value, r.payload);
    if (r.operand_count == 0) {
      hash = MixHash(hash, r.parent.value);
    } else if (r.operand_count == 2) {
      uint64_t a = OperandOf(r, 0), b = OperandOf(r, 1);
      if (a > b && IsCommutative(r)) std::swap(a, b);
      hash = MixHash(hash, a << 32 | b);
    } else {
      for (uint32_t k = 0; k < r.operand_count; ++k) hash = MixHash(hash, OperandOf(r, k));
    }
    for (const AttrValue& a : module_.attrs_of(r)) {
      if (!IsSemantic(a)) continue;
      const AttrType type = InfoOf(a.attr).type;
      // Computations that differ in name may be equal.
      const bool calls = type == AttrType::kComputation || type == AttrType::kComputationList;
      hash = MixHash(hash, static_cast<uint64_t>(a.attr) << 32 | (calls ? 0 : a.payload));
    }
    return hash;
  }

  bool EqualAttr(const AttrValue& a, const AttrValue& b) {
    if (a.attr != b.attr) return false;
    if (a.payload == b.payload) return true;
    const AttrType type = InfoOf(a.attr).type;
    if (type != AttrType::kComputation && type != AttrType::kComputationList) return false;
    if (!same_) same_.emplace(module_);
    const auto same = [this](int64_t p, int64_t q) {
      return same_->FirstEqual(ComputationId(static_cast<uint32_t>(p))) ==
             same_->FirstEqual(ComputationId(static_cast<uint32_t>(q)));
    };
    if (type == AttrType::kComputation) return same(a.payload, b.payload);
    const absl::Span<const int64_t> x = module_.context().list(ListId(a.payload));
    const absl::Span<const int64_t> y = module_.context().list(ListId(b.payload));
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  }

  bool Equal(const InstructionRecord& x, const InstructionRecord& y) {
    if (x.opcode != y.opcode || x.shape != y.shape || x.payload != y.payload || x.operand_count != y.operand_count ||
        x.parent != y.parent) {
      return false;
    }
    bool operands = true;
    for (uint32_t k = 0; k < x.operand_count; ++k) operands &= OperandOf(x, k) == OperandOf(y, k);
    if (!operands && !(IsCommutative(x) && OperandOf(x, 0) == OperandOf(y, 1) && OperandOf(x, 1) == OperandOf(y, 0))) {
      return false;
    }
    const absl::Span<const AttrValue> a = module_.attrs_of(x), b = module_.attrs_of(y);
    size_t i = 0, k = 0;
    while (true) {
      while (i < a.size() && !IsSemantic(a[i])) ++i;
      while (k < b.size() && !IsSemantic(b[k])) ++k;
      if (i == a.size() || k == b.size()) return i == a.size() && k == b.size();
      if (!EqualAttr(a[i++], b[k++])) return false;
    }
  }

  const Module& module_;
  std::optional<EqualComputationSet> same_;  // asked when instructions differ in nothing but what they call
  InternIndex index_;
};

// What the callees of the one that stays stand for: those of the one that goes too. `carried`: pairs done before.
void MergeMetadataOfCallees(Module& module, Instruction goes, Instruction stays,
                            absl::flat_hash_set<uint64_t>* carried) {
  if (!MightHaveCalledComputations(goes.opcode())) return;
  const std::vector<Computation> from = goes.called_computations(), to = stays.called_computations();
  for (size_t k = 0; k < from.size() && k < to.size(); ++k) {
    MergeMetadataOfEqual(module, from[k].id(), to[k].id(), carried);
  }
}

class Merger {
 public:
  explicit Merger(Module* module) : module_(*module), seen_(*module), waiting_(module->instruction_id_bound(), 0) {}

  // How many of the instructions of the computation went.
  int64_t Merge(Computation computation);

 private:
  // Some operand has no other use, so that none before it can be equal. Most instructions are so, and need not be
  // looked for; until the operand takes over the uses of another.
  bool IsAlone(const InstructionRecord& r) const {
    for (uint32_t k = 0; k < r.operand_count; ++k) {
      const UseId use(r.operand_begin + k);
      if (module_.use(use).next == use) return true;
    }
    return false;
  }
  bool MayMerge(Instruction i);

  Module& module_;
  InstructionSet seen_;
  std::optional<SideEffects> effects_;  // found when first asked for
  std::vector<uint8_t> waiting_;        // by instruction: was alone when its turn came
  absl::flat_hash_set<uint64_t> carried_;
};

bool Merger::MayMerge(Instruction i) {
  for (const AttrValue& a : i.attrs()) {
    if (a.attr == Attr::kControlPredecessors) return false;
  }
  constexpr uint32_t kAsk = kSideEffect | kCollective | kStartsAsync | kUpdatesAsync | kEndsAsync | kCalls;
  if (i.opcode() == Opcode::kConstant) return !i.literal().elided;
  if ((kOpcodeTraits[static_cast<size_t>(i.opcode())] & kAsk) == 0 && i.opcode() != Opcode::kCustomCall) return true;
  if (!effects_) effects_.emplace(module_);
  return !effects_->Of(i);
}

int64_t Merger::Merge(Computation computation) {
  int64_t merged = 0;
  // In the order of the computation, in which operands stand first, so that the one that stays stands before all users.
  for (InstructionId id = computation.record().first, next; id.valid(); id = next) {
    const InstructionRecord& r = module_.record(id);
    next = r.next;
    if (r.opcode == Opcode::kParameter) continue;
    if (IsAlone(r)) {
      waiting_[id.value] = 1;
      continue;
    }
    const Instruction i = module_.instruction(id);
    if (!MayMerge(i)) continue;
    const InstructionId first = seen_.Find(id);
    if (first == id || !i.control_successors().empty()) continue;
    MergeMetadataOfCallees(module_, i, module_.instruction(first), &carried_);
    // The only user that `first` has will not be alone with it.
    const UseId use = module_.record(first).first_use;
    const InstructionId user = use.valid() && module_.use(use).next == use ? module_.use(use).user : InstructionId();
    Replace(module_, id, first);
    ++merged;
    if (!user.valid() || waiting_[user.value] == 0 || IsAlone(module_.record(user))) continue;
    waiting_[user.value] = 0;
    if (MayMerge(module_.instruction(user))) seen_.Find(user);
  }
  return merged;
}

}  // namespace

absl::StatusOr<bool> Cse::Run(Module& module) {
  const ComputationRoles roles = RolesOf(module);
  Merger merger(&module);
  int64_t merged = 0;
  for (Computation c : module.computations()) {
    if (roles.fusion[c.id().value] || roles.async[c.id().value]) continue;
    if (c.instruction_count() - c.parameter_count() >= 2) merged += merger.Merge(c);
  }
  Count("instructions merged", merged);
  return merged != 0;
}

}  // namespace hlokit
