// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/instruction_runner.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "ir/core/diagnostic.h"
#include "ir/core/first_error.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"

namespace hlokit::interp {
namespace {

// Prepared instructions are kept for loops; the entry's run once.
constexpr size_t kMaxPrepared = 1024;

bool HasToken(Shape shape) {
  for (Shape leaf : Leaves(shape)) {
    if (leaf.IsToken()) return true;
  }
  return false;
}

// Classifies an instruction by its opcode and shapes. Callees are not considered.
Runnable ClassifyAlone(Instruction i) {
  const Opcode opcode = i.opcode();
  if (HasTrait(opcode, kCollective) || HasTrait(opcode, kDeviceId)) return Runnable::kDevices;
  if (HasTrait(opcode, kSideEffect) || HasTrait(opcode, kAsyncChain) || i.bool_attr(Attr::kCustomCallHasSideEffect)) {
    return Runnable::kSideEffects;
  }
  bool token = HasToken(i.shape()), dynamic = i.shape().has_dynamic_dims();
  for (Instruction operand : i.operands()) {
    token |= HasToken(operand.shape());
    dynamic |= operand.shape().has_dynamic_dims();
  }
  if (token) return Runnable::kSideEffects;
  if (dynamic || OpcodeSet{Opcode::kGetDimensionSize, Opcode::kSetDimensionSize}.Contains(opcode))
    return Runnable::kDynamic;
  return Runnable::kYes;
}

// The operations of each element of a result, beside those of a window and of a computation that is applied.
enum class WorkRule : uint8_t { kElements, kConvolution, kContraction, kTransform, kOrder, kSolution };
constexpr OpcodeRow<WorkRule> kWorkRows[] = {{Opcode::kConvolution, WorkRule::kConvolution},
                                             {Opcode::kDot, WorkRule::kContraction},
                                             {Opcode::kRaggedDot, WorkRule::kContraction},
                                             {Opcode::kScaledDot, WorkRule::kContraction},
                                             {Opcode::kFft, WorkRule::kTransform},
                                             {Opcode::kSort, WorkRule::kOrder},
                                             {Opcode::kTopK, WorkRule::kOrder},
                                             {Opcode::kCholesky, WorkRule::kSolution},
                                             {Opcode::kTriangularSolve, WorkRule::kSolution}};
constexpr auto kWorkRules = MakeOpcodeTable<WorkRule>(
    kWorkRows, {.elementwise = WorkRule::kElements, .other = WorkRule::kElements, .unknown = WorkRule::kElements});

double ElementsOf(Shape shape) {
  double count = 0;
  for (Shape leaf : Leaves(shape)) {
    if (leaf.IsArray()) count += static_cast<double>(std::max<int64_t>(leaf.element_count(), 0));
  }
  return count;
}

absl::Status FailureOf(const DiagnosticSink& sink) {
  return absl::FailedPreconditionError(FirstErrorOf(sink, "no value"));
}

}  // namespace

std::string_view ToString(Runnable runnable) {
  switch (runnable) {
    case Runnable::kYes:
      return "runs alone";
    case Runnable::kNothing:
      return "computes nothing";
    case Runnable::kDevices:
      return "depends on devices";
    case Runnable::kSideEffects:
      return "side effects, asynchronous, or a token";
    case Runnable::kDynamic:
      return "dynamic sizes";
  }
  return "";
}

std::vector<Literal> LeavesOf(Shape shape, absl::Span<const std::byte* const> data) {
  std::vector<Literal> literals;
  for (Shape leaf : Leaves(shape)) {
    while (leaf.IsBuffer()) leaf = leaf.element(0);
    Literal literal = Literal::Zeros(leaf);
    if (literal.size_bytes() != 0) std::memcpy(literal.data(), data[literals.size()], literal.size_bytes());
    literals.push_back(std::move(literal));
  }
  return literals;
}

double WorkOf(Instruction i) {
  if (HasTrait(i.opcode(), kControlFlow)) {
    std::vector<ComputationId> callees;
    i.ForEachCallee([&](Computation callee) { callees.push_back(callee.id()); });
    double work = 0;
    for (const ComputationId id : ReachableComputations(i.module(), callees)) {
      for (const Instruction inner : i.module().computation(id).instructions()) {
        if (!HasTrait(inner.opcode(), kControlFlow)) work += WorkOf(inner);
      }
    }
    return work;
  }
  double work = ElementsOf(i.shape());
  for (Instruction operand : i.operands()) {
    if (operand.shape().IsArray()) work += ElementsOf(operand.shape());
  }
  double each = 1;  // per element of the result
  const WindowView window = WindowView::Of(i);
  for (int64_t d = 0; window.ok() && d < window.rank(); ++d) each *= static_cast<double>(window[d].size);
  switch (kWorkRules[static_cast<size_t>(i.opcode())]) {
    case WorkRule::kElements:
      break;
    case WorkRule::kConvolution:
      each *= i.operand(1).shape().IsArray() ? ElementsOf(i.operand(1).shape()) : 1;
      break;
    case WorkRule::kContraction:
      for (int64_t d : DotDims::Of(i).lhs_contracting) each *= static_cast<double>(i.operand(0).shape().dim(d));
      break;
    case WorkRule::kTransform:
      for (int64_t n : i.list_attr(Attr::kFftLength)) each += static_cast<double>(n);
      break;
    case WorkRule::kOrder:
      each *= 16;
      break;
    case WorkRule::kSolution:
      each *= static_cast<double>(i.operand(0).shape().dim(i.operand(0).shape().rank() - 1));
      break;
  }
  const double call = i.computation_attr(Attr::kToApply).valid() ? 20 : 1;
  return (work + ElementsOf(i.shape()) * each) * call;
}

InstructionRunner::InstructionRunner(const Module& module, EngineKind engine, const EvaluatorOptions& options,
                                     bool alone)
    : module_(module), engine_(engine), alone_(alone), options_(options), computations_(module.computation_id_bound()) {
  options_.num_replicas = options_.num_partitions = 1;
  options_.observer = nullptr;
  options_.observation = {};
  options_.progress = nullptr;
  options_.host_io = nullptr;
  if (RowOf(engine).defines_values) {
    DiagnosticSink sink;
    plain_ = reference::Evaluator::Prepare(module, options_, &sink);
  }
  for (const ComputationId id : ComputationPostOrder(module)) {
    Runnable& whole = computations_[id.value];
    for (const Instruction i : module.computation(id).instructions()) {
      if (whole == Runnable::kYes) whole = ClassifyInPart(i);
    }
  }
}

Runnable InstructionRunner::Classify(Instruction i) const {
  const Opcode opcode = i.opcode();
  if (HasTrait(opcode, kLeaf) || HasTrait(opcode, kForwards) || opcode == Opcode::kAfterAll ||
      CallsSequentialCode(opcode)) {
    return Runnable::kNothing;
  }
  return ClassifyInPart(i);
}

Runnable InstructionRunner::ClassifyInPart(Instruction i) const {
  Runnable runnable = ClassifyAlone(i);
  i.ForEachCallee([&](Computation callee) {
    if (runnable == Runnable::kYes) runnable = computations_[callee.id().value];
  });
  return runnable;
}

std::unique_ptr<Engine> InstructionRunner::PrepareModule(const Module& module, DiagnosticSink* sink) const {
  return (alone_ ? PrepareAlone : PrepareEngine)(engine_, module, options_, sink);
}

absl::StatusOr<InstructionRunner::Prepared> InstructionRunner::Prepare(Instruction instruction) const {
  Prepared prepared;
  prepared.part = std::make_unique<query::Part>(query::ExtractPart(instruction, [](Instruction) { return true; }));
  DiagnosticSink sink;
  prepared.engine = PrepareModule(prepared.part->module, &sink);
  if (prepared.engine == nullptr) return FailureOf(sink);
  for (const Instruction input : prepared.part->inputs) {
    size_t first = 0;
    for (const Instruction operand : instruction.operands()) {
      const size_t leaves = Leaves(operand.shape()).size();
      if (operand == input) {
        for (size_t leaf = 0; leaf < leaves; ++leaf) prepared.leaves.push_back(first + leaf);
        break;
      }
      first += leaves;
    }
  }
  return prepared;
}

absl::StatusOr<std::vector<Literal>> InstructionRunner::Run(Instruction instruction,
                                                            absl::Span<const Literal> operands) {
  if (plain_ != nullptr && reference::Evaluator::CanEvaluateOne(instruction)) {
    return plain_->EvaluateOne(instruction, operands);
  }
  auto found = prepared_.find(instruction.id().value);
  Prepared once;
  if (found == prepared_.end()) {
    absl::StatusOr<Prepared> prepared = Prepare(instruction);
    if (!prepared.ok()) return prepared.status();
    if (instruction.parent().is_entry() || prepared_.size() >= kMaxPrepared) {
      once = *std::move(prepared);
    } else {
      found = prepared_.emplace(instruction.id().value, *std::move(prepared)).first;
    }
  }
  const Prepared& prepared = once.engine != nullptr ? once : found->second;
  std::vector<Literal> arguments;
  for (const size_t leaf : prepared.leaves) arguments.push_back(operands[leaf]);
  DiagnosticSink sink;
  std::optional<std::vector<Literal>> results = prepared.engine->Run(arguments, &sink);
  if (!results) return FailureOf(sink);
  return *std::move(results);
}

absl::StatusOr<std::vector<Literal>> InstructionRunner::RunPart(const query::Part& part,
                                                                absl::Span<const Literal> inputs,
                                                                std::unique_ptr<Engine>* engine) {
  DiagnosticSink sink;
  std::unique_ptr<Engine> once;
  std::unique_ptr<Engine>& prepared = engine != nullptr ? *engine : once;
  if (prepared == nullptr) prepared = PrepareModule(part.module, &sink);
  if (prepared == nullptr) return FailureOf(sink);
  std::optional<std::vector<Literal>> results = prepared->Run(inputs, &sink);
  if (!results) return FailureOf(sink);
  return *std::move(results);
}

}  // namespace hlokit::interp
