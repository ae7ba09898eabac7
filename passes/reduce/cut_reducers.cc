// SPDX-License-Identifier: Apache-2.0
// Reducers that cut the entry computation: what is cut off at the end is not computed, what is cut off at the beginning
// becomes parameters.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/traversal.h"
#include "passes/reduce/module_edits.h"
#include "passes/reduce/reducer.h"

namespace hlokit::reduce {
namespace {

// Returns the positions at which to cut `count` instructions: those that remove most first.
std::vector<Target> Cuts(size_t count, bool from_end) {
  std::vector<Target> cuts;
  for (size_t removed = count / 2; removed > 0; removed /= 2) {
    const size_t position = from_end ? count - removed : removed;
    cuts.push_back({static_cast<uint32_t>(position), static_cast<uint32_t>(count)});
  }
  return cuts;
}

// The entry up to an instruction: what later ones use is returned.
class KeepPrefix : public Reducer {
 public:
  std::string_view name() const override { return "prefixes"; }
  Search search() const override { return Search::kAlternatives; }
  std::vector<Target> Targets(const Module& module) const override {
    return Cuts(PostOrder(module.entry()).size(), true);
  }
  bool Apply(Module& module, Target target) const override {
    const std::vector<InstructionId> order = PostOrder(module.entry());
    if (order.size() != target.detail || target.id == 0 || target.id >= order.size()) return false;
    std::vector<uint8_t> kept(module.instruction_id_bound(), 0);
    for (size_t k = 0; k < target.id; ++k) kept[order[k].value] = 1;
    std::vector<InstructionId> outputs;
    for (size_t k = 0; k < target.id; ++k) {
      const Instruction i = module.instruction(order[k]);
      bool leaves = i.is_root();
      for (Instruction user : i.users()) leaves |= kept[user.id().value] == 0;
      if (leaves && (i.opcode() != Opcode::kParameter || target.id == 1)) outputs.push_back(i.id());
    }
    if (outputs.empty()) return false;
    SetOutputs(module, outputs);
    return true;
  }
};

// The entry from an instruction on: what earlier ones compute is given.
class KeepSuffix : public Reducer {
 public:
  std::string_view name() const override { return "suffixes"; }
  Search search() const override { return Search::kAlternatives; }
  std::vector<Target> Targets(const Module& module) const override {
    return Cuts(PostOrder(module.entry()).size(), false);
  }
  bool Apply(Module& module, Target target) const override {
    const std::vector<InstructionId> order = PostOrder(module.entry());
    if (order.size() != target.detail || target.id >= order.size()) return false;
    std::vector<uint8_t> cut(module.instruction_id_bound(), 0);
    for (size_t k = 0; k < target.id; ++k) cut[order[k].value] = 1;
    std::vector<std::pair<InstructionId, InstructionId>> given;
    for (size_t k = 0; k < target.id; ++k) {
      const Instruction i = module.instruction(order[k]);
      if (HasTrait(i.opcode(), kLeaf)) continue;
      bool used = i.is_root();
      for (Instruction user : i.users()) used |= cut[user.id().value] == 0;
      if (used) given.emplace_back(i.id(), InstructionId());
    }
    for (auto& [computed, parameter] : given) parameter = AddParameterLike(module, computed);
    for (const auto& [computed, parameter] : given) module.ReplaceAllUses(computed, parameter);
    return !given.empty();
  }
};

// Outputs that are not returned.
class DropOutputs : public Reducer {
 public:
  std::string_view name() const override { return "outputs"; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> targets;
    for (InstructionId output : Outputs(module)) targets.push_back({output.value, 0});
    if (targets.size() < 2) targets.clear();
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    std::vector<InstructionId> outputs = Outputs(module);
    const auto end = std::remove(outputs.begin(), outputs.end(), InstructionId(target.id));
    if (end == outputs.end() || end == outputs.begin()) return false;
    outputs.erase(end, outputs.end());
    SetOutputs(module, outputs);
    return true;
  }
};

// The operands of an output in its place.
class OutputsToOperands : public Reducer {
 public:
  std::string_view name() const override { return "outputs to operands"; }
  Search search() const override { return Search::kAlternatives; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> targets;
    for (InstructionId output : Outputs(module)) {
      if (module.instruction(output).operand_count() > 0) targets.push_back({output.value, 0});
    }
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    std::vector<InstructionId> outputs;
    for (InstructionId output : Outputs(module)) {
      if (output.value != target.id) {
        outputs.push_back(output);
        continue;
      }
      for (Instruction operand : module.instruction(output).operands()) {
        if (!HasTrait(operand.opcode(), kLeaf)) {
          outputs.push_back(operand.id());
        }
      }
    }
    if (outputs.empty()) return false;
    SetOutputs(module, outputs);
    return true;
  }
};

}  // namespace

void AddCutReducers(Reducers* reducers) {
  reducers->push_back(std::make_unique<KeepPrefix>());
  reducers->push_back(std::make_unique<KeepSuffix>());
  reducers->push_back(std::make_unique<DropOutputs>());
  reducers->push_back(std::make_unique<OutputsToOperands>());
  reducers->push_back(std::make_unique<InstructionReducer>(
      "instructions to parameters", InstructionReducer::Where::kEntry,
      [](Instruction i) { return !HasTrait(i.opcode(), kLeaf) && !i.is_root(); },
      [](Module& module, Instruction i) {
        if (!i.has_users() || i.is_root()) return false;
        ReplaceAndErase(module, i.id(), AddParameterLike(module, i.id()));
        return true;
      }));
}

}  // namespace hlokit::reduce
