// SPDX-License-Identifier: Apache-2.0
// Timelines of the report page: operations of one execution on each device, and HBM over it.
#ifndef HLOKIT_SIMULATOR_EXPORT_REPORT_TIMELINE_H_
#define HLOKIT_SIMULATOR_EXPORT_REPORT_TIMELINE_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "simulator/export/report_document.h"
#include "simulator/program/kernel_plan.h"
#include "simulator/report/report.h"

namespace hlokit::tpu {

// `step`: the executions of one step. HBM is that of `input`, the main program.
struct ReportTimelines {
  nlohmann::ordered_json devices;  // value of the key `timeline`
  nlohmann::ordered_json memory;   // value of the key `memory.timeline`: time_us, bytes, operation
};

ReportTimelines BuildReportTimelines(const ReportInput& input, const KernelPlan& plan,
                                     const std::vector<StepExecution>& step, const ReportDocumentOptions& options);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_REPORT_TIMELINE_H_
