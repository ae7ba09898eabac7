// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/constant_splitter.h"

#include <vector>

#include "ir/builder/builder.h"
#include "ir/ops/opcode_set.h"
#include "passes/core/pass_row.h"

namespace hlokit::sharding {
namespace {

// Returns true for an instruction that any user can have for itself.
bool IsSplittable(Instruction i) {
  if (i.has(Attr::kSharding) || i.has_control_edges()) return false;
  const Opcode opcode = i.opcode();
  if (OpcodeSet{Opcode::kConstant, Opcode::kIota}.Contains(opcode)) return true;
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

namespace hlokit {
namespace {

class ConstantSplitter : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const int64_t made = sharding::SplitConstants(module);
    if (made > 0) Count("constants cloned", made);
    return made > 0;
  }
};

}  // namespace

HLOKIT_PASS(ConstantSplitter) {
  return {.name = "constant-splitter",
          .category = "sharding",
          .summary = "give each user its own constant",
          .doc =
              "Constants, iotas and broadcasts of scalar constants that have no sharding are cloned for each further "
              "user, so that they can have different shardings, and a constant shared by manual and "
              "automatic code does not carry shardings from one to the other.",
          .example = R"(HloModule shared

ENTRY main {
  x = f32[4]{0} parameter(0)
  c = f32[] constant(2)
  b = f32[4]{0} broadcast(c), dimensions={}
  y = f32[4]{0} multiply(x, b)
  ROOT z = f32[4]{0} add(y, b)
}
)",
          .create = MakePass<ConstantSplitter>};
}

}  // namespace hlokit
