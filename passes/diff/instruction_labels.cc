// SPDX-License-Identifier: Apache-2.0
#include "passes/diff/instruction_labels.h"

#include <cstddef>

#include "ir/core/hashing.h"
#include "ir/graph/traversal.h"

namespace hlokit {
namespace {

class Labeler {
 public:
  Labeler(const Module& module, InstructionLabels* labels) : module_(module), labels_(*labels) {
    for (std::vector<uint64_t>& level : labels_.by_level) level.assign(module.instruction_id_bound(), 0);
    labels_.upstream.assign(module.instruction_id_bound(), 0);
    labels_.downstream.assign(module.instruction_id_bound(), 0);
    labels_.order.resize(module.computation_id_bound());
    labels_.computations.assign(module.computation_id_bound(), 0);
  }

  void Run() {
    for (ComputationId id : ComputationPostOrder(module_)) LabelComputation(module_.computation(id));
  }

 private:
  void LabelComputation(Computation computation) {
    std::vector<InstructionId>& order = labels_.order[computation.id().value];
    order = PostOrder(computation);
    uint64_t sinks = 0;
    for (InstructionId id : order) {
      const Instruction i = module_.instruction(id);
      LabelInstruction(i);
      uint64_t up = labels_.of(LabelLevel::kContents, id);
      for (Instruction operand : i.operands()) up = MixHash(up, labels_.upstream[operand.id().value]);
      labels_.upstream[id.value] = up;
      if (!i.has_users()) sinks += MixHash(up, i.is_root());
    }
    labels_.computations[computation.id().value] =
        MixHash(MixHash(sinks, static_cast<uint64_t>(computation.parameter_count())),
                labels_.upstream[computation.root().id().value]);
    for (size_t k = order.size(); k-- > 0;) {
      const Instruction i = module_.instruction(order[k]);
      uint64_t users = i.is_root() ? 1 : 0;
      for (const auto [user, index] : i.uses()) {
        users += MixHash(labels_.downstream[user.id().value], static_cast<uint64_t>(index));
      }
      labels_.downstream[order[k].value] = MixHash(labels_.of(LabelLevel::kContents, order[k]), users);
    }
  }

  void LabelInstruction(Instruction i) {
    const InstructionRecord& r = i.record();
    const Shape shape = i.shape();
    const uint64_t opcode = MixHash(static_cast<uint64_t>(r.opcode), 0);
    Set(LabelLevel::kOpcode, i, opcode);
    Set(LabelLevel::kKind, i,
        MixHash(MixHash(opcode, static_cast<uint64_t>(shape.element_type())),
                static_cast<uint64_t>(shape.IsArray() ? shape.rank() : shape.tuple_size())));
    uint64_t value = 0;
    if (HasTrait(r.opcode, kLeaf)) value = r.payload + uint64_t{1};
    uint64_t operation = MixHash(MixHash(opcode, shape.WithoutLayout().id().value), value);
    uint64_t contents = MixHash(MixHash(opcode, r.shape.value), value);
    for (const AttrValue& attr : i.attrs()) {
      const AttrInfo& info = InfoOf(attr.attr);
      if (info.category == AttrCategory::kAnnotation || attr.attr == Attr::kControlPredecessors) continue;
      if (NamesComputations(attr.attr)) {
        module_.ForEachCallee(
            attr, [&](ComputationId callee) { contents = MixHash(contents, labels_.computations[callee.value]); });
        continue;
      }
      const uint64_t word = uint64_t{static_cast<uint8_t>(attr.attr)} << 32 | attr.payload;
      contents = MixHash(contents, word);
      if (info.category == AttrCategory::kSemantic) operation = MixHash(operation, word);
    }
    Set(LabelLevel::kOperation, i, operation);
    Set(LabelLevel::kContents, i, contents);
  }

  void Set(LabelLevel level, Instruction i, uint64_t label) {
    labels_.by_level[static_cast<size_t>(level)][i.id().value] = label;
  }

  const Module& module_;
  InstructionLabels& labels_;
};

}  // namespace

InstructionLabels LabelInstructions(const Module& module) {
  InstructionLabels labels;
  Labeler(module, &labels).Run();
  return labels;
}

}  // namespace hlokit
