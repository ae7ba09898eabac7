// SPDX-License-Identifier: Apache-2.0
// How often each computation runs in one execution of a module.
#ifndef HLOKIT_PASSES_ANALYSIS_EXECUTION_COUNTS_H_
#define HLOKIT_PASSES_ANALYSIS_EXECUTION_COUNTS_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

struct ExecutionCounts {
  struct Of {
    int64_t times = 0;   // executions of the computation, saturating
    bool fused = false;  // it is a part of a fusion
  };
  std::vector<Of> computations;        // by ComputationId
  std::vector<Instruction> uncounted;  // loops that run, whose trip count is unknown: one iteration is counted
};

// Counts each call path from the entry, and all branches of conditionals. `trip_counts`: loop bodies run as often as
// the trip count says, where it is known; else once.
ExecutionCounts CountExecutions(const Module& module, bool trip_counts);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_EXECUTION_COUNTS_H_
