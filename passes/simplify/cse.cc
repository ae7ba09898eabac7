#include "passes/simplify/cse.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/side_effects.h"
#include "ir/traversal.h"
#include "passes/annotations/annotations.h"

namespace hlokit {
namespace {

// Exact keys as byte strings: equal keys mean equal things, so no hash is trusted.
class Key {
 public:
  void Clear() { bytes_.clear(); }
  void Add(uint32_t v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof(v)); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// `same[id]`: the computation that stands for all equal to it.
void AddAttributes(Key* key, Instruction i, const std::vector<uint32_t>& same) {
  const Module& module = i.module();
  for (const AttrValue& a : i.attrs()) {
    if (InfoOf(a.attr).meaning == AttrMeaning::kAnnotation) continue;
    key->Add(static_cast<uint32_t>(a.attr));
    const AttrType type = InfoOf(a.attr).type;
    if (type == AttrType::kComputation) {
      key->Add(same[a.payload]);
    } else if (type == AttrType::kComputationList) {
      const absl::Span<const int64_t> list = module.context().list(ListId(a.payload));
      key->Add(static_cast<uint32_t>(list.size()));
      for (int64_t id : list) key->Add(same[static_cast<size_t>(id)]);
    } else {
      key->Add(a.payload);
    }
  }
}

// For each computation the first one equal to it. Computations with control edges stand for themselves.
std::vector<uint32_t> EqualComputations(const Module& module) {
  std::vector<uint32_t> same(module.computation_id_bound());
  absl::flat_hash_map<std::string, uint32_t> first;
  std::vector<uint32_t> number(module.instruction_id_bound());
  Key key;
  for (ComputationId id : ComputationPostOrder(module)) {
    same[id.value] = id.value;
    key.Clear();
    uint32_t next = 0;
    bool plain = true;
    for (InstructionId k : PostOrder(module.computation(id))) {
      const Instruction i = module.instruction(k);
      number[k.value] = next++;
      plain &= !i.has(Attr::kControlPredecessors);
      key.Add(static_cast<uint32_t>(i.opcode()));
      key.Add(i.record().shape.value);
      key.Add(i.record().payload);
      key.Add(static_cast<uint32_t>(i.operand_count()));
      for (Instruction o : i.operands()) key.Add(number[o.id().value]);
      key.Add(static_cast<uint32_t>(i.attrs().size()));
      AddAttributes(&key, i, same);
    }
    key.Add(number[module.computation(id).record().root.value]);
    if (plain) same[id.value] = first.try_emplace(key.bytes(), id.value).first->second;
  }
  return same;
}

}  // namespace

absl::StatusOr<bool> Cse::Run(Module& module) {
  const SideEffects effects(module);
  const std::vector<uint32_t> same = EqualComputations(module);
  bool changed = false;
  Key key;
  for (Computation c : module.computations()) {
    absl::flat_hash_map<std::string, InstructionId> first;
    // In the order of the computation, in which operands stand first, so that the one that stays stands before all
    // users.
    for (InstructionId id = c.record().first, next; id.valid(); id = next) {
      next = module.record(id).next;
      const Instruction i = module.instruction(id);
      if (i.opcode() == Opcode::kParameter || effects.Of(i) || i.has(Attr::kControlPredecessors) ||
          !i.control_successors().empty() || (i.opcode() == Opcode::kConstant && i.literal().elided)) {
        continue;
      }
      key.Clear();
      key.Add(static_cast<uint32_t>(i.opcode()));
      key.Add(i.record().shape.value);
      key.Add(i.record().payload);
      key.Add(static_cast<uint32_t>(i.operand_count()));
      if (HasTrait(i.opcode(), kCommutative) && i.operand_count() == 2) {
        const uint32_t a = i.operand(0).id().value, b = i.operand(1).id().value;
        key.Add(std::min(a, b));
        key.Add(std::max(a, b));
      } else {
        for (Instruction o : i.operands()) key.Add(o.id().value);
      }
      AddAttributes(&key, i, same);
      const auto [at, inserted] = first.try_emplace(key.bytes(), id);
      if (inserted) continue;
      Replace(module, id, at->second);
      Count("instructions merged");
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlokit
