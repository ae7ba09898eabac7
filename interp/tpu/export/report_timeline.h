// SPDX-License-Identifier: Apache-2.0
// One step on the devices for the report page: events by line, and the utilization over time.
#ifndef HLOKIT_INTERP_TPU_EXPORT_REPORT_TIMELINE_H_
#define HLOKIT_INTERP_TPU_EXPORT_REPORT_TIMELINE_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "interp/tpu/program/kernel_plan.h"
#include "interp/tpu/report/report.h"

namespace hlokit::tpu {

// An execution in the step.
struct StepExecution {
  const ReportInput* input = nullptr;
  const KernelPlan* plan = nullptr;
  double start = 0;  // seconds since the first one of the step began
};

struct StepTimelineOptions {
  size_t max_events = 200000;  // events of one execution that are examined
  size_t shown_events = 4000;  // events per line; shorter neighbors are merged
};

// Returns the object `timeline` of a report (docs/report.md).
nlohmann::ordered_json StepTimelineJson(const std::vector<StepExecution>& executions,
                                        const StepTimelineOptions& options);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_REPORT_TIMELINE_H_
