// SPDX-License-Identifier: Apache-2.0
#include "interp/reference/evaluator.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "interp/reference/virtual_machine.h"
#include "ir/core/str_cat.h"
#include "ir/graph/dynamic_shapes.h"
#include "ir/graph/name_range.h"

namespace hlokit::reference {
namespace {

// Returns a leaf in the shape that an instruction declares.
Literal ToLiteral(const Array& array, Shape shape) {
  Literal literal = Literal::Zeros(shape);
  if (literal.size_bytes() != 0) std::memcpy(literal.data(), array.data(), literal.size_bytes());
  return literal;
}

// The devices of a run, scheduled cooperatively: each runs until it ends or reaches a collective; a group continues
// when all its devices have arrived.
class Devices {
 public:
  Devices(Run& run, Computation entry, absl::Span<const Literal* const> arguments, size_t each) : run_(run) {
    const int64_t count = run.options.num_replicas * run.options.num_partitions;
    for (int64_t d = 0; d < count; ++d) {
      SlotValue leaves;
      for (const Literal* literal : arguments.subspan(static_cast<size_t>(d) * each, each)) {
        leaves.push_back(std::make_shared<Array>(literal->shape(), literal->data()));
      }
      devices_.push_back({d / run.options.num_partitions, d % run.options.num_partitions});
      run.device = &devices_.back();
      machines_.push_back(std::make_unique<VirtualMachine>(run, entry, std::move(leaves), /*applied=*/false));
    }
  }

  bool InvokeOpMultiOutput() {
    while (!run_.failed()) {
      bool waiting = false, progressed = false;
      for (size_t d = 0; d < machines_.size() && !run_.failed(); ++d) {
        run_.device = &devices_[d];
        if (machines_[d]->state() == VirtualMachine::State::kRunning) machines_[d]->Advance();
      }
      for (size_t d = 0; d < machines_.size() && !run_.failed(); ++d) {
        if (machines_[d]->state() != VirtualMachine::State::kWaiting) continue;
        waiting = true;
        progressed = TryRunCollective(static_cast<int64_t>(d)) || progressed;
      }
      if (!waiting) break;
      if (!progressed && !run_.failed()) ReportDeadlock();
    }
    return !run_.failed();
  }

  const SlotValue& result(size_t device) const { return machines_[device]->result(); }

 private:
  VirtualMachine& machine(int64_t device) { return *machines_[static_cast<size_t>(device)]; }
  bool WaitsFor(int64_t device, Instruction at) {
    if (machine(device).state() != VirtualMachine::State::kWaiting) return false;
    const Instruction there = machine(device).waiting_for();
    return there == at || (NumberOf(at) != 0 && NumberOf(there) == NumberOf(at));
  }
  int64_t NumberOf(Instruction collective) const {
    const std::vector<int64_t>& numbers = run_.options.collective_numbers;
    return numbers.empty() ? 0 : numbers[collective.id().value];
  }

  // Runs the collective that `device` waits for if its whole group has arrived.
  bool TryRunCollective(int64_t device) {
    const Instruction at = machine(device).waiting_for();
    run_.device = &devices_[static_cast<size_t>(device)];
    const auto fail = [&](std::string message) {
      run_.error_instruction = at.id();
      run_.Fail(std::move(message));
      return false;
    };
    const absl::StatusOr<std::vector<int64_t>> members = GroupOf(run_, at, device);
    if (!members.ok()) return fail(std::string(members.status().message()));
    for (int64_t d : *members) {
      if (!WaitsFor(d, at)) return false;
    }
    if (!IsReady(run_, at, device)) return false;
    Group group = {run_, at, *members, {}};
    for (int64_t d : *members) group.operands.push_back(machine(d).waiting_operands());
    EvaluateOf(at.opcode())->collective(group);
    for (size_t m = 0; m < members->size() && !run_.failed(); ++m) {
      const SlotValue results(group.results[m].begin(), group.results[m].end());
      SlotValue value = CollectiveValue(run_, at, group.operands[m], results);
      if (!run_.failed()) machine((*members)[m]).Resume(std::move(value));
    }
    return run_.failed() ? fail("") : true;
  }

  void ReportDeadlock() {
    constexpr int kMaxNamed = 8;
    int64_t device = 0;
    while (machine(device).state() != VirtualMachine::State::kWaiting) ++device;
    const Instruction at = machine(device).waiting_for();
    run_.device = &devices_[static_cast<size_t>(device)];
    run_.error_instruction = at.id();
    const absl::StatusOr<std::vector<int64_t>> members = GroupOf(run_, at, device);
    std::string missing;
    int named = 0;
    for (int64_t other : *members) {
      if (WaitsFor(other, at) || ++named > kMaxNamed) continue;
      const bool waits = machine(other).state() == VirtualMachine::State::kWaiting;
      StrAppend(&missing, missing.empty() ? "" : "; ", run_.DeviceName(other), waits ? " waits at " : " has ended",
                waits ? machine(other).waiting_for().name() : "");
    }
    if (named > kMaxNamed) StrAppend(&missing, "; and ", named - kMaxNamed, " more");
    run_.Fail(HasTrait(at.opcode(), kTransfers) ? std::string("waits for a message, which nobody sends")
                                                : StrCat("waits for devices that do not come: ", missing));
  }

