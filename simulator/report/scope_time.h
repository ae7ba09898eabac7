// SPDX-License-Identifier: Apache-2.0
// Device time by the scopes and source lines of the program, independent of fusion: a kernel's time and traffic are
// divided among its instructions by their operation counts, so that a fusion of forward and backward work counts for
// both.
#ifndef HLOKIT_SIMULATOR_REPORT_SCOPE_TIME_H_
#define HLOKIT_SIMULATOR_REPORT_SCOPE_TIME_H_

#include <string>
#include <vector>

#include "simulator/program/kernel_plan.h"
#include "simulator/report/report.h"

namespace hlokit::tpu {

struct AttributedTime {
  std::string name;                 // "train/forward/linear", "model.py:12"; empty: instructions without one
  double seconds = 0;               // core time in one step
  double concurrent_seconds = 0;    // time of collectives and copies, which run beside the core or stall it
  double kernels = 0;               // number of kernels with instructions of the scope or line
  double mixed_kernel_seconds = 0;  // seconds in kernels that contain others too
  double flops = 0;
  double hbm_bytes = 0;
};

// Return the times sorted by name.
std::vector<AttributedTime> ScopeTimes(const ReportInput& input, const KernelPlan& plan);
std::vector<AttributedTime> SourceTimes(const ReportInput& input, const KernelPlan& plan);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_SCOPE_TIME_H_
