// SPDX-License-Identifier: Apache-2.0
// Device time by the scopes of the program, whatever the compiler made of it: a kernel's time is shared among its
// instructions by their operations, so a fusion of forward and backward work counts for both.
#ifndef HLOKIT_INTERP_TPU_REPORT_SCOPE_TIME_H_
#define HLOKIT_INTERP_TPU_REPORT_SCOPE_TIME_H_

#include <string>
#include <vector>

#include "interp/tpu/program/kernel_plan.h"
#include "interp/tpu/report/report.h"

namespace hlokit::tpu {

struct ScopeTime {
  std::string scope;                // "train/forward/linear"; empty: instructions that name none
  double seconds = 0;               // of the device, in one step
  double kernels = 0;               // that have a part in it
  double mixed_kernel_seconds = 0;  // seconds of it in kernels that hold work of other scopes too
};

// Sorted by scope.
std::vector<ScopeTime> ScopeTimes(const ReportInput& input, const KernelPlan& plan);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_REPORT_SCOPE_TIME_H_
