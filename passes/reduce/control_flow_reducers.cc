// SPDX-License-Identifier: Apache-2.0
// Reducers that replace loops, branches, calls and fusions by a part of what they run.
#include <string_view>
#include <vector>

#include "ir/builder/builder.h"
#include "passes/reduce/module_edits.h"
#include "passes/reduce/reducer.h"
#include "passes/rewrite/clone.h"

namespace hlokit::reduce {
namespace {

// Adds a target for each instruction with the opcode, in any computation.
void AddAll(const Module& module, Opcode opcode, std::vector<Target>* targets) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() == opcode) targets->push_back({i.id().value, 0});
    }
  }
}

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

// Loops that do not run: their initial values.
class LoopsToInitialValues : public Reducer {
 public:
  std::string_view name() const override { return "loops to initial values"; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> targets;
    AddAll(module, Opcode::kWhile, &targets);
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    const InstructionId id(target.id);
    if (!IsAlive(module, id)) return false;
    ReplaceAndErase(module, id, module.instruction(id).operand(0).id());
    return true;
  }
};

// Loops that run once: their bodies.
class LoopsToBodies : public Reducer {
 public:
  std::string_view name() const override { return "loops to bodies"; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> targets;
    AddAll(module, Opcode::kWhile, &targets);
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    if (!IsAlive(module, InstructionId(target.id))) return false;
    const Instruction loop = module.instruction(InstructionId(target.id));
    return ReplaceByBody(module, loop, loop.computation_attr(Attr::kBody), {loop.operand(0).id()});
  }
};

// Conditionals that always take one of their branches.
class ConditionalsToBranches : public Reducer {
 public:
  std::string_view name() const override { return "conditionals to branches"; }
  Search search() const override { return Search::kAlternatives; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> conditionals, targets;
    AddAll(module, Opcode::kConditional, &conditionals);
    for (const Target& t : conditionals) {
      const size_t branches = module.instruction(InstructionId(t.id)).called_computations().size();
      for (uint32_t k = 0; k < branches; ++k) targets.push_back({t.id, k});
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

// Calls, and fusions, whose bodies stand where they were called.
class InlineCalls : public Reducer {
 public:
  InlineCalls(std::string_view name, Opcode opcode, Attr callee) : name_(name), opcode_(opcode), callee_(callee) {}
  std::string_view name() const override { return name_; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> targets;
    AddAll(module, opcode_, &targets);
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    if (!IsAlive(module, InstructionId(target.id))) return false;
    const Instruction call = module.instruction(InstructionId(target.id));
    return ReplaceByBody(module, call, call.computation_attr(callee_), OperandsOf(call));
  }

 private:
  std::string_view name_;
  Opcode opcode_;
  Attr callee_;
};

}  // namespace

void AddControlFlowReducers(Reducers* reducers) {
  reducers->push_back(std::make_unique<LoopsToInitialValues>());
  reducers->push_back(std::make_unique<LoopsToBodies>());
  reducers->push_back(std::make_unique<ConditionalsToBranches>());
  reducers->push_back(std::make_unique<InlineCalls>("calls to bodies", Opcode::kCall, Attr::kToApply));
  reducers->push_back(std::make_unique<InlineCalls>("fusions to bodies", Opcode::kFusion, Attr::kCalls));
}

}  // namespace hlokit::reduce
