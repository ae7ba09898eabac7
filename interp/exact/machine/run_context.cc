// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/machine/run_context.h"

#include <algorithm>
#include <string>

#include "interp/exact/machine/virtual_machine.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {

std::string Scratch::OutOfMemory(const RunContext& context, int64_t bytes) {
  const int64_t arguments = context.limits().max_bytes - context.pool.max_bytes();
  const int64_t limit = context.limits().max_bytes;
  std::string message = StrCat("out of memory: cannot allocate ", bytes, " bytes");
  // A value that fits by itself may not fit as the block that is allocated for it.
  if (const int64_t block = bytes >= 0 && bytes <= limit ? context.pool.BlockBytes(bytes) : bytes; block != bytes) {
    StrAppend(&message, ", for which ", block, " are taken");
  }
  StrAppend(&message, "; ", context.limits().BytesText(), ", of which values take ", context.pool.bytes_in_use(),
            " and arguments ", arguments);
  return message;
}

bool RunContext::ShouldStop() {
  if (failed()) return true;
  if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) {
    Fail("interrupted");
    return true;
  }
  if (!limits_.IsOutOfTime(start_)) return false;
  Fail(limits_.OutOfTimeMessage("the run"));
  return true;
}

bool RunContext::CheckTime() {
  if (ShouldStop()) return false;
  const double now = seconds();
  if (progress_ != nullptr && now >= next_progress_) {
    (*progress_)({steps_, loop_iterations, pool.bytes_in_use(), now});
    next_progress_ = now + kSecondsPerProgress;
  }
  return true;
}

bool RunContext::CheckLimits() {
  if (steps_ > limits_.max_steps) {
    Fail(StrCat("the run exceeded the limit of ", limits_.max_steps, " instructions (--max-steps)"));
    return false;
  }
  next_check_ = steps_ + std::min(kStepsPerCheck, limits_.max_steps - steps_) + 1;
  return CheckTime();
}

void RunContext::ParallelFor(int64_t count, double cost, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  // A chunk should outweigh the cost of dispatching it to a thread (some microseconds), and be short enough for a
  // prompt stop.
  constexpr double kChunk = 3e4;
  constexpr double kBetweenChecks = 2e7;
  const double per_item = std::max(cost, 0.01);
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(std::min(kChunk / per_item, 1e15)));
  const double per_check = std::min(kBetweenChecks * threads() / per_item, 1e15);
  const int64_t between_checks = std::max<int64_t>(grain * 4 * threads(), static_cast<int64_t>(per_check));
  for (int64_t begin = 0; begin < count; begin += between_checks) {
    if (begin != 0 && !CheckTime()) return;
    const int64_t n = std::min(between_checks, count - begin);
    threads_->ParallelFor(n, grain, [&](int64_t b, int64_t e) { body(begin + b, begin + e); });
  }
  // After long work the clock is checked, even after few steps.
  constexpr double kLong = 1e6;
  if (static_cast<double>(count) * per_item >= kLong) next_check_ = std::min(next_check_, steps_ + 1);
}

bool RunContext::Call(CompiledComputation* computation, absl::Span<const SlotValue> arguments,
                      absl::Span<SlotValue> results) {
  // Each level is a virtual machine on the C++ stack, so their number is bounded. (Calls, loops and conditionals nest
  // on the machine's own stack instead.)
  constexpr int kMaxDepth = 50;
  if (call_depth_ == kMaxDepth) {
    Fail(StrCat("computations applied to elements are nested deeper than the limit of ", kMaxDepth));
    return false;
  }
  ++call_depth_;
  const bool ok = VirtualMachine::RunToEnd(*this, computation, arguments, results);
  --call_depth_;
  return ok;
}

}  // namespace hlokit::interp
