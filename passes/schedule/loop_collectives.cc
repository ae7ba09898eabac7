#include "passes/schedule/loop_collectives.h"

#include <vector>

#include "passes/analysis/leaf_flow.h"
#include "passes/fusion/fusion_rules.h"

namespace hlokit {

bool IsBlockingCollective(Instruction i) {
  return HasTrait(i.opcode(), kCollective) && !HasTrait(i.opcode(), kStartsAsync) &&
         !HasTrait(i.opcode(), kEndsAsync) && !HasTrait(i.opcode(), kUpdatesAsync);
}

namespace {

// Costs little beside a collective: moves elements, or does an operation or two on each.
bool IsSmallWork(Instruction i) {
  if (HasTrait(i.opcode(), kElementwise) && i.shape().IsScalar()) return true;
  switch (FusionClassOf(i.opcode())) {
    case FusionClass::kSource:
    case FusionClass::kCheap:
    case FusionClass::kRearranged:
    case FusionClass::kBroadcast:
    case FusionClass::kCut:
      return true;
    case FusionClass::kOpaque:
    case FusionClass::kDear:
    case FusionClass::kGather:
    case FusionClass::kUpdate:
    case FusionClass::kReduce:
    case FusionClass::kWindow:
    case FusionClass::kProduct:
      break;
  }
  return PassesValuesOn(i.opcode()) || i.opcode() == Opcode::kReplicaId || i.opcode() == Opcode::kPartitionId;
}

}  // namespace

bool MayRepeat(Instruction i, const SideEffects& effects) {
  if (i.is_root() || i.has(Attr::kControlPredecessors) || !i.control_successors().empty() || i.has(Attr::kSharding)) {
    return false;
  }
  if (IsBlockingCollective(i)) return i.shape().IsArray() && !i.bool_attr(Attr::kConstrainLayout);
  return !effects.Of(i) && i.opcode() != Opcode::kParameter && IsSmallWork(i);
}

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
      copies_[at.value] = element_(i.int_attr(Attr::kIndex));
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
      if (attr.attr == Attr::kChannelId) attr.payload = module_.Int64Payload(next_channel_++);
    }
    const InstructionRecord r = i.record();
    const StringId name = module_.UniqueInstructionName(module_.context().str(r.name));
    const InstructionId copy =
        module_.AddInstruction(parent_, r.opcode, module_.context().shape(r.shape), name, operands, attrs, r.payload);
    module_.SetMetadata(copy, r.metadata);
    module_.Move(copy, position_);
    copies_[at.value] = copy;
  }
  return copies_.at(id.value);
}

}  // namespace hlokit
