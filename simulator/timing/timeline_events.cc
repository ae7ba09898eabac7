// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/timeline_events.h"

#include <algorithm>
#include <utility>

namespace hlokit::tpu {

TimelineEvents::TimelineEvents(const KernelPlan& plan, const Simulation& simulation, const MultiDeviceOptions& options,
                               const std::vector<std::unique_ptr<Frame>>& frames, size_t simulated)
    : plan_(plan),
      simulation_(simulation),
      options_(options),
      frames_(frames),
      devices_(options.show ? std::min<size_t>(static_cast<size_t>(std::max<int64_t>(options.shown, 0)), simulated)
                            : 0) {}

void TimelineEvents::SuppressInnermostLoop(double now) {
  for (size_t k = frames_.size(); k-- > 0;) {
    Frame& frame = *frames_[k];
    if (!frame.loop) continue;
    if (frame.suppressed_from < 0) {
      frame.suppressed_from = now;
      frame.suppressed_iterations = frame.iterations_left + 1;
    }
    return;
  }
}

bool TimelineEvents::Showing() const {
  return std::none_of(frames_.begin(), frames_.end(),
                      [](const std::unique_ptr<Frame>& frame) { return frame->suppressed_from >= 0; });
}

void TimelineEvents::Show(size_t device, TimelineEvent event) {
  if (device >= devices_ || !Showing()) return;
  event.device = static_cast<int64_t>(device);
  options_.show(event);
}

void TimelineEvents::ShowModule(size_t device, double device_seconds, double step_seconds) {
  Show(device, {.line = TimelineLine::kSteps, .duration = step_seconds});
  Show(device, {.line = TimelineLine::kModules, .duration = device_seconds});
}

void TimelineEvents::ShowStep(size_t device, const Frame& frame, uint32_t s, double start, double duration,
                              double issued) {
  if (device >= devices_ || duration <= 0) return;
  const StepTime& time = simulation_.computations[frame.plan].steps[s];
  Show(device, {.line = time.on_core ? TimelineLine::kOps : TimelineLine::kAsyncOps,
                .start = start,
                .duration = duration,
                .step = &time,
                .name = plan_.computations()[frame.plan].steps[s].root,
                .issued = issued});
}

void TimelineEvents::ShowWait(size_t device, const Frame& frame, uint32_t s, uint32_t last, bool collective,
                              double start, double duration) {
  if (device >= devices_) return;
  const std::vector<ScheduleUnit>& steps = plan_.computations()[frame.plan].steps;
  const AsyncState* off = last == kNone ? nullptr : frame.off[last].get();
  double sync = 0;
  int64_t slowest = -1;
  if (off != nullptr && off->last[device] != kNone && collective) {
    sync = off->SyncPart(device, start, start + duration);
    if (sync > 0 && off->last[device] != device) slowest = off->last[device];
  }
  if (last == s && steps[s].kind == ScheduleUnitKind::kDone && !steps[s].inputs.empty()) last = steps[s].inputs[0];
  Show(device, {.line = TimelineLine::kWaits,
                .start = start,
                .duration = duration,
                .name = steps[s].root,
                .waited_for = last == kNone ? InstructionId() : steps[last].root,
                .sync = sync,
                .slowest = slowest});
}

void TimelineEvents::ShowSkipped(const Frame& loop, double now) {
  Show(0, {.start = loop.suppressed_from,
           .duration = now - loop.suppressed_from,
           .skipped_iterations = static_cast<int64_t>(std::min(loop.suppressed_iterations, 9e18))});
}

}  // namespace hlokit::tpu
