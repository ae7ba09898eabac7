// SPDX-License-Identifier: Apache-2.0
#include "passes/query/extract.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"

namespace hlokit::query {
namespace {

enum class Role : uint8_t { kOutside, kInput, kComputed };

// Returns true if the instruction is taken with its user, however far that is: a parameter of its shape would have no
// meaning, or would hide a value that the text states.
bool IsTakenWithUser(Instruction operand, Instruction user) {
  const bool splat = operand.opcode() == Opcode::kBroadcast && operand.operand(0).opcode() == Opcode::kConstant;
  return OpcodeSet{Opcode::kConstant, Opcode::kIota}.Contains(operand.opcode()) || splat || operand.shape().IsToken() ||
         HasTrait(user.opcode(), kEndsAsync);
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

// Copies instructions and their callees into another module of the same context.
class PartCopier {
 public:
  PartCopier(const Module& from, const std::function<bool(Instruction)>& is_input)
      : from_(from), is_input_(is_input), to_(from.shared_context()) {}

  Part Copy(Instruction result) {
    const std::vector<Instruction> order = Reached(result);
    std::vector<ComputationId> callees;
    for (const Instruction i : order) {
      if (inputs_.contains(i.id().value)) continue;
      i.ForEachCallee([&](Computation callee) { callees.push_back(callee.id()); });
    }
    for (const ComputationId id : ReachableComputations(from_, callees)) CopyComputation(from_.computation(id));
    const ComputationId entry = to_.AddComputation(from_.record(result.parent().id()).name);
    std::vector<Instruction> inputs;
    std::vector<InstructionId> parameters;
    for (const Instruction i : order) {
      if (!inputs_.contains(i.id().value)) {
        CopyInstruction(i, entry);
        continue;
      }
      const auto number = static_cast<uint32_t>(inputs.size());
      parameters.push_back(to_.AddInstruction(entry, Opcode::kParameter, i.shape(), i.record().name, {}, {}, number));
      copies_[i.id().value] = parameters.back();
      inputs.push_back(i);
    }
    to_.SetParameters(entry, std::move(parameters));
    to_.SetRoot(entry, copies_.at(result.id().value));
    to_.SetEntry(entry);
    return {std::move(to_), std::move(inputs)};
  }

 private:
  // Returns the instructions from the inputs to the result, operands first.
  std::vector<Instruction> Reached(Instruction result) {
    struct Visit {
      Instruction instruction;
      int64_t next;
    };
    std::vector<Instruction> order;
    absl::flat_hash_set<uint32_t> seen = {result.id().value};
    std::vector<Visit> stack = {{result, 0}};
    while (!stack.empty()) {
      Visit& top = stack.back();
      const Instruction at = top.instruction;
      const bool is_input = at.opcode() == Opcode::kParameter || (at != result && is_input_(at));
      if (is_input) inputs_.insert(at.id().value);
      if (is_input || top.next == at.operand_count()) {
        order.push_back(at);
        stack.pop_back();
        continue;
      }
      const Instruction operand = at.operand(top.next++);
      if (seen.insert(operand.id().value).second) stack.push_back({operand, 0});
    }
    return order;
  }

  void CopyComputation(Computation computation) {
    if (computations_.contains(computation.id().value)) return;
    const ComputationId copy = to_.AddComputation(from_.record(computation.id()).name);
    computations_[computation.id().value] = copy;
    for (InstructionId id : PostOrder(computation)) CopyInstruction(from_.instruction(id), copy);
    std::vector<InstructionId> parameters;
    for (int64_t i = 0; i < computation.parameter_count(); ++i) {
      parameters.push_back(copies_.at(computation.parameter(i).id().value));
    }
    to_.SetParameters(copy, std::move(parameters));
    to_.SetRoot(copy, copies_.at(computation.root().id().value));
  }

  void CopyInstruction(Instruction i, ComputationId parent) {
    std::vector<InstructionId> operands;
    for (const Instruction operand : i.operands()) operands.push_back(copies_.at(operand.id().value));
    std::vector<AttrValue> attrs;
    for (const AttrValue& value : i.attrs()) {
      if (value.attr != Attr::kControlPredecessors) attrs.push_back(value);
    }
    const InstructionRecord& r = i.record();
    const InstructionId copy = to_.AddInstruction(parent, r.opcode, i.shape(), r.name, operands, attrs, r.payload);
    to_.ReplaceCallees(copy, [&](ComputationId callee) { return computations_.at(callee.value); });
    copies_[i.id().value] = copy;
  }

  const Module& from_;
  const std::function<bool(Instruction)>& is_input_;
  Module to_;
  absl::flat_hash_set<uint32_t> inputs_;                       // by instruction id
  absl::flat_hash_map<uint32_t, ComputationId> computations_;  // copies
  absl::flat_hash_map<uint32_t, InstructionId> copies_;
};

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

Part ExtractPart(Instruction result, const std::function<bool(Instruction)>& is_input) {
  return PartCopier(result.module(), is_input).Copy(result);
}

}  // namespace hlokit::query
