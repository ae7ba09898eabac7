// SPDX-License-Identifier: Apache-2.0
// Everything that the report page shows, as one JSON object: the object of ReportJson and beside it the host and the
// gaps on the device, the breakdown of the step, the timeline, scopes, collectives, memory over time, what bounds next,
// other machines, advice. docs/report.md names its keys.
#ifndef HLOKIT_INTERP_TPU_EXPORT_REPORT_DOCUMENT_H_
#define HLOKIT_INTERP_TPU_EXPORT_REPORT_DOCUMENT_H_

#include <cstddef>
#include <string>

#include "interp/tpu/program/kernel_plan.h"
#include "interp/tpu/report/report.h"
#include "interp/tpu/timing/host.h"

namespace hlokit::tpu {

struct ReportDocumentOptions {
  size_t max_events = 200000;  // of one execution that are looked at
  size_t shown_events = 4000;  // on a line of the timeline; shorter neighbors are drawn as one
  std::string command;         // how it was made, for the reader
};

std::string ReportDocument(const ReportInput& input, const KernelPlan& plan, const HostModel& host,
                           const ReportDocumentOptions& options);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_REPORT_DOCUMENT_H_
