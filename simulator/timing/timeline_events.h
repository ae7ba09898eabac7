// SPDX-License-Identifier: Apache-2.0
// Events of the timelines of a simulation of all devices, for the first devices and up to a number of events. Internal
// to it.
#ifndef HLOKIT_SIMULATOR_TIMING_TIMELINE_EVENTS_H_
#define HLOKIT_SIMULATOR_TIMING_TIMELINE_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/program/kernel_plan.h"
#include "simulator/timing/device_run_state.h"
#include "simulator/timing/multi_device_simulation.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

class TimelineEvents {
 public:
  // `frames`: the runs in progress, innermost last. `simulated`: the number of simulated devices.
  TimelineEvents(const KernelPlan& plan, const Simulation& simulation, const MultiDeviceOptions& options,
                 const std::vector<std::unique_ptr<Frame>>& frames, size_t simulated);

  // Returns how many devices have events.
  size_t devices() const { return devices_; }
  // Counts a step or iteration, which may have no event.
  void Count() { ++counted_; }
  // Returns true if so many further ones are shown.
  bool HasRoomFor(size_t count) const { return devices_ > 0 && counted_ + count <= options_.max_shown; }
  // Returns true if no run in progress has its events suppressed.
  bool Showing() const;
  // Suppresses events of the innermost loop's further iterations. `now`: of the first device.
  void SuppressInnermostLoop(double now);

  void Show(size_t device, TimelineEvent event);
  void ShowModule(size_t device, double device_seconds, double step_seconds);
  void ShowStep(size_t device, const Frame& frame, uint32_t s, double start, double duration, double issued = -1);
  // Shows that step `s` waits for `last`. `collective`: `last` is one, or completes one.
  void ShowWait(size_t device, const Frame& frame, uint32_t s, uint32_t last, bool collective, double start,
                double duration);
  // Shows that the iterations of a loop whose events were suppressed have ended.
  void ShowSkipped(const Frame& loop, double now);

 private:
  const KernelPlan& plan_;
  const Simulation& simulation_;
  const MultiDeviceOptions& options_;
  const std::vector<std::unique_ptr<Frame>>& frames_;
  const size_t devices_;
  size_t counted_ = 0;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_TIMELINE_EVENTS_H_
