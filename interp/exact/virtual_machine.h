// SPDX-License-Identifier: Apache-2.0
// Runs a routine for one device. Calls, loops and conditionals nest on a stack of frames in memory; the machine itself
// never recurses, so their depth is bounded by memory (and Limits::max_call_depth) only.
#ifndef HLOKIT_INTERP_EXACT_VIRTUAL_MACHINE_H_
#define HLOKIT_INTERP_EXACT_VIRTUAL_MACHINE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/execution_observer.h"
#include "interp/exact/program.h"
#include "interp/exact/run_context.h"

namespace hlokit::interp {

class VirtualMachine {
 public:
  // The arguments are borrowed and must outlive the machine unless they own buffers, whose references it takes over.
  VirtualMachine(RunContext& context, CompiledComputation* routine, absl::Span<const SlotValue> arguments);
  VirtualMachine(const VirtualMachine&) = delete;
  VirtualMachine& operator=(const VirtualMachine&) = delete;
  ~VirtualMachine();

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
  const Thunk& waiting_for() const { return *waiting_thunk_; }
  absl::Span<const std::byte* const> waiting_operands() const { return waiting_operands_; }
  // The routine of that step.
  const CompiledComputation& waiting_computation() const { return *frames_.back().routine; }
  // Each result is given with a reference that the machine takes over.
  void Resume(absl::Span<const SlotValue> results);

  // Leaves of the root, in kDone. The caller takes over the references.
  std::vector<SlotValue>& results() { return returned_; }

  void set_observer(ExecutionObserver* observer) { observer_ = observer; }

  // A machine of its own for a computation that a kernel calls.
  static bool RunToEnd(RunContext& context, CompiledComputation* routine, absl::Span<const SlotValue> arguments,
                       absl::Span<SlotValue> results);

 private:
  enum class Phase : uint8_t { kThunk, kCall, kCondition, kBody };
  struct Frame {
    CompiledComputation* routine;
    SlotValue* slots;
    uint32_t next;  // step
    Phase phase;    // what the frame above runs for `next`
    int64_t trips;  // of the loop at `next`
  };

  // Arguments: `arguments[i]` with a reference for each that owns a buffer.
  bool Push(CompiledComputation* routine, absl::Span<const SlotValue> arguments);
  // Takes the results of the top frame into returned_ and drops it.
  void Pop();
  void Unwind();
  bool RunKernel(Frame& frame, const Thunk& step);
  // Start a step that needs another frame; continue it when that frame has returned.
  bool Enter(Frame& frame, const Thunk& step);
  bool Continue(Frame& frame, const Thunk& step);
  bool PushArguments(const Frame& frame, const Thunk& step, CompiledComputation* callee, uint32_t begin, uint32_t end);
  bool PushState(Frame& frame, const Thunk& step, CompiledComputation* callee, bool move);
  bool Observe(const Frame& frame, const Thunk& step);
  // Notes where the run stands, for its error message.
  void RecordPosition();
  void ReleaseAfter(const Frame& frame, const Thunk& step);
  void ReleaseSlot(SlotValue& slot) {
    context_.pool.Release(slot.owner);
    slot = SlotValue();
  }
  State Fail(std::string message);

  RunContext& context_;
  std::vector<Frame> frames_;
  std::vector<SlotValue> returned_;   // by the frame popped last
  std::vector<SlotValue> arguments_;  // for the frame pushed next
  std::vector<const std::byte*> in_;
  std::vector<std::byte*> out_;
  std::vector<const std::byte*> waiting_operands_;
  const Thunk* waiting_thunk_ = nullptr;
  ExecutionObserver* observer_ = nullptr;
  State state_ = State::kRunning;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_VIRTUAL_MACHINE_H_
