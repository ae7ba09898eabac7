// SPDX-License-Identifier: Apache-2.0
// Runs a computation for one device, instruction by instruction. Calls, loops and conditionals nest on a stack of
// frames in memory, so their depth is bounded by Limits::max_call_depth alone.
#ifndef HLOKIT_INTERP_REFERENCE_MACHINE_H_
#define HLOKIT_INTERP_REFERENCE_MACHINE_H_

#include <cstdint>
#include <vector>

#include "interp/reference/ops.h"
#include "interp/reference/run.h"

namespace hlokit::reference {

// Evaluates one instruction that is neither control flow nor a collective. Empty after an error, or if the value is ().
Value EvaluateOp(Run& run, Instruction instruction, std::vector<Value> operands);

class Machine {
 public:
  // `arguments`: the leaves of all parameters. With `applied` the computation is called for elements: its instructions
  // do not count as steps, and the observer does not see them.
  Machine(Run& run, Computation computation, Value arguments, bool applied);

  enum class State : uint8_t { kRunning, kWaiting, kDone, kFailed };
  // Runs until the end, an error, or a collective.
  State Advance();
  State state() const { return state_; }

  // In kWaiting: the collective, the leaves of its operands, and the way on.
  Instruction waiting_for() const { return waiting_for_; }
  const Value& waiting_operands() const { return waiting_operands_; }
  void Resume(Value value);

  // In kDone.
  const Value& result() const { return returned_; }
  const Value& root_operands() const { return root_operands_; }

 private:
  enum class Phase : uint8_t { kNext, kCall, kCondition, kBody, kAsync };
  struct Frame {
    Computation computation;
    const Schedule* schedule;
    Value arguments;
    std::vector<Value> values;  // by place in the schedule
    size_t next = 0;
    Phase phase = Phase::kNext;  // what the frame above runs for instruction `next`
    int64_t trips = 0;           // of the loop at `next`
    Value state;                 // of that loop, or what is bound to that asynchronous operation
  };

  void Push(Computation computation, Value arguments);
  void Step();
  void Enter(Instruction at, Control control);
  void EnterAsync(Instruction at);
  void Continue(Instruction at);
  // Sets the value of instruction `next` and goes on.
  void Finish(Value value);
  Value OperandLeaves(Instruction at);
  Value ParameterValue(Instruction at);
  const Value& ValueOf(Instruction instruction) {
    return frames_.back().values[run_.program.places[instruction.id().value]];
  }
  void RecordPosition();

  Run& run_;
  const bool applied_;
  std::vector<Frame> frames_;
  Value returned_;  // by the frame popped last
  Value root_operands_;
  Instruction waiting_for_;
  Value waiting_operands_;
  State state_ = State::kRunning;
};

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_MACHINE_H_
