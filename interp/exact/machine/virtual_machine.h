// SPDX-License-Identifier: Apache-2.0
// Runs a compiled computation for one device. Calls, loops and conditionals push frames on an explicit stack; without
// recursion their depth is bounded only by memory and Limits::max_call_depth.
#ifndef HLOKIT_INTERP_EXACT_MACHINE_VIRTUAL_MACHINE_H_
#define HLOKIT_INTERP_EXACT_MACHINE_VIRTUAL_MACHINE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/program.h"
#include "interp/interface/execution_observer.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

class VirtualMachine {
 public:
  // Arguments are borrowed and must outlive the machine, except those with owners, whose references it takes over.
  VirtualMachine(RunContext& context, CompiledComputation* computation, absl::Span<const SlotValue> arguments);
  VirtualMachine(const VirtualMachine&) = delete;
  VirtualMachine& operator=(const VirtualMachine&) = delete;
  ~VirtualMachine();

  enum class State : uint8_t {
    kRunning,
    kWaiting,  // at a collective; see waiting_for
    kDone,     // results() are available
    kFailed,   // see context.error()
  };
  // Runs until the end, an error, or a collective.
  State Run();
  State state() const { return state_; }

  // Returns the collective, its operands, or its continuation. Requires: kWaiting.
  const Thunk& waiting_for() const { return *waiting_thunk_; }
  absl::Span<const std::byte* const> waiting_operands() const { return waiting_operands_; }
  // Appends the blocks of these operands, with a reference to each.
  void HoldOperands(std::vector<PoolBlock*>* blocks) const;
  // Returns the compiled computation of that thunk.
  const CompiledComputation& waiting_computation() const { return *frames_.back().computation; }
  // Continues after a collective. Takes over a reference to each result.
  void Resume(absl::Span<const SlotValue> results);

  // Returns the leaves of the root. Requires: kDone. The caller takes over the references.
  std::vector<SlotValue>& results() { return returned_; }

  // Large results of kernels of the computation become these literals, by leaf of the root; others stay empty.
  void set_results(std::vector<Literal>* results) { results_ = results; }

  void set_observer(ExecutionObserver* observer) { observer_ = observer; }

  // Runs a computation that a kernel calls on a separate machine.
  static bool RunToEnd(RunContext& context, CompiledComputation* computation, absl::Span<const SlotValue> arguments,
                       absl::Span<SlotValue> results);

 private:
  enum class Phase : uint8_t { kThunk, kCall, kCondition, kBody };
  struct Frame {
    CompiledComputation* computation;
    SlotValue* slots;
    uint32_t next;       // thunk
    Phase phase;         // what the callee's frame runs for `next`
    int64_t iterations;  // of the loop at `next`
  };

  // `arguments[i]`: with a reference for each that has an owner.
  bool Push(CompiledComputation* computation, absl::Span<const SlotValue> arguments);
  // Moves the results of the top frame to returned_ and pops it.
  void Pop();
  void Unwind();
  bool RunKernel(Frame& frame, const Thunk& thunk);
  // Places a result of the computation in its literal. Returns false if it has none.
  bool PlaceInLiteral(const SlotInfo& slot, SlotValue* value);
  // Enter starts a thunk that needs another frame; Continue resumes it when that frame has returned.
  bool Enter(Frame& frame, const Thunk& thunk);
  bool Continue(Frame& frame, const Thunk& thunk);
  bool PushArguments(const Frame& frame, const Thunk& thunk, CompiledComputation* callee, uint32_t begin, uint32_t end);
  bool PushState(Frame& frame, const Thunk& thunk, CompiledComputation* callee, bool move);
  // Runs a loop over little data. Returns nullopt, with nothing done, if there is no memory for it.
  std::optional<bool> RunSmallLoop(Frame& frame, const Thunk& thunk, SmallLoop& loop);
  bool Observe(const Frame& frame, const Thunk& thunk);
  // Records the position for the error message.
  void RecordPosition();
  void ReleaseAfter(const Frame& frame, const Thunk& thunk);
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
  std::vector<Literal>* results_ = nullptr;
  State state_ = State::kRunning;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_MACHINE_VIRTUAL_MACHINE_H_
