// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/change_loop.h"

#include <optional>
#include <string>
#include <utility>

#include "ir/builder/builder.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/graph/instruction_queries.h"
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

// What becomes of the state of a loop.
struct NewState {
  std::vector<int64_t> number;        // by old element; -1: removed
  std::vector<InstructionId> before;  // the initial values, by old element
  std::vector<InstructionId> init;    // the initial values of the new state
  Shape shape;
  int64_t kept = 0;
};

NewState StateWith(Module& module, const CanonicalLoop& loop, const std::vector<uint8_t>& keep,
                   const std::vector<InstructionId>& added) {
  NewState state;
  state.number.assign(static_cast<size_t>(loop.size), -1);
  std::vector<Shape> shapes;
  for (int64_t k = 0; k < loop.size; ++k) {
    const size_t at = static_cast<size_t>(k);
    state.before.push_back(InitElement(module, loop, k));
    if (!keep[at]) continue;
    state.number[at] = static_cast<int64_t>(shapes.size());
    shapes.push_back(loop.loop.shape().element(k));
    state.init.push_back(state.before[at]);
  }
  state.kept = static_cast<int64_t>(shapes.size());
  for (InstructionId id : added) {
    shapes.push_back(module.instruction(id).shape());
    state.init.push_back(id);
  }
  state.shape = module.context().shapes.Tuple(shapes);
  return state;
}

// Erases `id` and what only it needs.
void EraseUnused(Module& module, InstructionId id) {
  std::vector<InstructionId> dead = {id};
  while (!dead.empty()) {
    const Instruction i = module.instruction(dead.back());
    dead.pop_back();
    if (!i.record().parent.valid() || !IsUnused(i) || i.has_control_edges()) {
      continue;
    }
    for (Instruction operand : i.operands()) dead.push_back(operand.id());
    module.Erase(i.id());
  }
}

// Gives body and condition the new state. The body forwards the added elements.
void RewriteBody(Module& module, const CanonicalLoop& loop, const NewState& new_state,
                 const std::vector<InstructionId>& added) {
  const Instruction root = loop.body.root(), state = loop.body.parameter(0), seen = loop.condition.parameter(0);
  std::vector<InstructionId> outputs, old_outputs;
  for (int64_t k = 0; k < loop.size; ++k) {
    if (new_state.number[static_cast<size_t>(k)] >= 0) outputs.push_back(root.operand(k).id());
  }
  for (Instruction out : root.operands()) old_outputs.push_back(out.id());
  module.SetOperands(root.id(), outputs);
  for (InstructionId out : old_outputs) EraseUnused(module, out);  // definitions of removed elements
  RenumberElements(module, state, new_state.number);
  RenumberElements(module, seen, new_state.number);
  module.SetShape(state.id(), new_state.shape);
  module.SetShape(seen.id(), new_state.shape);
  Builder builder(&module, root.id());
  for (size_t k = 0; k < added.size(); ++k) {
    outputs.push_back(MakeElement(builder, state.id(), new_state.kept + static_cast<int64_t>(k)));
    SetMetadataFrom(module, outputs.back(), {added[k]});
  }
  module.SetOperands(root.id(), outputs);
  module.SetShape(root.id(), new_state.shape);
  for (Instruction i : {root, state, seen}) module.RemoveAttr(i.id(), Attr::kOrigin);
}

// Users of the loop other than get-tuple-element.
std::vector<std::pair<InstructionId, int64_t>> UsersOfWhole(Instruction loop) {
  std::vector<std::pair<InstructionId, int64_t>> users;
  for (const auto& use : loop.uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement) users.emplace_back(use.user.id(), use.operand_index);
  }
  return users;
}

// Rewires the users of the old result of the loop.
void RewriteUsers(Module& module, Instruction loop, Shape old_shape, const NewState& state) {
  const MetadataId metadata = module.record(loop.id()).metadata;
  const std::vector<std::pair<InstructionId, int64_t>> whole = UsersOfWhole(loop);
  std::vector<InstructionId> elements;
  for (const auto& use : loop.uses()) {
    if (use.user.opcode() == Opcode::kGetTupleElement) elements.push_back(use.user.id());
  }
  for (InstructionId element : elements) {
    const size_t index = static_cast<size_t>(module.instruction(element).int_attr(Attr::kIndex));
    if (state.number[index] < 0) {
      Replace(module, element, state.before[index]);
    } else {
      module.SetAttr(element, Attr::kIndex, module.EncodeInt64(state.number[index]));
    }
  }
  const bool is_root = loop.is_root();
  if (whole.empty() && !is_root) return;
  Builder builder(&module, loop.id());
  builder.SetInsertionPointAfter(loop.id());
  std::vector<InstructionId> all;
  for (size_t k = 0; k < state.before.size(); ++k) {
    all.push_back(state.number[k] < 0 ? state.before[k] : MakeElement(builder, loop.id(), state.number[k]));
  }
  builder.SetMetadata(metadata);
  const InstructionId again = builder.Make(Opcode::kTuple, old_shape, all);
  for (const auto& [user, index] : whole) module.ReplaceOperand(user, index, again);
  if (is_root) module.SetRoot(module.record(loop.id()).parent, again);
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
  const Instruction loop = plain.loop;
  const Shape old_shape = loop.shape();
  const NewState state = StateWith(module, plain, keep, added);
  RewriteBody(module, plain, state, added);
  Builder builder(&module, loop.id());
  builder.SetMetadata(module.record(plain.init.id()).metadata);
  const InstructionId tuple = builder.Make(Opcode::kTuple, state.shape, state.init);
  module.ReplaceOperand(loop.id(), 0, tuple);
  module.SetShape(loop.id(), state.shape);
  ForgetElementNumbers(module, loop.id());
  module.RemoveAttr(loop.id(), Attr::kOrigin);
  RewriteUsers(module, loop, old_shape, state);
  if (!plain.init.has_users() && plain.init.opcode() == Opcode::kTuple && !plain.init.is_root()) {
    MergeMetadata(module, plain.init.id(), tuple);
    module.Erase(plain.init.id());
  }
  for (InstructionId id : state.before) {
    const Instruction i = module.instruction(id);
    if (i.record().parent.valid() && !i.has_users() && i.opcode() == Opcode::kGetTupleElement && !i.is_root()) {
      module.Erase(id);
    }
  }
  return loop;
}

}  // namespace hlokit
