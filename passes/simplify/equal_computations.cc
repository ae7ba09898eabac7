#include "absl/container/flat_hash_map.h"
#include "ir/call_traits.h"
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

void CarryBetweenEqual(Module& module, Computation from, Computation to) {
  const std::vector<InstructionId> old = PostOrder(from), kept = PostOrder(to);
  for (size_t k = 0; k < old.size() && k < kept.size(); ++k) Carry(module, old[k], kept[k]);
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
  for (Computation c : module.computations()) {
    const Computation kept = module.computation(ComputationId(same[c.id().value]));
    if (kept == c) continue;
    CarryBetweenEqual(module, c, kept);
  }
  Count("computations merged", EraseUnreachable(module));
  return true;
}

}  // namespace hlokit
