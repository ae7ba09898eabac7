// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/graph/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/simplify/calls/inline.h"
#include "passes/simplify/dead_code.h"
#include "passes/simplify/instruction_key.h"

namespace hlokit {

namespace {

constexpr uint32_t kUnknown = 0xffffffffu;

}  // namespace

EqualComputationSet::EqualComputationSet(const Module& module)
    : module_(module), same_(module.computation_id_bound(), kUnknown) {}

uint32_t EqualComputationSet::Find(Computation computation) {
  if (number_.empty()) number_.resize(module_.instruction_id_bound());
  keys_.Add(computation.record().execution_thread.value);
  uint32_t next = 0;
  bool plain = true;
  for (InstructionId k : PostOrder(computation)) {
    const Instruction i = module_.instruction(k);
    number_[k.value] = next++;
    plain &= !i.has(Attr::kControlPredecessors);
    // Elided constants are not known to be equal.
    plain &= i.opcode() != Opcode::kConstant || !i.literal().elided;
    keys_.Add(static_cast<uint32_t>(i.opcode()));
    keys_.Add(i.record().shape.value);
    keys_.Add(i.record().payload);
    keys_.Add(static_cast<uint32_t>(i.operand_count()));
    for (Instruction o : i.operands()) keys_.Add(number_[o.id().value]);
    keys_.Add(static_cast<uint32_t>(i.attrs().size()));
    AddAttributes(&keys_, i, same_);
  }
  keys_.Add(number_[computation.record().root.value]);
  // Computations that are not plain equal no other.
  if (!plain) keys_.Add(computation.id().value);
  keys_.Add(plain ? 1 : 0);
  return keys_.Find(computation.id().value);
}

ComputationId EqualComputationSet::FirstEqual(ComputationId id) {
  if (same_[id.value] != kUnknown) return ComputationId(same_[id.value]);
  std::vector<ComputationId> open = {id};
  std::vector<uint8_t> is_open(same_.size(), 0);
  while (!open.empty()) {
    const Computation c = module_.computation(open.back());
    if (is_open[c.id().value] == 0) {
      is_open[c.id().value] = 1;
      // On a call-graph cycle, which only invalid modules have, the first visited computation represents itself.
      Add(c.id());
      for (Instruction i : c.instructions()) {
        i.ForEachCallee([&](Computation callee) {
          if (same_[callee.id().value] == kUnknown) open.push_back(callee.id());
        });
      }
      continue;
    }
    open.pop_back();
    if (is_open[c.id().value] == 1) {
      is_open[c.id().value] = 2;
      same_[c.id().value] = Find(c);
    }
  }
  return ComputationId(same_[id.value]);
}

std::vector<uint32_t> EqualComputations(const Module& module) {
  std::vector<uint32_t> same(module.computation_id_bound());
  EqualComputationSet set(module);
  // Only computations of equal size can be equal.
  absl::flat_hash_map<uint64_t, int64_t> twins;
  const auto size = [](Computation c) {
    return static_cast<uint64_t>(c.instruction_count()) << 32 | c.root().record().shape.value;
  };
  for (Computation c : module.computations()) ++twins[size(c)];
  for (ComputationId id : ComputationPostOrder(module)) {
    if (twins[size(module.computation(id))] == 1) set.Add(id);
    same[id.value] = set.FirstEqual(id).value;
  }
  return same;
}

void MergeMetadataOfEqual(Module& module, ComputationId from, ComputationId to,
                          absl::flat_hash_set<uint64_t>* carried) {
  std::vector<std::pair<ComputationId, ComputationId>> open = {{from, to}};
  while (!open.empty()) {
    const auto [removed, target] = open.back();
    open.pop_back();
    if (removed == target || !carried->insert(uint64_t{removed.value} << 32 | target.value).second) continue;
    const std::vector<InstructionId> old = PostOrder(module.computation(removed));
    const std::vector<InstructionId> kept = PostOrder(module.computation(target));
    for (size_t k = 0; k < old.size() && k < kept.size(); ++k) {
      MergeMetadata(module, old[k], kept[k]);
      const Instruction a = module.instruction(old[k]), b = module.instruction(kept[k]);
      if (!MightHaveCalledComputations(a.opcode())) continue;
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
      if (!MightHaveCalledComputations(i.opcode())) continue;
      // Bodies of fusions and asynchronous operations stay separate.
      if (HasTrait(i.opcode(), kOwnsCallee)) continue;
      changed |= module.ReplaceCallees(i.id(), [&](ComputationId callee) { return ComputationId(same[callee.value]); });
    }
  }
  if (!changed) return false;
  // The surviving computation carries the metadata of the erased ones.
  absl::flat_hash_set<uint64_t> carried;
  for (Computation c : module.computations()) {
    MergeMetadataOfEqual(module, c.id(), ComputationId(same[c.id().value]), &carried);
  }
  Count("computations merged", EraseUnreachable(module));
  return true;
}

HLOKIT_PASS(ComputationDeduplicator) {
  return {.name = "computation-deduplicator",
          .category = "simplify",
          .summary = "share equal computations",
          .doc =
              "Redirects callers of computations that are equal instruction by instruction to one of them. "
              "Computations of fusions and of asynchronous operations stay separate.",
          .example = R"(add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y), metadata={op_name="f/first"}
}
add.1 {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y), metadata={op_name="f/second"}
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  zero = f32[] constant(0)
  a = f32[] reduce(p, zero), dimensions={0}, to_apply=add
  b = f32[] reduce(q, zero), dimensions={0}, to_apply=add.1
  ROOT r = f32[] multiply(a, b)
})",
          .create = MakePass<DeduplicateComputations>};
}

}  // namespace hlokit
