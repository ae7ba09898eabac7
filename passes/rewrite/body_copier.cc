// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/body_copier.h"

#include "passes/analysis/loop.h"

namespace hlokit {

InstructionId BodyCopier::Copy(InstructionId id) {
  std::vector<InstructionId> open = {id};
  while (!open.empty()) {
    const InstructionId at = open.back();
    if (copies_.contains(at.value)) {
      open.pop_back();
      continue;
    }
    const Instruction i = module_.instruction(at);
    if (IsStateElement(i, body_)) {
      copies_[at.value] = element_(i);
      open.pop_back();
      continue;
    }
    const size_t before = open.size();
    for (Instruction operand : i.operands()) {
      if (!copies_.contains(operand.id().value)) open.push_back(operand.id());
    }
    if (open.size() != before) continue;
    open.pop_back();
    std::vector<InstructionId> operands;
    for (Instruction operand : i.operands()) operands.push_back(copies_.at(operand.id().value));
    std::vector<AttrValue> attrs(i.attrs().begin(), i.attrs().end());
    for (AttrValue& attr : attrs) {
      if (attr.attr == Attr::kChannelId && next_channel_ != nullptr) {
        attr.payload = module_.Int64Payload((*next_channel_)++);
      }
    }
    const InstructionRecord r = i.record();
    const StringId name = module_.UniqueInstructionName(r.name);
    const InstructionId copy =
        module_.AddInstruction(parent_, r.opcode, module_.context().shape(r.shape), name, operands, attrs, r.payload);
    module_.SetMetadata(copy, r.metadata);
    module_.Move(copy, position_);
    copies_[at.value] = copy;
    copied_.push_back(at);
  }
  return copies_.at(id.value);
}

InstructionId BodyCopier::CopyOf(InstructionId id) const {
  const auto found = copies_.find(id.value);
  return found == copies_.end() ? InstructionId() : found->second;
}

}  // namespace hlokit
