// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/clone.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "ir/builder/builder.h"
#include "ir/graph/traversal.h"
#include "passes/annotations/annotations.h"

namespace hlokit {

ComputationId CloneWithFusions(Module& module, ComputationId source) {
  const ComputationId copy = module.CloneComputation(source);
  std::vector<ComputationId> open = {copy};
  while (!open.empty()) {
    const ComputationId at = open.back();
    open.pop_back();
    std::vector<InstructionId> fusions;
    for (Instruction i : module.computation(at).instructions()) {
      if (i.opcode() == Opcode::kFusion) fusions.push_back(i.id());
    }
    for (InstructionId fusion : fusions) {
      const ComputationId own = module.CloneComputation(module.instruction(fusion).computation_attr(Attr::kCalls).id());
      module.SetAttr(fusion, Attr::kCalls, own.value);
      open.push_back(own);
    }
  }
  return copy;
}

InstructionId CloneBody(Module& module, Computation source, absl::Span<const InstructionId> arguments,
                        InstructionId position) {
  Builder builder(&module, position);
  absl::flat_hash_map<uint32_t, InstructionId> copies;
  copies.reserve(static_cast<size_t>(source.instruction_count()));
  for (InstructionId id : PostOrder(source)) {
    // Adding instructions reallocates the records.
    const InstructionRecord r = module.record(id);
    if (r.opcode == Opcode::kParameter) {
      copies[id.value] = arguments[r.payload];
      MergeMetadata(module, id, arguments[r.payload]);
      continue;
    }
    absl::InlinedVector<InstructionId, 4> operands;
    for (Instruction operand : module.instruction(id).operands()) operands.push_back(copies.at(operand.id().value));
    ComputationId fused;
    if (r.opcode == Opcode::kFusion) {
      fused = CloneWithFusions(module, module.instruction(id).computation_attr(Attr::kCalls).id());
    }
    const InstructionId copy = builder.MakeClone(id, operands);
    module.SetSource(copy, r.source_offset);
    if (fused.valid()) module.SetAttr(copy, Attr::kCalls, fused.value);
    if (module.instruction(id).has(Attr::kControlPredecessors)) {
      std::vector<int64_t> predecessors;
      for (Instruction p : module.instruction(id).control_predecessors()) {
        predecessors.push_back(copies.at(p.id().value).value);
      }
      module.SetAttr(copy, Attr::kControlPredecessors, module.ListPayload(predecessors));
    }
    copies[id.value] = copy;
  }
  return copies.at(source.record().root.value);
}

bool IsCloneable(Computation body) {
  for (Instruction i : body.instructions()) {
    if (i.has(Attr::kControlPredecessors) && i.opcode() == Opcode::kParameter) return false;
    if (i.has(Attr::kChannelId) || HasTrait(i.opcode(), kStartsAsync) || HasTrait(i.opcode(), kEndsAsync)) return false;
  }
  return true;
}

}  // namespace hlokit
