// SPDX-License-Identifier: Apache-2.0
// State shared by the devices and kernels of a run: memory, threads, limits, the first error.
#ifndef HLOKIT_INTERP_EXACT_MACHINE_RUN_CONTEXT_H_
#define HLOKIT_INTERP_EXACT_MACHINE_RUN_CONTEXT_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "interp/exact/memory/buffer_pool.h"
#include "interp/exact/program/program.h"
#include "interp/interface/execution_observer.h"
#include "interp/interface/host_io.h"
#include "interp/interface/limits.h"
#include "interp/processor/thread_pool.h"
#include "ir/core/diagnostic.h"

namespace hlokit::interp {

class RunContext {
 public:
  // `argument_bytes`: part of the memory that the arguments take.
  RunContext(const Limits& limits, int64_t argument_bytes, ThreadPool* threads, const std::atomic<bool>* cancel)
      : pool(std::max<int64_t>(limits.max_bytes - argument_bytes, 0)),
        limits_(limits),
        threads_(threads),
        cancel_(cancel),
        start_(Clock::now()),
        next_check_(std::min(kStepsPerCheck, limits.max_steps) + 1) {}

  BufferPool pool;

  // Sets the first error, which stops the run. Kernels may run to completion after Fail; their results are dropped.
  void Fail(std::string message, DiagnosticKind kind = DiagnosticKind::kEvaluation) {
    if (failed_.exchange(true)) return;
    error_ = std::move(message);
    error_kind_ = kind;
  }
  // Sets the error, or replaces its text by one that says more.
  void ReplaceError(std::string message) {
    failed_.store(true);
    error_ = std::move(message);
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  const std::string& error() const { return error_; }
  DiagnosticKind error_kind() const { return error_kind_; }
  // Location of the error, set by the virtual machine. Enclosing loops, innermost first.
  InstructionId error_instruction;
  struct LoopPosition {
    InstructionId loop;
    int64_t iteration;  // from 1
  };
  std::vector<LoopPosition> error_loops;

  // Counts one instruction and fails if a limit is exceeded. Called for every instruction that runs.
  bool CountStep() {
    if (++steps_ < next_check_) return true;
    return CheckLimits();
  }
  // Counts several.
  bool CountSteps(int64_t count) {
    steps_ += count;
    return steps_ < next_check_ || CheckLimits();
  }
  int64_t steps() const { return steps_; }
  const Limits& limits() const { return limits_; }
  int64_t loop_iterations = 0;  // of all loops
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // Fails if the run was canceled or is out of time, and reports progress periodically. Called in long loops.
  bool CheckTime();
  // Returns true if the run has failed, was canceled or is out of time. Kernels call it, in any thread, at least every
  // 20 ms of work, and return with their results unfinished.
  bool ShouldStop();
  using ProgressFunction = std::function<void(const RunProgress&)>;
  void set_progress(const ProgressFunction* progress) { progress_ = progress; }

  // Calls body(begin, end) over chunks of [0, count), in parallel if profitable. `cost`: approximate time of one item
  // in nanoseconds. Chunk boundaries depend on the number of threads, so results must not depend on them. Stops between
  // chunks if the run has failed.
  void ParallelFor(int64_t count, double cost, absl::FunctionRef<void(int64_t, int64_t)> body);
  // Calls body(i) for each item.
  template <typename Body>
  void ForEach(int64_t count, double cost, const Body& body) {
    ParallelFor(count, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  }
  int threads() const { return threads_->threads(); }

  // Runs a computation called by a kernel to completion on frames of its own. `results` are owned by the caller.
  // Returns false after an error.
  bool Call(CompiledComputation* computation, absl::Span<const SlotValue> arguments, absl::Span<SlotValue> results);

  // Current device, for partition-id, replica-id and collectives.
  struct LogicalDevice {
    int64_t replica = 0;
    int64_t partition = 0;
  };
  LogicalDevice device;
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  HostIo* host_io = nullptr;  // null: no host
  // Sends a message to a device of another process; null if there is none.
  std::function<bool(int64_t channel, int64_t device, const std::string& message)> send_away;
  // Messages in flight, by channel and receiving device.
  std::map<std::pair<int64_t, int64_t>, std::deque<std::string>> messages;
  // Starts of collectives that other processes have not completed: device and start.
  std::set<std::pair<int64_t, uint32_t>> pending_starts;
  bool IsPending(int64_t of_device, InstructionId start) const {
    return pending_starts.contains({of_device, start.value});
  }
  uint64_t rng_seed = 0;
  uint64_t rng_counter = 0;                          // count of rng draws in the run
  std::pair<uint64_t, uint64_t> rng_state = {0, 0};  // state of rng-get-and-update-state, low and high

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kStepsPerCheck = 1024;
  static constexpr double kSecondsPerProgress = 0.1;

  bool CheckLimits();

  const Limits limits_;
  ThreadPool* threads_;
  const std::atomic<bool>* cancel_;
  const Clock::time_point start_;
  const ProgressFunction* progress_ = nullptr;
  double next_progress_ = kSecondsPerProgress;
  int64_t steps_ = 0;
  int64_t next_check_;
  int call_depth_ = 0;  // nesting of Call
  std::atomic<bool> failed_{false};
  std::string error_;
  DiagnosticKind error_kind_ = DiagnosticKind::kEvaluation;
};

// Memory for the duration of one kernel. data() is null if the budget is exhausted, which has been reported.
class Scratch {
 public:
  Scratch(RunContext& context, int64_t bytes) : pool_(context.pool), buffer_(context.pool.Allocate(bytes)) {
    if (buffer_ == nullptr) context.Fail(OutOfMemory(context, bytes), DiagnosticKind::kTooLarge);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { pool_.Release(buffer_); }

  std::byte* data() const { return buffer_ == nullptr ? nullptr : buffer_->data(); }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }

  static std::string OutOfMemory(const RunContext& context, int64_t bytes);

 private:
  BufferPool& pool_;
  PoolBlock* buffer_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_MACHINE_RUN_CONTEXT_H_
