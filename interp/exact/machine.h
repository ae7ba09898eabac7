// SPDX-License-Identifier: Apache-2.0
// Runs a routine for one device. Calls, loops and conditionals nest on a stack of frames in memory; the machine itself
// never recurses, so their depth is bounded by memory (and Limits::max_call_depth) only.
#ifndef HLOKIT_INTERP_EXACT_MACHINE_H_
#define HLOKIT_INTERP_EXACT_MACHINE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/program.h"
#include "interp/exact/run_context.h"
#include "interp/exact/step_observer.h"

namespace hlokit::interp {

class Machine {
 public:
  // The arguments are borrowed and must outlive the machine unless they own buffers, whose references it takes over.
  Machine(RunContext& context, Routine* routine, absl::Span<const Value> arguments);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  enum class State : uint8_t {
    kRunning,
    kWaiting,  // at a collective step; see waiting_for
    kDone,     // results() are there
    kFailed,   // context.error() says why
  };
  // Runs until the end, an error, or a collective.
  State Run();
  State state() const { return state_; }

  // In kWaiting: the step, its operands, and the way on.
  const Step& waiting_for() const { return *waiting_step_; }
  absl::Span<const std::byte* const> waiting_operands() const { return waiting_operands_; }
  // The routine of that step.
  const Routine& waiting_routine() const { return *frames_.back().routine; }
  // Each result is given with a reference that the machine takes over.
  void Resume(absl::Span<const Value> results);

  // Leaves of the root, in kDone. The caller takes over the references.
  std::vector<Value>& results() { return returned_; }

  void set_observer(StepObserver* observer) { observer_ = observer; }

  // A machine of its own for a computation that a kernel calls.
  static bool RunToEnd(RunContext& context, Routine* routine, absl::Span<const Value> arguments,
                       absl::Span<Value> results);

 private:
  enum class Phase : uint8_t { kStep, kCall, kCondition, kBody };
  struct Frame {
    Routine* routine;
    Value* slots;
    uint32_t next;  // step
    Phase phase;    // what the frame above runs for `next`
    int64_t trips;  // of the loop at `next`
  };

  // Arguments: `arguments[i]` with a reference for each that owns a buffer.
  bool Push(Routine* routine, absl::Span<const Value> arguments);
  // Takes the results of the top frame into returned_ and drops it.
  void Pop();
  void Unwind();
  bool RunKernel(Frame& frame, const Step& step);
  // Start a step that needs another frame; continue it when that frame has returned.
  bool Enter(Frame& frame, const Step& step);
  bool Continue(Frame& frame, const Step& step);
  bool PushArguments(const Frame& frame, const Step& step, Routine* callee, uint32_t begin, uint32_t end);
  bool PushState(Frame& frame, const Step& step, Routine* callee, bool move);
  bool Observe(const Frame& frame, const Step& step);
  // Notes where the run stands, for its error message.
  void RecordPosition();
  void ReleaseAfter(const Frame& frame, const Step& step);
  void ReleaseSlot(Value& slot) {
    context_.pool.Release(slot.owner);
    slot = Value();
  }
  State Fail(std::string message);

  RunContext& context_;
  std::vector<Frame> frames_;
  std::vector<Value> returned_;   // by the frame popped last
  std::vector<Value> arguments_;  // for the frame pushed next
  std::vector<const std::byte*> in_;
  std::vector<std::byte*> out_;
  std::vector<const std::byte*> waiting_operands_;
  const Step* waiting_step_ = nullptr;
  StepObserver* observer_ = nullptr;
  State state_ = State::kRunning;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_MACHINE_H_
