// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/loops/remove_communication.h"

#include <string_view>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "passes/annotations/annotations.h"

namespace hlokit {
namespace {

constexpr std::string_view kNop = "NopCustomCall";
// Has a side effect, so that its operands are computed.
constexpr std::string_view kNopReturnToken = "NopReturnToken";

// Also the done of a collective.
bool IsCollective(Opcode opcode) { return HasTrait(SynchronousOpcode(opcode), kCollective); }

bool IsRemoved(Instruction i, const CommunicationToRemove& what) {
  const Opcode opcode = i.opcode();
  if (OpcodeSet{Opcode::kInfeed, Opcode::kOutfeed}.Contains(opcode)) return what.infeed_outfeed;
  if (HasTrait(opcode, kTransfers)) {
    return what.between_devices || (what.host_transfers && i.bool_attr(Attr::kIsHostTransfer));
  }
  return what.between_devices && (IsCollective(opcode) || HasTrait(opcode, kDeviceId));
}

InstructionId MakeReplacement(Builder& builder, Instruction i) {
  const Opcode opcode = i.opcode();
  if (HasTrait(opcode, kDeviceId)) return builder.MakeScalarConstant(i.shape().element_type(), 0);
  if (opcode == Opcode::kInfeed) {
    const InstructionId token = i.operand(0).id();
    const InstructionId data =
        builder.Make(Opcode::kCustomCall, i.shape().element(0), {}, {builder.String(Attr::kCustomCallTarget, kNop)});
    return builder.MakeTuple({data, token});
  }
  const bool ends_in_token = OpcodeSet{Opcode::kOutfeed, Opcode::kSendDone}.Contains(opcode);
  std::vector<AttrValue> attrs = {builder.String(Attr::kCustomCallTarget, ends_in_token ? kNopReturnToken : kNop)};
  if (ends_in_token) attrs.push_back(Builder::Bool(Attr::kCustomCallHasSideEffect, true));
  if (i.has(Attr::kBackendConfig)) attrs.push_back(Builder::SameAs(i, Attr::kBackendConfig));
  std::vector<InstructionId> operands;
  for (Instruction operand : i.operands()) operands.push_back(operand.id());
  return builder.Make(Opcode::kCustomCall, i.shape(), operands, attrs);
}

}  // namespace

int64_t RemoveCommunication(Module& module, const CommunicationToRemove& what) {
  const ComputationRoles roles = RolesOf(module);
  int64_t removed = 0;
  for (Computation c : module.computations()) {
    if (roles.fusion[c.id().value] != 0) continue;
    std::vector<InstructionId> instructions;
    for (Instruction i : c.instructions()) {
      if (IsRemoved(i, what)) instructions.push_back(i.id());
    }
    for (InstructionId id : instructions) {
      const Instruction i = module.instruction(id);
      const StringId name = module.record(id).name;
      Builder builder(&module, id);
      builder.SetMetadata(i.metadata_id());
      const InstructionId replacement = MakeReplacement(builder, i);
      Replace(module, id, replacement);
      module.SetName(replacement, name);
      ++removed;
    }
  }
  return removed;
}

}  // namespace hlokit
