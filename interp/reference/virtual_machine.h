// SPDX-License-Identifier: Apache-2.0
// Runs a computation for one device, instruction by instruction. Calls, loops and conditionals push frames on an
// explicit stack, so that only Limits::max_call_depth bounds their depth.
#ifndef HLOKIT_INTERP_REFERENCE_VIRTUAL_MACHINE_H_
#define HLOKIT_INTERP_REFERENCE_VIRTUAL_MACHINE_H_

#include <cstdint>
#include <vector>

#include "interp/reference/ops.h"
#include "interp/reference/run.h"

namespace hlokit::reference {

// Evaluates one instruction other than control flow and collectives. Empty after an error, or if the value is ().
SlotValue EvaluateOp(Run& run, Instruction instruction, OperandValues operands);

class VirtualMachine {
 public:
  // `arguments`: leaves of all parameters. `applied`: the computation is applied to elements; its instructions do not
  // count as steps and are not observed.
  VirtualMachine(Run& run, Computation computation, SlotValue arguments, bool applied);

  enum class State : uint8_t { kRunning, kWaiting, kDone, kFailed };
  // Runs until the end, an error, or a collective.
  State Advance();
  State state() const { return state_; }

  // Returns the collective, the leaves of its operands, or its continuation. Requires: kWaiting.
  Instruction waiting_for() const { return waiting_for_; }
  const SlotValue& waiting_operands() const { return waiting_operands_; }
  void Resume(SlotValue value);

  // Requires: kDone.
  const SlotValue& result() const { return returned_; }
  const SlotValue& root_operands() const { return root_operands_; }

 private:
  enum class Phase : uint8_t { kNext, kCall, kCondition, kBody, kAsync };
  struct Frame {
    Computation computation;
    const Schedule* schedule;
    SlotValue arguments;
    std::vector<SlotValue> values;  // by position in the schedule
    size_t next = 0;
    Phase phase = Phase::kNext;  // what the callee's frame runs for instruction `next`
    int64_t iterations = 0;      // of the loop at `next`
    SlotValue state;             // state of that loop, or operands bound to that asynchronous operation
  };

  void Push(Computation computation, SlotValue arguments);
  void Thunk();
  void Enter(Instruction at, Control control);
  void EnterAsync(Instruction at);
  void Continue(Instruction at);
  // Sets the value of instruction `next` and advances.
  void Finish(SlotValue value);
  SlotValue OperandLeaves(Instruction at);
  SlotValue ParameterValue(Instruction at);
  const SlotValue& ValueOf(Instruction instruction) {
    return frames_.back().values[run_.program.positions[instruction.id().value]];
  }
  void RecordPosition();

  Run& run_;
  const bool applied_;
  std::vector<Frame> frames_;
  SlotValue returned_;  // by the frame popped last
  SlotValue root_operands_;
  Instruction waiting_for_;
  SlotValue waiting_operands_;
  State state_ = State::kRunning;
};

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_VIRTUAL_MACHINE_H_
