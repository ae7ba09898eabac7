// SPDX-License-Identifier: Apache-2.0
#include "interp/reference/virtual_machine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/core/str_cat.h"

namespace hlokit::reference {
namespace {

constexpr Evaluate kEvaluate[] = {
#define OPCODE(name, text, min, max, rule, types, traits, elements, kernel, ...) ops::kernel,
#include "ir/ops/opcode_columns.inc"
};
static_assert(std::size(kEvaluate) == kOpcodeCount);

bool IsScalarPred(const SlotValue& value) {
  return value.size() == 1 && value[0]->type() == ElementType::kPred && value[0]->count() == 1;
}

}  // namespace

const Evaluate* EvaluateOf(Opcode opcode) {
  return opcode == Opcode::kUnknown ? nullptr : &kEvaluate[static_cast<size_t>(opcode)];
}

SlotValue EvaluateOp(Run& run, Instruction instruction, OperandValues operands) {
  const Evaluate& evaluate = *EvaluateOf(instruction.opcode());
  Op op = {run, instruction, instruction.shape(), std::move(operands), {}};
  const bool mixed = run.program.mixed.contains(instruction.id().value);
  if (mixed && !FitOperands(&op)) return {};
  SlotValue value;
  if (evaluate.kind == Evaluate::Kind::kReturn) {
    value = evaluate.returned(op);
  } else {
    for (size_t i = 0; i < op.operands.size(); ++i) op.Require(!op.operands[i].empty(), "an operand is no array");
    if (!run.failed()) op.results = run.AllocateLeaves(op.shape);
    if (run.failed() || !op.Require(!op.results.empty(), "the result is no array")) return {};
    evaluate.fill(op);
    value.assign(op.results.begin(), op.results.end());
  }
  if (mixed && !run.failed()) FitResults(run, instruction.shape(), &value);
  return run.failed() ? SlotValue() : value;
}

VirtualMachine::VirtualMachine(Run& run, Computation computation, SlotValue arguments, bool applied)
    : run_(run), applied_(applied) {
  Push(computation, std::move(arguments));
}

void VirtualMachine::Push(Computation computation, SlotValue arguments) {
  if (static_cast<int64_t>(frames_.size()) >= run_.options.limits.max_call_depth) {
    return run_.Fail(StrCat("calls are nested deeper than ", run_.options.limits.max_call_depth));
  }
  const auto schedule =
      computation.valid() ? run_.program.schedules.find(computation.id().value) : run_.program.schedules.end();
  if (schedule == run_.program.schedules.end() || !schedule->second.Takes(arguments)) {
    return run_.Fail("the called computation does not fit the operands");
  }
  Frame& frame = frames_.emplace_back();
  frame.computation = computation;
  frame.schedule = &schedule->second;
  frame.arguments = std::move(arguments);
  frame.values.resize(frame.schedule->order.size());
}

VirtualMachine::State VirtualMachine::Advance() {
  state_ = State::kRunning;
  while (state_ == State::kRunning && !run_.failed()) {
    Frame& frame = frames_.back();
    if (frame.next < frame.schedule->order.size()) {
      Thunk();
      continue;
    }
    returned_ = ValueOf(frame.computation.root());
    frames_.pop_back();
    if (frames_.empty()) state_ = State::kDone;
  }
  if (run_.options.observer != nullptr && !applied_) run_.options.observer->OnInstructionEnd();
  if (run_.failed()) {
    state_ = State::kFailed;
    RecordPosition();
  }
  return state_;
}

void VirtualMachine::Thunk() {
  Frame& frame = frames_.back();
  const Instruction at = frame.schedule->order[frame.next];
  if (frame.phase != Phase::kNext) return Continue(at);
  if (at.opcode() == Opcode::kParameter) return Finish(ParameterValue(at));
  if (applied_ ? !run_.Tick() : !run_.CountStep()) return;
  if (run_.options.observer != nullptr && !applied_) run_.options.observer->OnInstructionBegin(at.id());
  const Evaluate& evaluate = *EvaluateOf(at.opcode());
  if (evaluate.kind == Evaluate::Kind::kControl) return Enter(at, evaluate.control);
  if (evaluate.kind == Evaluate::Kind::kCollective) {
    if (applied_) return run_.Fail("a collective operation in a computation that is applied to elements");
    waiting_for_ = at;
    waiting_operands_ = OperandLeaves(at);
    state_ = State::kWaiting;
    return;
  }
  std::vector<const SlotValue*> operands;
  for (Instruction operand : at.operands()) operands.push_back(&ValueOf(operand));
  SlotValue value = EvaluateOp(run_, at, OperandValues(std::move(operands)));
  if (!run_.failed()) Finish(std::move(value));
}

// Returns the leaves of a parameter.
SlotValue VirtualMachine::ParameterValue(Instruction at) {
  const Frame& frame = frames_.back();
  const size_t p = static_cast<size_t>(at.parameter_number());
  const auto leaf = [&](size_t i) {
    return frame.arguments.begin() + static_cast<int64_t>(frame.schedule->parameter_begins[i]);
  };
  return SlotValue(leaf(p), leaf(p + 1));
}

SlotValue VirtualMachine::OperandLeaves(Instruction at) {
  SlotValue leaves;
  for (Instruction operand : at.operands())
    leaves.insert(leaves.end(), ValueOf(operand).begin(), ValueOf(operand).end());
  return leaves;
}

void VirtualMachine::Enter(Instruction at, Control control) {
  Frame& frame = frames_.back();
  switch (control) {
    case Control::kCall: {
      const std::vector<Computation> called = at.called_computations();
      frame.phase = Phase::kCall;
      return Push(called.empty() ? Computation() : called[0], OperandLeaves(at));
    }
    case Control::kWhile:
      frame.phase = Phase::kCondition;
      frame.iterations = 0;
      frame.state = ValueOf(at.operand(0));
      return Push(at.computation_attr(Attr::kCondition), frame.state);
    case Control::kConditional: {
      // A true pred selects the first branch; an index out of range selects the last one.
      const std::vector<Computation> branches = at.called_computations();
      const SlotValue& selector = ValueOf(at.operand(0));
      const int64_t count = static_cast<int64_t>(branches.size());
      if (count == 0 || at.operand_count() != count + 1 || selector.size() != 1) {
        return run_.Fail("the branches do not fit the operands");
      }
      const int64_t index = selector[0]->Integer(0);
      int64_t branch = index < 0 || index >= count ? count - 1 : index;
      if (selector[0]->type() == ElementType::kPred) branch = index != 0 ? 0 : 1;
      if (branch >= count) return run_.Fail("the branches do not fit the operands");
      frame.phase = Phase::kCall;
      return Push(branches[static_cast<size_t>(branch)], ValueOf(at.operand(branch + 1)));
    }
    case Control::kAsync:
      return EnterAsync(at);
  }
}

// `async-start`, `async-update`, `async-done`: the value of a start or update is ((operands), results, contexts...).
// The computation runs once all operands are bound and the value has space for its results; later instructions of the
// chain forward them.
void VirtualMachine::EnterAsync(Instruction at) {
  Frame& frame = frames_.back();
  const bool starts = HasTrait(at.opcode(), kStartsAsync);
  const Instruction start = starts ? at : run_.program.async_starts.Find(at);
  const Computation callee = start.valid() ? start.computation_attr(Attr::kCalls) : Computation();
  if (!callee.valid()) return run_.Fail("the called computation is missing");
  const size_t needed = run_.program.schedules.at(callee.id().value).parameter_leaves.size();
  const auto is_complete = [&](Shape shape, size_t bound) {
    const auto [begin, end] = run_.program.ElementLeaves(shape, 1);
    return bound >= needed && end - begin == LeafShapes(callee.root().shape()).size();
  };
  SlotValue bound, results;
  bool has_run = false;
  if (!starts) {
    const SlotValue& previous = ValueOf(at.operand(0));
    const Shape shape = at.operand(0).shape();
    if (!shape.IsTuple() || shape.tuple_size() < 2) return run_.Fail("the operand is no asynchronous operation");
    const auto [begin, end] = run_.program.ElementLeaves(shape, 1);
    has_run = is_complete(shape, begin);
    bound.assign(previous.begin(), previous.begin() + static_cast<int64_t>(begin));
    results.assign(previous.begin() + static_cast<int64_t>(begin), previous.begin() + static_cast<int64_t>(end));
  }
  for (int64_t i = starts ? 0 : 1; i < at.operand_count(); ++i) {
    bound.insert(bound.end(), ValueOf(at.operand(i)).begin(), ValueOf(at.operand(i)).end());
  }
  const bool done = HasTrait(at.opcode(), kEndsAsync);
  if (done && bound.size() < needed) return run_.Fail("operands of the asynchronous operation are missing");
  frame.state = bound;
  frame.phase = Phase::kAsync;
  if (!has_run && (done || is_complete(at.shape(), bound.size()))) return Push(callee, std::move(bound));
  returned_ = std::move(results);
  Continue(at);
}

void VirtualMachine::Continue(Instruction at) {
  Frame& frame = frames_.back();
  switch (frame.phase) {
    case Phase::kNext:
    case Phase::kCall:
      return Finish(std::move(returned_));
    case Phase::kCondition:
      if (!IsScalarPred(returned_)) return run_.Fail("the condition of the loop gives no pred");
      if (returned_[0]->Integer(0) == 0) return Finish(std::move(frame.state));
      if (frame.iterations >= run_.options.limits.max_loop_iterations) {
        return run_.Fail(StrCat("a loop exceeded the limit of ", run_.options.limits.max_loop_iterations,
                                " iterations (--max-loop-trips)"));
      }
      ++frame.iterations;
      ++run_.statistics.loop_iterations;
      if (!applied_ && !run_.CountStep()) return;
      if (run_.options.observer != nullptr && !applied_) run_.options.observer->OnInstructionBegin(at.id());
      frame.phase = Phase::kBody;
      return Push(at.computation_attr(Attr::kBody), std::exchange(frame.state, SlotValue()));
    case Phase::kBody:
      frame.state = std::exchange(returned_, SlotValue());
      frame.phase = Phase::kCondition;
      return Push(at.computation_attr(Attr::kCondition), frame.state);
    case Phase::kAsync: {
      if (HasTrait(at.opcode(), kEndsAsync)) return Finish(std::move(returned_));
      const std::vector<Shape> shapes = LeafShapes(at.shape());
      SlotValue value = std::exchange(frame.state, SlotValue());
      const auto [begin, end] = run_.program.ElementLeaves(at.shape(), 1);
      if (begin != value.size()) return run_.Fail("the shape of the asynchronous operation does not fit its operands");
      if (returned_.size() == end - begin) value.insert(value.end(), returned_.begin(), returned_.end());
      for (size_t i = value.size(); i < shapes.size() && !run_.failed(); ++i) value.push_back(run_.Allocate(shapes[i]));
      return Finish(std::move(value));
    }
  }
}

void VirtualMachine::Finish(SlotValue value) {
  Frame& frame = frames_.back();
  const Instruction at = frame.schedule->order[frame.next];
  const size_t leaves = at.shape().IsArray() ? 1 : LeafShapes(at.shape()).size();
  if (value.size() != leaves) return run_.Fail("the value has another shape than the instruction");
  frame.values[frame.next] = std::move(value);
  const interp::ObservationRequest& observation = run_.options.observation;
  if (!applied_ && run_.options.observer != nullptr && observation.Shows(at.id())) {
    std::vector<const std::byte*> shown, operands;
    for (const Leaf& leaf : frame.values[frame.next]) shown.push_back(leaf->data());
    const SlotValue leaves = observation.operands ? OperandLeaves(at) : SlotValue();
    for (const Leaf& leaf : leaves) operands.push_back(leaf->data());
    const absl::Status status = run_.options.observer->OnValue(at.id(), shown, operands);
    if (!status.ok()) return run_.Fail(std::string(status.message()));
  }
  if (applied_ && frames_.size() == 1 && at == frame.computation.root()) root_operands_ = OperandLeaves(at);
  for (size_t position : frame.schedule->last_uses[frame.next]) frame.values[position].clear();
  frame.phase = Phase::kNext;
  ++frame.next;
}

void VirtualMachine::Resume(SlotValue value) {
  state_ = State::kRunning;
  Finish(std::move(value));
}

void VirtualMachine::RecordPosition() {
  constexpr size_t kMaxLoops = 16;
  for (size_t i = frames_.size(); i-- > 0;) {
    const Frame& frame = frames_[i];
    if (frame.next >= frame.schedule->order.size()) continue;
    const Instruction at = frame.schedule->order[frame.next];
    if (!run_.error_instruction.valid()) run_.error_instruction = at.id();
    if (at.opcode() != Opcode::kWhile || frame.phase == Phase::kNext || run_.error_loops.size() >= kMaxLoops) continue;
    const int64_t iteration = frame.phase == Phase::kBody ? frame.iterations : frame.iterations + 1;
    run_.error_loops.push_back(StrCat("in iteration ", iteration, " of ", at.name()));
  }
}

}  // namespace hlokit::reference
