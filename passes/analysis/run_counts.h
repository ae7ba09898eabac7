// SPDX-License-Identifier: Apache-2.0
// How often the computations of a module run.
#ifndef HLOKIT_PASSES_ANALYSIS_RUN_COUNTS_H_
#define HLOKIT_PASSES_ANALYSIS_RUN_COUNTS_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

// Number of executions of a computation per execution of the entry, and whether it is part of a fusion.
struct RunCounts {
  int64_t times = 0;
  bool fused = false;
};

// Returns them by ComputationId. Computations that instructions such as reduce apply to elements have 0. Loop bodies
// run once, or with `trip_counts` once per iteration where their number is known; all branches of a conditional count.
std::vector<RunCounts> RunsOf(const Module& module, bool trip_counts);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_RUN_COUNTS_H_
