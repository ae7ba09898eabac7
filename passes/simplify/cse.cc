#include "passes/simplify/cse.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/hashing.h"
#include "ir/intern_index.h"
#include "ir/side_effects.h"
#include "ir/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/simplify/unreachable.h"

namespace hlokit {

namespace {

// Instructions of one computation, no two of which are equal. An instruction is its own key: nothing is copied.
class InstructionSet {
 public:
  explicit InstructionSet(const Module& module) : module_(module) {}

  // Room for `n` instructions of the next computation; those of the last are forgotten.
  void Restart(size_t n) {
    index_ = InternIndex();
    index_.Reserve(n);
  }

  // The first instruction equal to this one: itself if there was none.
  InstructionId Find(InstructionId id) {
    const InstructionRecord& r = module_.record(id);
    return InstructionId(index_.FindOrInsert(
        Hash(r), [&](uint32_t other) { return Equal(module_.record(InstructionId(other)), r); },
        [id] { return id.value; }));
  }

 private:
  static bool Matters(const AttrValue& a) { return InfoOf(a.attr).meaning != AttrMeaning::kAnnotation; }
  static bool TurnsAround(const InstructionRecord& r) {
    return r.operand_count == 2 && HasTrait(r.opcode, kCommutative);
  }
  uint32_t OperandOf(const InstructionRecord& r, uint32_t k) const {
    return module_.use(UseId(r.operand_begin + k)).def.value;
  }

  uint64_t Hash(const InstructionRecord& r) const {
    uint64_t hash = MixHash(static_cast<uint64_t>(r.opcode) << 32 | r.shape.value, r.payload);
    if (r.operand_count == 2) {
      uint64_t a = OperandOf(r, 0), b = OperandOf(r, 1);
      if (a > b && TurnsAround(r)) std::swap(a, b);
      hash = MixHash(hash, a << 32 | b);
    } else {
      for (uint32_t k = 0; k < r.operand_count; ++k) hash = MixHash(hash, OperandOf(r, k));
    }
    for (const AttrValue& a : module_.attrs_of(r)) {
      if (!Matters(a)) continue;
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
    if (!same_) same_ = EqualComputations(module_);
    const auto same = [this](int64_t p, int64_t q) {
      return (*same_)[static_cast<size_t>(p)] == (*same_)[static_cast<size_t>(q)];
    };
    if (type == AttrType::kComputation) return same(a.payload, b.payload);
    const absl::Span<const int64_t> x = module_.context().list(ListId(a.payload));
    const absl::Span<const int64_t> y = module_.context().list(ListId(b.payload));
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  }

  bool Equal(const InstructionRecord& x, const InstructionRecord& y) {
    if (x.opcode != y.opcode || x.shape != y.shape || x.payload != y.payload || x.operand_count != y.operand_count) {
      return false;
    }
    bool operands = true;
    for (uint32_t k = 0; k < x.operand_count; ++k) operands &= OperandOf(x, k) == OperandOf(y, k);
    if (!operands && !(TurnsAround(x) && OperandOf(x, 0) == OperandOf(y, 1) && OperandOf(x, 1) == OperandOf(y, 0))) {
      return false;
    }
    const absl::Span<const AttrValue> a = module_.attrs_of(x), b = module_.attrs_of(y);
    size_t i = 0, k = 0;
    while (true) {
      while (i < a.size() && !Matters(a[i])) ++i;
      while (k < b.size() && !Matters(b[k])) ++k;
      if (i == a.size() || k == b.size()) return i == a.size() && k == b.size();
      if (!EqualAttr(a[i++], b[k++])) return false;
    }
  }

  const Module& module_;
  // By computation, the one that stands for all equal to it. Found when instructions differ in nothing else.
  std::optional<std::vector<uint32_t>> same_;
  InternIndex index_;
};

// What the callees of the one that stays stand for: those of the one that goes too. `carried`: pairs done before.
void CarryCallees(Module& module, Instruction goes, Instruction stays, absl::flat_hash_set<uint64_t>* carried) {
  if (!MayCall(goes.opcode())) return;
  const std::vector<Computation> from = goes.called_computations(), to = stays.called_computations();
  for (size_t k = 0; k < from.size() && k < to.size(); ++k) {
    CarryBetweenEqual(module, from[k].id(), to[k].id(), carried);
  }
}

// Opcodes of which every instruction without control edges may be merged with its equals, whatever its attributes.
bool IsPlain(Opcode opcode) {
  static const std::array<bool, kOpcodeCount + 1> kTable = [] {
    std::array<bool, kOpcodeCount + 1> table{};
    for (size_t i = 0; i < kOpcodeCount; ++i) {
      const Opcode op = static_cast<Opcode>(i);
      constexpr uint16_t kMayHaveEffect = kSideEffect | kCollective | kStartsAsync | kUpdatesAsync | kEndsAsync;
      table[i] = (InfoOf(op).traits & kMayHaveEffect) == 0 && !MayCall(op) && op != Opcode::kCustomCall &&
                 op != Opcode::kParameter && op != Opcode::kConstant;
    }
    return table;
  }();
  return kTable[static_cast<size_t>(opcode)];
}

bool MayMerge(Instruction i, const SideEffects& effects) {
  for (const AttrValue& a : i.attrs()) {
    if (a.attr == Attr::kControlPredecessors) return false;
  }
  if (IsPlain(i.opcode())) return true;
  return i.opcode() != Opcode::kParameter && !effects.Of(i) && !(i.opcode() == Opcode::kConstant && i.literal().elided);
}

}  // namespace

absl::StatusOr<bool> Cse::Run(Module& module) {
  const SideEffects effects(module);
  const ComputationRoles roles = RolesOf(module);
  InstructionSet seen(module);
  absl::flat_hash_set<uint64_t> carried;
  bool changed = false;
  for (Computation c : module.computations()) {
    if (roles.fusion[c.id().value] || roles.async[c.id().value]) continue;
    const int64_t candidates = c.instruction_count() - c.parameter_count();
    if (candidates < 2) continue;
    seen.Restart(static_cast<size_t>(candidates));
    // In the order of the computation, in which operands stand first, so that the one that stays stands before all
    // users.
    for (InstructionId id = c.record().first, next; id.valid(); id = next) {
      next = module.record(id).next;
      const Instruction i = module.instruction(id);
      if (!MayMerge(i, effects)) continue;
      const InstructionId first = seen.Find(id);
      if (first == id || !i.control_successors().empty()) continue;
      CarryCallees(module, i, module.instruction(first), &carried);
      Replace(module, id, first);
      Count("instructions merged");
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlokit
