// An order of the instructions that needs little memory, and in which asynchronous work runs beside other work.
#ifndef HLOKIT_PASSES_SCHEDULE_SCHEDULE_H_
#define HLOKIT_PASSES_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/module.h"
#include "passes/analysis/cost.h"

namespace hlokit {

struct ScheduleOptions {
  // Start asynchronous operations as soon as their operands are there, and wait for them as late as possible, until
  // what ran meanwhile took as long.
  bool overlap = true;
  // How long an instruction takes: its operations or its bytes, whichever is longer; what goes between devices its
  // bytes over the link. Zero: as long as the bytes that it moves, all alike.
  double flops_per_second = 0;
  double bytes_per_second = 0;
  double link_bytes_per_second = 0;
};

// A list schedule: of the instructions that can run, the one that frees most bytes beyond those it makes; the first in
// post-order among equals. n log n.
std::vector<InstructionId> ListSchedule(Computation computation, const CostAnalysis& costs,
                                        const ScheduleOptions& options);

struct ScheduleCounts {
  int64_t computations = 0;
  int64_t peak_bytes = 0;             // of the module
  int64_t post_order_peak_bytes = 0;  // what the post-order would have needed
};

// Orders all computations and marks the module as scheduled. Of the list schedule and the post-order, each computation
// gets the one that needs less memory; with overlap, computations with asynchronous operations get the list schedule.
absl::StatusOr<ScheduleCounts> ScheduleModule(Module& module, const ScheduleOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_SCHEDULE_H_
