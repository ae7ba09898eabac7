// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/change_loop.h"

#include <optional>
#include <string>
#include <utility>

#include "ir/builder/builder.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "passes/analysis/trip_count.h"
#include "passes/annotations/annotations.h"

namespace hlokit {
namespace {

InstructionId MakeElement(Builder& builder, InstructionId tuple, int64_t index) {
  const MetadataScope scope(&builder, builder.module().record(tuple).metadata);
  return builder.MakeElement(tuple, index);
}

// Drops backend annotations that refer to elements by number: only the trip count survives a change.
void ForgetElementNumbers(Module& module, InstructionId loop) {
  const Instruction i = module.instruction(loop);
  if (!i.has(Attr::kBackendConfig)) return;
  const std::optional<int64_t> trip_count = TripCount(i);
  module.RemoveAttr(loop, Attr::kBackendConfig);
  if (!trip_count) return;
  std::string config;
  TextWriter out(&config);
  JsonWriter json(&out, JsonLayout::kCompact);
  json.BeginObject().Key("known_trip_count").BeginObject().Member("n", StrCat(*trip_count)).EndObject().EndObject();
  out.Flush();
  module.SetAttr(loop, Attr::kBackendConfig, module.context().strings.Intern(config).value);
}

// Renumbers the elements read from `state`. Requires: removed elements are unused.
void RenumberElements(Module& module, Instruction state, const std::vector<int64_t>& number) {
  std::vector<InstructionId> elements;
  for (const auto& use : state.uses()) elements.push_back(use.user.id());
  for (InstructionId element : elements) {
    const int64_t index = number[static_cast<size_t>(module.instruction(element).int_attr(Attr::kIndex))];
    if (index < 0) {
      module.Erase(element);
    } else {
      module.SetAttr(element, Attr::kIndex, module.EncodeInt64(index));
    }
  }
}

}  // namespace

InstructionId InitElement(Module& module, const CanonicalLoop& loop, int64_t index) {
  if (loop.init.opcode() == Opcode::kTuple) return loop.init.operand(index).id();
  for (const auto& use : loop.init.uses()) {
    if (use.user.opcode() == Opcode::kGetTupleElement && use.user.int_attr(Attr::kIndex) == index) {
      // Created before the loop, or moved there.
      module.MoveBefore(use.user.id(), loop.loop.id());
      return use.user.id();
    }
  }
  Builder before(&module, loop.loop.id());
  return MakeElement(before, loop.init.id(), index);
}

Instruction RewriteLoopState(Module& module, const CanonicalLoop& plain, const std::vector<uint8_t>& keep,
                             const std::vector<InstructionId>& added) {
  const InstructionId loop = plain.loop.id();
  const Shape old_shape = plain.loop.shape();
  std::vector<int64_t> number(static_cast<size_t>(plain.size), -1);
  std::vector<Shape> shapes;
  std::vector<InstructionId> init, before(static_cast<size_t>(plain.size));
  for (int64_t k = 0; k < plain.size; ++k) {
    const size_t at = static_cast<size_t>(k);
    before[at] = InitElement(module, plain, k);
    if (!keep[at]) continue;
    number[at] = static_cast<int64_t>(shapes.size());
    shapes.push_back(old_shape.element(k));
    init.push_back(before[at]);
  }
  const int64_t kept = static_cast<int64_t>(shapes.size());
  for (InstructionId id : added) {
    shapes.push_back(module.instruction(id).shape());
    init.push_back(id);
  }
  const Shape shape = module.context().shapes.Tuple(shapes);

  // The body.
  const Instruction root = plain.body.root(), state = plain.body.parameter(0), seen = plain.condition.parameter(0);
  std::vector<InstructionId> outputs;
  for (int64_t k = 0; k < plain.size; ++k) {
    if (keep[static_cast<size_t>(k)]) outputs.push_back(root.operand(k).id());
  }
  std::vector<InstructionId> old_outputs;
  for (Instruction out : root.operands()) old_outputs.push_back(out.id());
  module.SetOperands(root.id(), outputs);
  // Definitions of removed elements are unused now.
  for (InstructionId out : old_outputs) {
    std::vector<InstructionId> dead = {out};
    while (!dead.empty()) {
      const Instruction i = module.instruction(dead.back());
      dead.pop_back();
      if (!i.record().parent.valid() || i.has_users() || i.opcode() == Opcode::kParameter || i.is_root() ||
          i.has(Attr::kControlPredecessors) || !i.control_successors().empty()) {
        continue;
      }
      for (Instruction operand : i.operands()) dead.push_back(operand.id());
      module.Erase(i.id());
    }
  }
  RenumberElements(module, state, number);
  RenumberElements(module, seen, number);
  module.SetShape(state.id(), shape);
  module.SetShape(seen.id(), shape);
  Builder builder(&module, root.id());
  for (size_t k = 0; k < added.size(); ++k) {
    outputs.push_back(MakeElement(builder, state.id(), kept + static_cast<int64_t>(k)));
    SetMetadataFrom(module, outputs.back(), {added[k]});
  }
  module.SetOperands(root.id(), outputs);
  module.SetShape(root.id(), shape);

  // The loop and its users.
  const MetadataId metadata = module.record(loop).metadata;
  const ComputationId parent = module.record(loop).parent;
  builder.SetInsertionPoint(loop);
  builder.SetMetadata(module.record(plain.init.id()).metadata);
  const InstructionId tuple = builder.Make(Opcode::kTuple, shape, init);
  std::vector<InstructionId> elements;
  std::vector<std::pair<InstructionId, int64_t>> whole;
  for (const auto& use : plain.loop.uses()) {
    if (use.user.opcode() == Opcode::kGetTupleElement) {
      elements.push_back(use.user.id());
    } else {
      whole.emplace_back(use.user.id(), use.operand_index);
    }
  }
  module.ReplaceOperand(loop, 0, tuple);
  module.SetShape(loop, shape);
  ForgetElementNumbers(module, loop);
  for (InstructionId id : {loop, root.id(), state.id(), seen.id()}) module.RemoveAttr(id, Attr::kOrigin);
  for (InstructionId element : elements) {
    const size_t index = static_cast<size_t>(module.instruction(element).int_attr(Attr::kIndex));
    if (number[index] < 0) {
      Replace(module, element, before[index]);
    } else {
      module.SetAttr(element, Attr::kIndex, module.EncodeInt64(number[index]));
    }
  }
  const bool is_root = plain.loop.is_root();
  if (!whole.empty() || is_root) {
    builder.SetInsertionPointAfter(loop);
    std::vector<InstructionId> all;
    for (size_t k = 0; k < before.size(); ++k) {
      all.push_back(number[k] < 0 ? before[k] : MakeElement(builder, loop, number[k]));
    }
    builder.SetMetadata(metadata);
    const InstructionId again = builder.Make(Opcode::kTuple, old_shape, all);
    for (const auto& [user, index] : whole) module.ReplaceOperand(user, index, again);
    if (is_root) module.SetRoot(parent, again);
  }
  if (!plain.init.has_users() && plain.init.opcode() == Opcode::kTuple && !plain.init.is_root()) {
    MergeMetadata(module, plain.init.id(), tuple);
    module.Erase(plain.init.id());
  }
  for (InstructionId id : before) {
    const Instruction i = module.instruction(id);
    if (i.record().parent.valid() && !i.has_users() && i.opcode() == Opcode::kGetTupleElement && !i.is_root()) {
      module.Erase(id);
    }
  }
  return module.instruction(loop);
}

}  // namespace hlokit
