// SPDX-License-Identifier: Apache-2.0
// Reducers that replace loops, branches, calls and fusions by a part of what they run.
#include <string_view>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "passes/reduce/module_edits.h"
#include "passes/reduce/reducer.h"
#include "passes/rewrite/clone.h"

namespace hlokit::reduce {
namespace {

// Replaces an instruction by the body of a computation. Returns false if it cannot be.
bool ReplaceByBody(Module& module, Instruction caller, Computation body, const std::vector<InstructionId>& arguments) {
  if (!body.valid() || body.parameter_count() != static_cast<int64_t>(arguments.size()) || !IsCloneable(body) ||
      !Compatible(body.root().shape(), caller.shape())) {
    return false;
  }
  const InstructionId old = caller.id();
  ReplaceAndErase(module, old, CloneBody(module, body, arguments, old));
  return true;
}

std::vector<InstructionId> OperandsOf(Instruction i) {
  std::vector<InstructionId> operands;
  for (Instruction operand : i.operands()) operands.push_back(operand.id());
  return operands;
}

// Conditionals that always take one of their branches.
class ConditionalsToBranches : public Reducer {
 public:
  std::string_view name() const override { return "conditionals to branches"; }
  Search search() const override { return Search::kAlternatives; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> targets;
    for (Computation c : module.computations()) {
      for (Instruction i : c.instructions()) {
        if (i.opcode() != Opcode::kConditional) continue;
        const size_t branches = i.called_computations().size();
        for (uint32_t k = 0; k < branches; ++k) targets.push_back({i.id().value, k});
      }
    }
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    if (!IsAlive(module, InstructionId(target.id))) return false;
    const Instruction i = module.instruction(InstructionId(target.id));
    const std::vector<Computation> branches = i.called_computations();
    if (target.detail >= branches.size() || i.operand_count() != static_cast<int64_t>(branches.size()) + 1) {
      return false;
    }
    return ReplaceByBody(module, i, branches[target.detail], {i.operand(target.detail + 1).id()});
  }
};

}  // namespace

void AddControlFlowReducers(Reducers* reducers) {
  const auto add = [&](std::string_view name, Opcode opcode, InstructionReducer::Edit edit) {
    reducers->push_back(std::make_unique<InstructionReducer>(
        name, InstructionReducer::Where::kModule, [opcode](Instruction i) { return i.opcode() == opcode; },
        std::move(edit)));
  };
  const auto by_callee = [](Attr callee) {
    return [callee](Module& module, Instruction i) {
      return ReplaceByBody(module, i, i.computation_attr(callee), OperandsOf(i));
    };
  };
  // Loops that do not run, and loops that run once.
  add("loops to initial values", Opcode::kWhile, [](Module& module, Instruction loop) {
    ReplaceAndErase(module, loop.id(), loop.operand(0).id());
    return true;
  });
  add("loops to bodies", Opcode::kWhile, by_callee(Attr::kBody));
  reducers->push_back(std::make_unique<ConditionalsToBranches>());
  add("calls to bodies", Opcode::kCall, by_callee(Attr::kToApply));
  add("fusions to bodies", Opcode::kFusion, by_callee(Attr::kCalls));
}

}  // namespace hlokit::reduce
