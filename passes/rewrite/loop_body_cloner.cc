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
    const InstructionId copy = builder_.MakeClone(at, operands);
    if (next_channel_ != nullptr && module_.instruction(copy).has(Attr::kChannelId)) {
      module_.SetAttr(copy, Attr::kChannelId, module_.EncodeInt64((*next_channel_)++));
    }
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