  Run& run_;
  std::deque<Device> devices_;
  std::vector<std::unique_ptr<VirtualMachine>> machines_;
};

void ReportError(const Module& module, const Run& run, DiagnosticSink* sink) {
  std::string message = run.error(), loops;
  if (run.options.num_replicas * run.options.num_partitions > 1) {
    message = StrCat(run.DeviceName(run.DeviceNumber()), ": ", message);
  }
  const Instruction at = run.error_instruction.valid() ? module.instruction(run.error_instruction) : Instruction();
  if (at.valid()) message = StrCat(at.name(), ": ", message);
  for (const std::string& loop : run.error_loops) StrAppend(&loops, loops.empty() ? "" : ", ", loop);
  sink->Error(DiagnosticKind::kEvaluation, NameRange(at), std::move(message), std::move(loops));
}

}  // namespace

Evaluator::Evaluator() = default;
Evaluator::~Evaluator() = default;

std::unique_ptr<Evaluator> Evaluator::Prepare(const Module& module, const interp::EvaluatorOptions& options,
                                              DiagnosticSink* sink) {
  if (!CheckProgram(module, options, sink)) return nullptr;
  auto evaluator = std::unique_ptr<Evaluator>(new Evaluator());
  evaluator->options_ = options;
  evaluator->program_ = std::make_unique<PreparedProgram>();
  if (!PrepareProgram(module, evaluator->options_, sink, evaluator->program_.get())) return nullptr;
  const Computation entry = module.entry();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    for (Shape leaf : LeafShapes(entry.parameter(i).shape())) evaluator->argument_shapes_.push_back(leaf);
  }
  evaluator->result_shapes_ = LeafShapes(entry.root().shape());
  return evaluator;
}

std::optional<std::vector<Literal>> Evaluator::RunPointers(absl::Span<const Literal* const> arguments,
                                                           DiagnosticSink* sink, interp::DonatedArguments* donation) {
  std::optional<std::vector<Literal>> results = RunDevices(arguments, sink);
  if (results && donation != nullptr) donation->aliased_argument.assign(results->size(), -1);
  return results;
}

std::optional<std::vector<Literal>> Evaluator::RunDevices(absl::Span<const Literal* const> arguments,
                                                          DiagnosticSink* sink) {
  const size_t each = argument_shapes_.size(), devices = static_cast<size_t>(num_devices());
  if (HasDynamicShapes(*program_->module)) {
    sink->Error(DiagnosticKind::kUnsupported, {}, "a program with dynamic dimensions runs by PrepareEngine");
    return std::nullopt;
  }
  if (!CheckArguments(arguments, sink)) return std::nullopt;
  reference::Run run(program_.get(), options_, sink);
  for (const Literal* argument : arguments) run.memory.max -= static_cast<int64_t>(argument->size_bytes());
  std::optional<std::vector<Literal>> results;
  {
    Devices all(run, program_->module->entry(), arguments, each);
    if (all.InvokeOpMultiOutput()) {
      results.emplace();
      for (size_t d = 0; d < devices; ++d) {
        for (size_t r = 0; r < result_shapes_.size(); ++r) {
          results->push_back(ToLiteral(*all.result(d)[r], result_shapes_[r]));
        }
      }
    } else {
      ReportError(*program_->module, run, sink);
    }
  }
  statistics_ = run.statistics;
  statistics_.peak_bytes = run.memory.peak;
  statistics_.seconds = run.Seconds();
  return results;
}

bool Evaluator::CanEvaluateOne(Instruction instruction) {
  const Opcode opcode = instruction.opcode();
  const Evaluate* evaluate = EvaluateOf(opcode);
  return evaluate != nullptr && !HasTrait(opcode, kLeaf) && !HasTrait(opcode, kImpure) &&
         !HasTrait(opcode, kSideEffect) && opcode != Opcode::kGetDimensionSize &&
         (evaluate->kind == Evaluate::Kind::kFill || evaluate->kind == Evaluate::Kind::kReturn);
}

absl::StatusOr<std::vector<Literal>> Evaluator::EvaluateOne(Instruction instruction,
                                                            absl::Span<const Literal> operands) {
  DiagnosticSink sink;
  reference::Run run(program_.get(), options_, &sink);
  Device device;
  run.device = &device;
  std::deque<SlotValue> values;
  std::vector<const SlotValue*> places;
  size_t next = 0;
  for (Instruction operand : instruction.operands()) {
    SlotValue& value = values.emplace_back();
    places.push_back(&value);
    for (size_t leaf = LeafShapes(operand.shape()).size(); leaf-- > 0 && next < operands.size(); ++next) {
      value.push_back(std::make_shared<Array>(operands[next].shape(), operands[next].data()));
    }
  }
  std::vector<Literal> results;
  {
    const SlotValue value = EvaluateOp(run, instruction, OperandValues(std::move(places)));
    if (run.failed()) return absl::FailedPreconditionError(run.error());
    const std::vector<Shape> shapes = LeafShapes(instruction.shape());
    for (size_t i = 0; i < value.size() && i < shapes.size(); ++i) results.push_back(ToLiteral(*value[i], shapes[i]));
  }
  return results;
}

}  // namespace hlokit::reference
