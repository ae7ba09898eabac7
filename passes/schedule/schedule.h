// SPDX-License-Identifier: Apache-2.0
// Schedules instructions for low peak memory and for overlap of asynchronous operations with other work.
#ifndef HLOKIT_PASSES_SCHEDULE_SCHEDULE_H_
#define HLOKIT_PASSES_SCHEDULE_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module_fwd.h"
#include "passes/core/pass.h"

namespace hlokit {

struct ScheduleOptions {
  // Start asynchronous operations as soon as their operands are available, and place their done operations as late as
  // possible, once the work in between takes as long.
  bool overlap = true;
  // By InstructionId: the duration of the instruction. Empty: durations proportional to the bytes accessed.
  absl::Span<const Latency> latencies = {};
  // Peak above which memory takes precedence over time. 0: no limit.
  int64_t memory_bytes = 0;
};

// Order of the ready instructions.
enum class SchedulePriority : uint8_t {
  kMemory,        // largest bytes freed less bytes defined
  kProgram,       // first in post-order
  kCriticalPath,  // longest critical path
};

// When asynchronous operations start.
enum class AsyncStartPolicy : uint8_t {
  kAsap,        // when the operands are available; links are taken in this order
  kByPriority,  // when the links are free, longest critical path first
};

struct ScheduleCounts {
  int64_t computations = 0;
  int64_t peak_bytes = 0;             // of the module
  int64_t post_order_peak_bytes = 0;  // of the post-order
};

// Orders all computations and marks the module as scheduled. List scheduling in O(n log n): the ready instruction with
// the best priority runs first, ties in post-order. A done operation runs once its operation has ended or nothing else
// is ready. Each computation takes the memory-optimized schedule or the post-order, whichever needs less memory; with
// `overlap`, a computation with asynchronous operations takes the fastest combination of priority and start policy.
absl::StatusOr<ScheduleCounts> ScheduleModule(Module& module, const ScheduleOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_SCHEDULE_H_
