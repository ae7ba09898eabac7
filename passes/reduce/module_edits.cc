// SPDX-License-Identifier: Apache-2.0
#include "passes/reduce/module_edits.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/builder/builder.h"
#include "ir/graph/entry_signature.h"
#include "ir/graph/traversal.h"
#include "passes/simplify/dead_code.h"

namespace hlokit::reduce {
namespace {

// Replaces elements of tuples by what the tuples were made of.
void ForwardElements(Module& module, Computation computation) {
  for (InstructionId id : PostOrder(computation)) {
    const Instruction i = module.instruction(id);
    if (i.opcode() != Opcode::kGetTupleElement || i.operand(0).opcode() != Opcode::kTuple) continue;
    const int64_t index = i.int_attr(Attr::kIndex);
    if (index < 0 || index >= i.operand(0).operand_count()) continue;
    const Instruction element = i.operand(0).operand(index);
    if (Compatible(element.shape(), i.shape())) module.ReplaceAllUses(id, element.id());
  }
}

// Returns the computation that an instruction calls with its operands as arguments, and nothing else calls.
Computation OwnCallee(Instruction i, const std::vector<int32_t>& callers) {
  Computation callee;
  if (i.opcode() == Opcode::kFusion) callee = i.computation_attr(Attr::kCalls);
  if (i.opcode() == Opcode::kCall) callee = i.computation_attr(Attr::kToApply);
  if (!callee.valid() || callers[callee.id().value] != 1 || i.operand_count() != callee.parameter_count()) return {};
  return callee;
}

// Removes the parameters that callees of fusions and calls do not use, and the operands for them.
void RemoveUnusedArguments(Module& module) {
  std::vector<int32_t> callers(module.computation_id_bound(), 0);
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) i.ForEachCallee([&](Computation callee) { ++callers[callee.id().value]; });
  }
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      const Computation callee = OwnCallee(i, callers);
      if (!callee.valid()) continue;
      std::vector<InstructionId> operands, unused;
      for (int64_t k = 0; k < i.operand_count(); ++k) {
        const Instruction parameter = callee.parameter(k);
        if (parameter.has_users() || parameter.is_root()) {
          operands.push_back(i.operand(k).id());
        } else {
          unused.push_back(parameter.id());
        }
      }
      if (unused.empty() || i.has(Attr::kOutputToOperandAliasing) || i.has(Attr::kOperandLayoutConstraints)) continue;
      for (InstructionId parameter : unused) module.RemoveParameter(parameter);
      module.SetOperands(i.id(), operands);
    }
  }
}

}  // namespace

bool IsAlive(const Module& module, InstructionId id) {
  return id.value < module.instruction_id_bound() && module.record(id).parent.valid();
}

std::vector<InstructionId> Outputs(const Module& module) {
  const Instruction root = module.entry().root();
  std::vector<InstructionId> outputs;
  if (root.opcode() != Opcode::kTuple || root.has_users() || root.operand_count() == 0) return {root.id()};
  for (Instruction element : root.operands()) outputs.push_back(element.id());
  return outputs;
}

void SetOutputs(Module& module, const std::vector<InstructionId>& outputs) {
  const Instruction old = module.entry().root();
  const InstructionId old_id = old.id();
  const bool erase = old.opcode() == Opcode::kTuple && !old.has_users();
  InstructionId root = outputs[0];
  if (outputs.size() > 1) root = Builder(&module, module.entry().id()).MakeTuple(outputs);
  module.SetRoot(module.entry().id(), root);
  if (erase && root != old_id) module.Erase(old_id);
}

InstructionId AddParameterLike(Module& module, InstructionId like) {
  const Computation entry = module.entry();
  Builder builder(&module, entry.id(), entry.record().first);
  builder.SetMetadata(module.record(like).metadata);
  builder.WithName(module.instruction(like).name());
  const int64_t number = entry.parameter_count();
  return builder.Make(Opcode::kParameter, module.instruction(like).shape(), {}, {}, static_cast<uint32_t>(number));
}

void ReplaceAndErase(Module& module, InstructionId old, InstructionId by) {
  module.ReplaceAllUses(old, by);
  const Instruction i = module.instruction(old);
  if (!i.has_users() && !i.is_root() && i.opcode() != Opcode::kParameter) module.Erase(old);
}

void CleanUp(Module& module) {
  for (Computation c : module.computations()) ForwardElements(module, c);
  // Callers first: unused arguments die with the parameters of callees, and theirs in turn.
  for (int64_t changed = 1; changed != 0;) {
    changed = EraseUnreachable(module);
    const ConservativeSideEffects effects(module);
    for (Computation c : module.computations()) changed += EraseUnused(module, c, effects);
    const size_t before = module.instruction_count();
    RemoveUnusedArguments(module);
    changed += static_cast<int64_t>(before - module.instruction_count());
  }
  for (int64_t k = module.entry().parameter_count(); k-- > 0;) {
    const Instruction parameter = module.entry().parameter(k);
    if (!parameter.has_users() && !parameter.is_root()) module.RemoveParameter(parameter.id());
  }
  RefreshEntrySignature(module);
}

}  // namespace hlokit::reduce
