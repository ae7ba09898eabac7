// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/constant_splitter.h"

#include <vector>

#include "ir/builder/builder.h"

namespace hlokit::sharding {
namespace {

// Returns true for an instruction that any user can have for itself.
bool IsSplittable(Instruction i) {
  if (i.has(Attr::kSharding) || i.has_control_edges()) return false;
  const Opcode opcode = i.opcode();
  if (opcode == Opcode::kConstant || opcode == Opcode::kIota) return true;
  if (opcode == Opcode::kBroadcast) {
    return i.operand(0).opcode() == Opcode::kConstant && i.operand(0).shape().IsScalar();
  }
  return false;
}

}  // namespace

int64_t SplitConstants(Module& module) {
  int64_t made = 0;
  for (Computation c : module.computations()) {
    // Users before operands, so that a constant is split for the broadcasts that were made of it.
    std::vector<InstructionId> found;
    for (Instruction i : c.instructions()) {
      if (IsSplittable(i)) found.push_back(i.id());
    }
    for (size_t n = found.size(); n-- > 0;) {
      const Instruction i = module.instruction(found[n]);
      const std::vector<Instruction> users = i.users();
      for (size_t k = 1; k < users.size(); ++k) {
        std::vector<InstructionId> operands;
        for (Instruction operand : i.operands()) operands.push_back(operand.id());
        Builder builder(&module, users[k].id());
        const InstructionId clone = builder.MakeClone(i.id(), operands);
        for (int64_t index = 0; index < users[k].operand_count(); ++index) {
          if (users[k].operand(index) == i) module.ReplaceOperand(users[k].id(), index, clone);
        }
        ++made;
      }
    }
  }
  return made;
}

}  // namespace hlokit::sharding
