// SPDX-License-Identifier: Apache-2.0
// A simulated execution as events on lines for trace viewers: the steps of the entry computation with the steps of
// called computations nested, loops iteration by iteration.
#ifndef HLOKIT_SIMULATOR_EXPORT_TIMELINE_H_
#define HLOKIT_SIMULATOR_EXPORT_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "ir/core/text_writer.h"
#include "simulator/program/kernel_plan.h"
#include "simulator/report/report.h"
#include "simulator/timing/multi_device_simulation.h"

namespace hlokit::tpu {

std::string_view ToString(TimelineLine line);

// Calls `event` for about `max_events` events of each of the first `devices` devices (of one if they are homogeneous).
// A loop with too many iterations ends in one event with skipped_iterations.
void VisitTimeline(const ReportInput& input, const KernelPlan& plan, size_t max_events,
                   const std::function<void(const TimelineEvent&)>& event, int64_t devices = 1);

// Writes the events as JSON for chrome://tracing and ui.perfetto.dev. Times in microseconds.
void WriteChromeTrace(const ReportInput& input, const KernelPlan& plan, size_t max_events, int64_t devices,
                      TextWriter* out);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_TIMELINE_H_
