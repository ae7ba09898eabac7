// SPDX-License-Identifier: Apache-2.0
// An order of the instructions that needs little memory, and in which asynchronous work runs beside other work.
#ifndef HLOKIT_PASSES_SCHEDULE_SCHEDULE_H_
#define HLOKIT_PASSES_SCHEDULE_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "passes/core/pass.h"

namespace hlokit {

struct ScheduleOptions {
  // Start asynchronous operations as soon as their operands are there, and wait for them as late as possible, until
  // what ran meanwhile took as long.
  bool overlap = true;
  // By InstructionId: how long an instruction takes. Empty: as long as the bytes that it moves, all alike.
  absl::Span<const Latency> latencies = {};
  // Above this peak, memory goes before time. Zero: no limit.
  int64_t memory_bytes = 0;
};

// Which of the instructions that can run comes first.
enum class SchedulePriority : uint8_t {
  kMemory,        // the one that frees most bytes beyond those it makes
  kProgram,       // the first in post-order
  kCriticalPath,  // the one that most time depends on
};

// When work beside the core starts.
enum class AsyncStartPolicy : uint8_t {
  kAsap,        // when its operands are there: who comes first has the links first
  kByPriority,  // when its links are free, first what most time depends on
};

struct ScheduleCounts {
  int64_t computations = 0;
  int64_t peak_bytes = 0;             // of the module
  int64_t post_order_peak_bytes = 0;  // what the post-order would have needed
};

// Orders all computations and marks the module as scheduled. List schedules: of what can run, the first by a priority,
// the first in post-order among equals; n log n. Asynchronous work starts when it can, and is waited for when it is
// over or nothing else is left to do. Of the schedule by memory and the post-order, each computation gets the one that
// needs less; with overlap, one with asynchronous operations gets the priority and the policy with which it takes least
// time.
absl::StatusOr<ScheduleCounts> ScheduleModule(Module& module, const ScheduleOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_SCHEDULE_H_
