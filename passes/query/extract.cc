// SPDX-License-Identifier: Apache-2.0
#include "passes/query/extract.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"

namespace hlokit::query {
namespace {

enum class Role : uint8_t { kOutside, kInput, kComputed };

// Returns true if the instruction is taken with its user, however far that is: a parameter of its shape would have no
// meaning, or would hide a value that the text states.
bool IsTakenWithUser(Instruction operand, Instruction user) {
  const bool splat = operand.opcode() == Opcode::kBroadcast && operand.operand(0).opcode() == Opcode::kConstant;
  return operand.opcode() == Opcode::kConstant || operand.opcode() == Opcode::kIota || splat ||
         operand.shape().IsToken() || HasTrait(user.opcode(), kEndsAsync);
}

// Sets the role of each instruction of the computation that the results need, by distance from them.
std::vector<Role> RolesOf(const Module& module, absl::Span<const Instruction> results, const ExtractOptions& options) {
  std::vector<Role> roles(module.instruction_id_bound(), Role::kOutside);
  std::vector<bool> is_input(module.instruction_id_bound());
  for (const Instruction i : options.inputs) is_input[i.id().value] = true;
  std::vector<std::pair<Instruction, int64_t>> open;
  const auto add = [&](Instruction i, int64_t distance, bool whole) {
    const bool parameter = i.opcode() == Opcode::kParameter || is_input[i.id().value] ||
                           (!whole && options.depth >= 0 && distance > options.depth);
    Role& role = roles[i.id().value];
    const Role now = parameter ? Role::kInput : Role::kComputed;
    if (role == Role::kComputed || role == now) return;
    role = now;
    if (now == Role::kComputed) open.emplace_back(i, distance);
  };
  for (const Instruction i : results) add(i, 0, false);
  for (size_t k = 0; k < open.size(); ++k) {
    const auto [at, distance] = open[k];
    for (const Instruction operand : at.operands()) add(operand, distance + 1, IsTakenWithUser(operand, at));
  }
  return roles;
}

// Erases the computations that the entry does not reach, callers before callees.
void EraseUnreachable(Module* module) {
  const ComputationId entry = module->entry().id();
  std::vector<bool> reached(module->computation_id_bound());
  for (ComputationId id : ReachableComputations(*module, {&entry, 1})) reached[id.value] = true;
  const std::vector<ComputationId> order = ComputationPostOrder(*module);
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    if (!reached[id->value]) module->EraseComputation(*id);
  }
}

}  // namespace

absl::StatusOr<Module> Extract(const Module& given, absl::Span<const Instruction> results,
                               const ExtractOptions& options) {
  if (results.empty()) return absl::InvalidArgumentError("expected an instruction to extract");
  const ComputationId source = results[0].parent().id();
  for (const absl::Span<const Instruction> list : {results, absl::MakeConstSpan(options.inputs)}) {
    for (const Instruction i : list) {
      if (i.parent().id() == source) continue;
      return absl::InvalidArgumentError(StrCat("`", i.name(), "` is in computation `", i.parent().name(), "`, `",
                                               results[0].name(), "` in `", results[0].parent().name(), "`"));
    }
  }
  const std::vector<Role> roles = RolesOf(given, results, options);
  Module module = given.Clone();
  const ComputationId part = module.AddComputation(module.record(source).name);
  absl::flat_hash_map<uint32_t, InstructionId> copies;
  // Parameters first, in the order of their numbers, then of the text.
  std::vector<InstructionId> order;
  std::vector<Instruction> inputs;
  for (const Instruction i : given.computation(source).instructions()) {
    if (roles[i.id().value] == Role::kInput) inputs.push_back(i);
  }
  std::stable_sort(inputs.begin(), inputs.end(), [](Instruction a, Instruction b) {
    const auto number = [](Instruction i) {
      return i.opcode() == Opcode::kParameter ? i.parameter_number() : INT64_MAX;
    };
    return number(a) < number(b);
  });
  EntryLayout layout;
  for (const Instruction i : inputs) {
    const auto number = static_cast<uint32_t>(layout.parameters.size());
    std::vector<AttrValue> attrs;
    if (const std::optional<uint32_t> sharding = i.payload(Attr::kSharding))
      attrs.push_back({Attr::kSharding, *sharding});
    const InstructionId copy =
        module.AddInstruction(part, Opcode::kParameter, i.shape(), i.record().name, {}, attrs, number);
    module.SetMetadata(copy, i.metadata_id());
    copies[i.id().value] = copy;
    layout.parameters.push_back(i.shape());
  }
  for (const InstructionId id : PostOrder(given.computation(source))) {
    if (roles[id.value] == Role::kComputed) order.push_back(id);
  }
  for (const InstructionId id : order) {
    std::vector<InstructionId> operands;
    for (const Instruction operand : given.instruction(id).operands())
      operands.push_back(copies.at(operand.id().value));
    const InstructionId copy = module.CloneInstruction(part, id, given.record(id).name, operands);
    module.SetMetadata(copy, given.record(id).metadata);
    copies[id.value] = copy;
    if (!given.instruction(id).has(Attr::kControlPredecessors)) continue;
    std::vector<int64_t> predecessors;
    for (const Instruction p : given.instruction(id).control_predecessors()) {
      const auto found = copies.find(p.id().value);
      if (found != copies.end()) predecessors.push_back(found->second.value);
    }
    if (predecessors.empty()) {
      module.RemoveAttr(copy, Attr::kControlPredecessors);
    } else {
      module.SetAttr(copy, Attr::kControlPredecessors, module.ListPayload(predecessors));
    }
  }
  InstructionId root = copies.at(results[0].id().value);
  if (results.size() > 1) {
    std::vector<InstructionId> elements;
    std::vector<Shape> shapes;
    for (const Instruction i : results) {
      elements.push_back(copies.at(i.id().value));
      shapes.push_back(i.shape());
    }
    root = module.AddInstruction(part, Opcode::kTuple, module.context().shapes.Tuple(shapes),
                                 module.UniqueInstructionName("results"), elements);
  }
  module.SetRoot(part, root);
  layout.result = module.instruction(root).shape();
  module.SetEntry(part);
  EraseUnreachable(&module);
  // What the header says of parameters and results is of the whole module.
  ModuleHeader header;
  header.name = given.header().name;
  header.replica_count = given.header().replica_count;
  header.num_partitions = given.header().num_partitions;
  header.stack_frames = given.header().stack_frames;
  header.entry_layout = std::move(layout);
  module.header() = std::move(header);
  return module;
}

}  // namespace hlokit::query
