// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/loop_body_cloner.h"

#include "passes/analysis/loop.h"

namespace hlokit {

InstructionId LoopBodyCloner::Clone(InstructionId id) {
  std::vector<InstructionId> open = {id};
  while (!open.empty()) {
    const InstructionId at = open.back();
    if (clones_.contains(at.value)) {
      open.pop_back();
      continue;
    }
    const Instruction i = module_.instruction(at);
    if (IsStateElement(i, body_)) {
      clones_[at.value] = element_(i);
      open.pop_back();
      continue;
    }
    const size_t before = open.size();
    for (Instruction operand : i.operands()) {
      if (!clones_.contains(operand.id().value)) open.push_back(operand.id());
    }
    if (open.size() != before) continue;
    open.pop_back();
    std::vector<InstructionId> operands;
    for (Instruction operand : i.operands()) operands.push_back(clones_.at(operand.id().value));
    std::vector<AttrValue> attrs(i.attrs().begin(), i.attrs().end());
    for (AttrValue& attr : attrs) {
      if (attr.attr == Attr::kChannelId && next_channel_ != nullptr) {
        attr.payload = module_.EncodeInt64((*next_channel_)++);
      }
    }
    const InstructionRecord r = i.record();
    const StringId name = module_.UniqueInstructionName(r.name);
    const InstructionId copy =
        module_.AddInstruction(parent_, r.opcode, module_.context().shape(r.shape), name, operands, attrs, r.payload);
    module_.SetMetadata(copy, r.metadata);
    module_.MoveBefore(copy, position_);
    clones_[at.value] = copy;
    cloned_.push_back(at);
  }
  return clones_.at(id.value);
}

InstructionId LoopBodyCloner::LookupClone(InstructionId id) const {
  const auto found = clones_.find(id.value);
  return found == clones_.end() ? InstructionId() : found->second;
}

}  // namespace hlokit
