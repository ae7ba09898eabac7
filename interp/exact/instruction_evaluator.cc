// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/instruction_evaluator.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/traversal.h"

namespace hlokit::interp {
namespace {

// Clones instructions of a module with their callees into another module of the same context.
class Extractor {
 public:
  explicit Extractor(const Module& from) : from_(from), to_(from.shared_context()) {}

  // Returns a module whose entry computes `root`.
  Module Extract(Instruction root) {
    CopyCallees(root);
    const ComputationId entry = to_.AddComputation(from_.record(root.parent().id()).name);
    to_.SetRoot(entry, CopyWithOperands(root, entry));
    to_.SetEntry(entry);
    return std::move(to_);
  }

 private:
  // Clones the computations that `root` and its transitive operands call, callees first.
  void CopyCallees(Instruction root) {
    std::vector<ComputationId> callees;
    for (Instruction i : Reached(root)) {
      i.ForEachCallee([&](Computation callee) { callees.push_back(callee.id()); });
    }
    for (ComputationId id : ReachableComputations(from_, callees)) CopyComputation(from_.computation(id));
  }

  // Returns the transitive operands of `root`, itself last.
  static std::vector<Instruction> Reached(Instruction root) {
    struct Visit {
      Instruction instruction;
      int64_t next;
    };
    std::vector<Instruction> order;
    absl::flat_hash_map<uint32_t, bool> seen;
    std::vector<Visit> stack = {{root, 0}};
    seen[root.id().value] = true;
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next == top.instruction.operand_count()) {
        order.push_back(top.instruction);
        stack.pop_back();
        continue;
      }
      const Instruction operand = top.instruction.operand(top.next++);
      if (seen.insert({operand.id().value, true}).second) stack.push_back({operand, 0});
    }
    return order;
  }

  void CopyComputation(Computation computation) {
    if (computations_.contains(computation.id().value)) return;
    const ComputationId copy = to_.AddComputation(from_.record(computation.id()).name);
    computations_[computation.id().value] = copy;
    for (InstructionId id : PostOrder(computation)) Copy(from_.instruction(id), copy);
    std::vector<InstructionId> parameters;
    for (int64_t i = 0; i < computation.parameter_count(); ++i) {
      parameters.push_back(instructions_.at(computation.parameter(i).id().value));
    }
    to_.SetParameters(copy, std::move(parameters));
    to_.SetRoot(copy, instructions_.at(computation.root().id().value));
  }

  InstructionId CopyWithOperands(Instruction root, ComputationId parent) {
    for (Instruction i : Reached(root)) Copy(i, parent);
    return instructions_.at(root.id().value);
  }

  void Copy(Instruction i, ComputationId parent) {
    if (instructions_.contains(i.id().value)) return;
    std::vector<InstructionId> operands;
    for (Instruction operand : i.operands()) operands.push_back(instructions_.at(operand.id().value));
    std::vector<AttrValue> attrs;
    for (const AttrValue& value : i.attrs()) {
      if (value.attr != Attr::kControlPredecessors) attrs.push_back(value);
    }
    const InstructionRecord& r = i.record();
    const InstructionId copy = to_.AddInstruction(parent, r.opcode, i.shape(), r.name, operands, attrs, r.payload);
    to_.ReplaceCallees(copy, [&](ComputationId callee) { return computations_.at(callee.value); });
    instructions_[i.id().value] = copy;
  }

  const Module& from_;
  Module to_;
  absl::flat_hash_map<uint32_t, ComputationId> computations_;  // clones
  absl::flat_hash_map<uint32_t, InstructionId> instructions_;
};

absl::Status FirstErrorStatus(const DiagnosticSink& sink) {
  return absl::FailedPreconditionError(sink.diagnostics().empty() ? "no value" : sink.diagnostics()[0].message);
}

}  // namespace

absl::StatusOr<Literal> EvaluateInstruction(Instruction instruction, const EvaluatorOptions& options) {
  if (!instruction.shape().IsArray()) return absl::InvalidArgumentError("expected an array value");
  const Module module = Extractor(instruction.module()).Extract(instruction);
  if (module.entry().parameter_count() != 0) return absl::InvalidArgumentError("the value depends on a parameter");
  DiagnosticSink sink;
  const std::unique_ptr<Evaluator> evaluator = Evaluator::Prepare(module, options, &sink);
  if (evaluator == nullptr) return FirstErrorStatus(sink);
  std::optional<std::vector<Literal>> results = evaluator->Run({}, &sink);
  if (!results || results->size() != 1) return FirstErrorStatus(sink);
  return std::move((*results)[0]);
}

PassContext EvaluatingContext() {
  EvaluatorOptions options;
  options.num_threads = 1;
  options.limits.max_steps = int64_t{1} << 20;
  options.limits.max_bytes = int64_t{1} << 28;
  PassContext environment;
  environment.evaluate = [options](Instruction instruction) { return EvaluateInstruction(instruction, options); };
  return environment;
}

}  // namespace hlokit::interp
