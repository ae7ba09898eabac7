// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/cse.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "ir/core/hashing.h"
#include "ir/core/intern_index.h"
#include "ir/graph/side_effects.h"
#include "ir/graph/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/simplify/dead_code.h"

namespace hlokit {

namespace {

// A set of distinct instructions. An instruction is its own key: nothing is copied.
class InstructionSet {
 public:
  explicit InstructionSet(const Module& module) : module_(module) {}

  // Returns the first equal instruction of the computation, or `id` itself after inserting it.
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
      // Callees with different names may be equal.
      const bool calls = NamesComputations(a.attr);
      hash = MixHash(hash, static_cast<uint64_t>(a.attr) << 32 | (calls ? 0 : a.payload));
    }
    return hash;
  }

  bool EqualAttr(const AttrValue& a, const AttrValue& b) {
    if (a.attr != b.attr) return false;
    if (a.payload == b.payload) return true;
    if (!NamesComputations(a.attr)) return false;
    if (!same_) same_.emplace(module_);
    const auto callees = [this](const AttrValue& value) {
      absl::InlinedVector<ComputationId, 4> first;
      module_.ForEachCallee(value, [&](ComputationId callee) { first.push_back(same_->FirstEqual(callee)); });
      return first;
    };
    return callees(a) == callees(b);
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
  std::optional<EqualComputationSet> same_;  // computed when instructions differ only in their callees
  InternIndex index_;
};

// Adds the metadata sources of the callees of the erased instruction to those of the surviving one. `carried` holds the
// pairs already done.
void MergeMetadataOfCallees(Module& module, Instruction removed, Instruction kept,
                            absl::flat_hash_set<uint64_t>* carried) {
  if (!MightHaveCalledComputations(removed.opcode())) return;
  const std::vector<Computation> from = removed.called_computations(), to = kept.called_computations();
  for (size_t k = 0; k < from.size() && k < to.size(); ++k) {
    MergeMetadataOfEqual(module, from[k].id(), to[k].id(), carried);
  }
}

class Merger {
 public:
  explicit Merger(Module* module) : module_(*module), seen_(*module), waiting_(module->instruction_id_bound(), 0) {}

  // Returns the number of erased instructions of the computation.
  int64_t Merge(Computation computation);

 private:
  // Returns true if some operand has no other use, so that no earlier instruction can be equal. This skips the lookup
  // of most instructions, until the operand takes over the uses of another.
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
  std::optional<SideEffects> effects_;  // computed on demand
  std::vector<uint8_t> waiting_;        // by instruction: was alone when visited
  absl::flat_hash_set<uint64_t> carried_;
};

bool Merger::MayMerge(Instruction i) {
  for (const AttrValue& a : i.attrs()) {
    if (a.attr == Attr::kControlPredecessors) return false;
  }
  constexpr uint32_t kAsk = kSideEffect | kCollective | kAsyncChain | kCalls;
  if (i.opcode() == Opcode::kConstant) return !i.literal().elided;
  if ((kOpcodeTraits[static_cast<size_t>(i.opcode())] & kAsk) == 0 && i.opcode() != Opcode::kCustomCall) return true;
  if (!effects_) effects_.emplace(module_);
  return !effects_->Of(i);
}

int64_t Merger::Merge(Computation computation) {
  int64_t merged = 0;
  // In schedule order, with operands first, so that the surviving instruction precedes all users.
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
    // The only user of `first` will no longer be alone.
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

HLOKIT_PASS(Cse) {
  return {.name = "cse",
          .category = "simplify",
          .summary = "merge equal instructions",
          .doc =
              "Merges instructions of a computation that have the same opcode, shape, operands (in any order if the "
              "opcode is commutative) and attributes into the first of them. Called computations are equal if they are "
              "equal instruction by instruction. Instructions with side effects, parameters and elided constants do "
              "not merge. Metadata is ignored: the surviving instruction carries that of all.",
          .example = R"(ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  a = f32[4] add(p, q), metadata={op_name="f/a"}
  b = f32[4] add(q, p), metadata={op_name="f/b"}
  ROOT r = f32[4] multiply(a, b)
})",
          .create = MakePass<Cse>};
}

}  // namespace hlokit
