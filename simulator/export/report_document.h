// SPDX-License-Identifier: Apache-2.0
// Contents of the report page as one JSON object: the object of ReportJson, host phases and device gaps, the breakdown
// of the step, the timeline, scopes, collectives, memory over time, sensitivity, other targets, recommendations.
// docs/report.md documents the keys.
#ifndef HLOKIT_SIMULATOR_EXPORT_REPORT_DOCUMENT_H_
#define HLOKIT_SIMULATOR_EXPORT_REPORT_DOCUMENT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/export/report_graphs.h"
#include "simulator/program/kernel_plan.h"
#include "simulator/report/report.h"
#include "simulator/timing/host.h"

namespace hlokit::tpu {

// What a report says of a run without a steady state.
inline constexpr std::string_view kNoSteadyState =
    "The run has no steady state: its steps still compile their programs, and the step time contains that. Run at "
    "least four steps (--steps=4 of ir-dump).";

struct ReportDocumentOptions {
  size_t max_events = 200000;  // events of one execution that are examined
  size_t shown_events = 4000;  // events per line of the timeline, over all devices; shorter neighbors are merged
  std::string title;           // of the page; "": the module's name
  std::string command;         // the command line, for the reader
  std::string tool = "hlo-run";
  std::vector<std::string> flags;    // of the tool; the page names no others
  const RecordedRun* run = nullptr;  // of a recorded program: all its graphs and threads
};

std::string ReportDocument(const ReportInput& input, const KernelPlan& plan, const HostModel& host,
                           const ReportDocumentOptions& options);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_REPORT_DOCUMENT_H_
