// SPDX-License-Identifier: Apache-2.0
// Reducers that drop unused values and replace others by simpler ones: an instruction by one of its operands or by
// zero, constants by zeros.
#include <string_view>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/traversal.h"
#include "ir/types/literal.h"
#include "passes/reduce/module_edits.h"
#include "passes/reduce/reducer.h"

namespace hlokit::reduce {
namespace {

// Larger arrays of zeros are broadcasts of one zero: their text would be longer than what it replaces.
constexpr int64_t kMaxZeros = 16;

// Instructions that are skipped: one of their operands, of the same shape, in their place.
class ToOperands : public Reducer {
 public:
  std::string_view name() const override { return "instructions to operands"; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> targets;
    for (Computation c : module.computations()) {
      for (Instruction i : c.instructions()) {
        for (uint32_t k = 0; k < i.operand_count(); ++k) {
          if (Compatible(i.operand(k).shape(), i.shape())) targets.push_back({i.id().value, k});
        }
      }
    }
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    const InstructionId id(target.id);
    if (!IsAlive(module, id)) return false;
    const Instruction i = module.instruction(id);
    if (target.detail >= i.operand_count() || !(i.has_users() || i.is_root())) return false;
    ReplaceAndErase(module, id, i.operand(target.detail).id());
    return true;
  }
};

// Instructions of the entry that become constants with the values that they have in a run.
class ToRecordedConstants : public Reducer {
 public:
  explicit ToRecordedConstants(const RecordedValues* values) : values_(*values) {}
  std::string_view name() const override { return "recorded constants"; }
  bool uses_values() const override { return true; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> targets;
    for (Instruction i : module.entry().instructions()) {
      const size_t id = i.id().value;
      if (i.opcode() == Opcode::kConstant || i.is_root() || id >= values_.size()) continue;
      if (values_[id].shape().valid()) targets.push_back({i.id().value, 0});
    }
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    const InstructionId id(target.id);
    if (!IsAlive(module, id) || !module.instruction(id).has_users() || module.instruction(id).is_root()) return false;
    Builder builder(&module, module.entry().record().first);
    builder.SetMetadata(module.record(id).metadata);
    builder.WithName(module.instruction(id).name());
    const InstructionId constant = builder.MakeConstant(values_[target.id]);
    ReplaceAndErase(module, id, constant);
    return true;
  }

 private:
  const RecordedValues& values_;
};

// Instructions that stand only for their side effects.
class DropUnused : public Reducer {
 public:
  std::string_view name() const override { return "side effects"; }
  std::vector<Target> Targets(const Module& module) const override {
    // Users before their operands, which are unused after them.
    std::vector<Target> targets;
    for (Computation c : module.computations()) {
      const std::vector<InstructionId> order = PostOrder(c);
      std::vector<uint8_t> used(module.instruction_id_bound(), 0);
      for (auto id = order.rbegin(); id != order.rend(); ++id) {
        const Instruction i = module.instruction(*id);
        if (i.is_root() || used[id->value] != 0) {
          for (Instruction operand : i.operands()) used[operand.id().value] = 1;
        } else if (i.opcode() != Opcode::kParameter) {
          targets.push_back({id->value, 0});
        }
      }
    }
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    const InstructionId id(target.id);
    if (!IsAlive(module, id) || module.instruction(id).has_users() || module.instruction(id).is_root()) return false;
    // With what only it used: the start of an asynchronous operation, which must have an end.
    std::vector<InstructionId> open = {id};
    while (!open.empty()) {
      const Instruction i = module.instruction(open.back());
      open.pop_back();
      if (!IsAlive(module, i.id()) || !IsUnused(i)) continue;
      std::vector<InstructionId> operands;
      for (Instruction operand : i.operands()) operands.push_back(operand.id());
      module.Erase(i.id());
      open.insert(open.end(), operands.begin(), operands.end());
    }
    return true;
  }
};

bool ToZeros(Module& module, Instruction i) {
  if (!i.has_users() && !i.is_root()) return false;
  const Shape shape = i.shape();
  Builder builder(&module, i.id());
  builder.SetMetadata(i.record().metadata);
  builder.WithName(i.name());
  InstructionId zero;
  if (shape.element_count() <= kMaxZeros) {
    zero = builder.MakeConstant(Literal::Zeros(shape));
  } else {
    const InstructionId scalar = builder.MakeConstant(Literal::Zeros(builder.shapes().Scalar(shape.element_type())));
    zero = builder.MakeSplat(shape, scalar);
  }
  ReplaceAndErase(module, i.id(), zero);
  return true;
}

bool SetZeros(Module& module, Instruction constant) {
  if (constant.opcode() != Opcode::kConstant) return false;
  const LiteralId zeros = module.context().literals.Add(Literal::Zeros(constant.shape()));
  if (zeros == constant.literal_id()) return false;
  module.SetPayload(constant.id(), zeros.value);
  return true;
}

}  // namespace

void AddValueReducers(const RecordedValues* values, Reducers* reducers) {
  if (values != nullptr) reducers->push_back(std::make_unique<ToRecordedConstants>(values));
  reducers->push_back(std::make_unique<DropUnused>());
  reducers->push_back(std::make_unique<ToOperands>());
  using Where = InstructionReducer::Where;
  const auto add = [&](std::string_view name, Where where, InstructionReducer::Matches matches,
                       InstructionReducer::Edit edit) {
    reducers->push_back(std::make_unique<InstructionReducer>(name, where, std::move(matches), std::move(edit)));
  };
  add(
      "instructions to zeros", Where::kModule,
      [](Instruction i) {
        return !HasTrait(i.opcode(), kLeaf) && i.shape().IsArray() && !i.shape().has_dynamic_dims() &&
               i.shape().element_count() >= 0;
      },
      &ToZeros);
  add(
      "constants to parameters", Where::kEntry,
      [](Instruction i) { return i.opcode() == Opcode::kConstant && !i.shape().IsScalar(); },
      [](Module& module, Instruction i) {
        ReplaceAndErase(module, i.id(), AddParameterLike(module, i.id()));
        return true;
      });
  // An elided value is no longer text than zeros are.
  add(
      "constants to zeros", Where::kModule,
      [](Instruction i) { return i.opcode() == Opcode::kConstant && i.shape().IsArray() && !i.literal().elided; },
      &SetZeros);
}

}  // namespace hlokit::reduce
