#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/simplify/calls/inline.h"
#include "passes/simplify/instruction_key.h"
#include "passes/simplify/unreachable.h"

namespace hlokit {

std::vector<uint32_t> EqualComputations(const Module& module) {
  std::vector<uint32_t> same(module.computation_id_bound());
  // Only computations of one size can be equal.
  absl::flat_hash_map<uint64_t, int64_t> twins;
  const auto size = [](Computation c) {
    return static_cast<uint64_t>(c.instruction_count()) << 32 | c.root().record().shape.value;
  };
  for (Computation c : module.computations()) {
    same[c.id().value] = c.id().value;
    ++twins[size(c)];
  }
  std::vector<uint32_t> number(module.instruction_id_bound());
  KeySet key;
  for (ComputationId id : ComputationPostOrder(module)) {
    if (twins[size(module.computation(id))] == 1) continue;
    key.Add(module.record(id).execution_thread.value);
    uint32_t next = 0;
    bool plain = true;
    for (InstructionId k : PostOrder(module.computation(id))) {
      const Instruction i = module.instruction(k);
      number[k.value] = next++;
      plain &= !i.has(Attr::kControlPredecessors);
      // Elided constants are not known to be equal.
      plain &= i.opcode() != Opcode::kConstant || !i.literal().elided;
      key.Add(static_cast<uint32_t>(i.opcode()));
      key.Add(i.record().shape.value);
      key.Add(i.record().payload);
      key.Add(static_cast<uint32_t>(i.operand_count()));
      for (Instruction o : i.operands()) key.Add(number[o.id().value]);
      key.Add(static_cast<uint32_t>(i.attrs().size()));
      AddAttributes(&key, i, same);
    }
    key.Add(number[module.computation(id).record().root.value]);
    // One that is not plain is like no other.
    if (!plain) key.Add(id.value);
    key.Add(plain ? 1 : 0);
    same[id.value] = key.Find(id.value);
  }
  return same;
}

void CarryBetweenEqual(Module& module, ComputationId from, ComputationId to, absl::flat_hash_set<uint64_t>* carried) {
  std::vector<std::pair<ComputationId, ComputationId>> open = {{from, to}};
  while (!open.empty()) {
    const auto [goes, stays] = open.back();
    open.pop_back();
    if (goes == stays || !carried->insert(uint64_t{goes.value} << 32 | stays.value).second) continue;
    const std::vector<InstructionId> old = PostOrder(module.computation(goes));
    const std::vector<InstructionId> kept = PostOrder(module.computation(stays));
    for (size_t k = 0; k < old.size() && k < kept.size(); ++k) {
      Carry(module, old[k], kept[k]);
      const Instruction a = module.instruction(old[k]), b = module.instruction(kept[k]);
      if (!MayCall(a.opcode())) continue;
      const std::vector<Computation> callees = a.called_computations(), equals = b.called_computations();
      for (size_t n = 0; n < callees.size() && n < equals.size(); ++n)
        open.emplace_back(callees[n].id(), equals[n].id());
    }
  }
}

absl::StatusOr<bool> DeduplicateComputations::Run(Module& module) {
  const std::vector<uint32_t> same = EqualComputations(module);
  bool changed = false;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!MayCall(i.opcode())) continue;
      // Kernels and threads keep what is theirs.
      if (i.opcode() == Opcode::kFusion || i.opcode() == Opcode::kAsyncStart) continue;
      const std::vector<AttrValue> attrs(i.attrs().begin(), i.attrs().end());
      for (const AttrValue& value : attrs) {
        uint32_t payload = value.payload;
        if (InfoOf(value.attr).type == AttrType::kComputation) {
          payload = same[value.payload];
        } else if (InfoOf(value.attr).type == AttrType::kComputationList) {
          const absl::Span<const int64_t> list = module.context().list(ListId(value.payload));
          std::vector<int64_t> ids;
          for (int64_t id : list) ids.push_back(same[static_cast<size_t>(id)]);
          payload = module.ListPayload(ids);
        }
        if (payload == value.payload) continue;
        module.SetAttr(i.id(), value.attr, payload);
        changed = true;
      }
    }
  }
  if (!changed) return false;
  // The one that stays stands for those that go.
  absl::flat_hash_set<uint64_t> carried;
  for (Computation c : module.computations()) {
    CarryBetweenEqual(module, c.id(), ComputationId(same[c.id().value]), &carried);
  }
  Count("computations merged", EraseUnreachable(module));
  return true;
}

}  // namespace hlokit
