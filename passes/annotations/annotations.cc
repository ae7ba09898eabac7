// SPDX-License-Identifier: Apache-2.0
#include "passes/annotations/annotations.h"

#include <algorithm>
#include <cstddef>

#include "absl/container/inlined_vector.h"

namespace hlokit {
namespace {

// Moves the control predecessors of `from` to `to`.
void MoveControlPredecessors(Module& module, InstructionId from, InstructionId to) {
  const Instruction old = module.instruction(from);
  if (!old.has(Attr::kControlPredecessors)) return;
  const absl::Span<const int64_t> own = module.instruction(to).list_attr(Attr::kControlPredecessors);
  std::vector<int64_t> all(own.begin(), own.end());
  for (int64_t p : old.list_attr(Attr::kControlPredecessors)) {
    if (p != to.value && std::find(all.begin(), all.end(), p) == all.end()) all.push_back(p);
  }
  module.RemoveAttr(from, Attr::kControlPredecessors);
  if (!all.empty()) module.SetAttr(to, Attr::kControlPredecessors, module.ListPayload(all));
}

}  // namespace

void MergeMetadataOfComputations(Module& module, std::vector<Computation> from, InstructionId to) {
  std::vector<ComputationId> seen;
  while (!from.empty()) {
    const Computation c = from.back();
    from.pop_back();
    if (!c.valid() || std::find(seen.begin(), seen.end(), c.id()) != seen.end()) continue;
    seen.push_back(c.id());
    for (Instruction i : c.instructions()) {
      MergeMetadata(module, i.id(), to);
      i.ForEachCallee([&](Computation callee) { from.push_back(callee); });
    }
  }
}

MetadataId MergedMetadata(const Module& module, absl::Span<const InstructionId> sources) {
  // Consecutive sources often have the same metadata, and merging costs a cache miss: of equal ones this close only the
  // last is merged, besides the first source of all.
  constexpr size_t kCloseBy = 8;
  absl::InlinedVector<MetadataId, 64> all;
  for (InstructionId source : sources) all.push_back(module.record(source).metadata);
  MetadataId merged;
  for (auto at = all.begin(); at != all.end(); ++at) {
    const auto close = at + std::min<std::ptrdiff_t>(kCloseBy, all.end() - at);
    if (!merged.valid() || std::find(at + 1, close, *at) == close) {
      merged = module.context().metadata.Merge(merged, *at);
    }
  }
  return merged;
}

void SetMetadataFrom(Module& module, InstructionId made, absl::Span<const InstructionId> sources) {
  module.SetMetadata(made, MergedMetadata(module, sources));
}

void Replace(Module& module, InstructionId old, InstructionId by) {
  if (old == by) return;
  MergeMetadata(module, old, by);
  MoveControlPredecessors(module, old, by);
  const Instruction replaced = module.instruction(old);
  if (const auto sharding = replaced.payload(Attr::kSharding)) {
    if (!module.instruction(by).has(Attr::kSharding)) module.SetAttr(by, Attr::kSharding, *sharding);
  }
  module.ReplaceAllUses(old, by);
  if (!replaced.has_users() && replaced.opcode() != Opcode::kParameter) module.Erase(old);
}

std::vector<MetadataId> MetadataSources(Instruction instruction) {
  return instruction.module().context().metadata.Sources(instruction.metadata_id());
}

}  // namespace hlokit
