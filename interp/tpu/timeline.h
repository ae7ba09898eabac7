// A simulated execution as a list of events on lines, as trace viewers show them: the steps of the entry computation
// and, in their places, those of the computations it runs, loops trip by trip.
#ifndef HLOKIT_INTERP_TPU_TIMELINE_H_
#define HLOKIT_INTERP_TPU_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "interp/tpu/kernel_plan.h"
#include "interp/tpu/report.h"
#include "ir/text_writer.h"

namespace hlokit::tpu {

// Lines of a device, by the names that profilers look for.
enum class TimelineLine : uint8_t { kSteps = 1, kModules, kOps, kAsyncOps, kWaits };
std::string_view NameOf(TimelineLine line);

struct TimelineEvent {
  TimelineLine line = TimelineLine::kOps;
  double start = 0;  // seconds
  double duration = 0;
  const StepTime* step = nullptr;  // null for steps, modules and waits
  InstructionId name = {};         // none for steps and modules
  InstructionId waited_for = {};   // of waits: what ended last
  int64_t skipped_trips = 0;       // of a loop that would have made more events than asked for
};

// Calls `event` for at most `max_events` events, in the order of their starts within a line and computation. Loops
// whose trips do not fit are cut short: the rest of the trips is one event with skipped_trips.
void WalkTimeline(const ReportInput& input, const KernelPlan& plan, size_t max_events,
                  const std::function<void(const TimelineEvent&)>& event);

// The same as JSON for chrome://tracing and ui.perfetto.dev. Times in microseconds.
void WriteChromeTrace(const ReportInput& input, const KernelPlan& plan, size_t max_events, TextWriter* out);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMELINE_H_
