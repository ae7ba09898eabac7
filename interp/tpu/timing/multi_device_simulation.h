// SPDX-License-Identifier: Apache-2.0
// A run of all devices, step by step. All run the same steps; some are slower, kernels take longer here and shorter
// there, and a collective begins when the last device of its group is there and the links are free.
//
// Without such differences all devices are alike and one stands for them; its time is that of the Simulation.
#ifndef HLOKIT_INTERP_TPU_TIMING_MULTI_DEVICE_SIMULATION_H_
#define HLOKIT_INTERP_TPU_TIMING_MULTI_DEVICE_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "interp/tpu/program/kernel_plan.h"
#include "interp/tpu/timing/device_timelines.h"
#include "interp/tpu/timing/simulator.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

// Lines of a device, by the names that profilers look for.
enum class TimelineLine : uint8_t { kSteps = 1, kModules, kOps, kAsyncOps, kWaits };

struct TimelineEvent {
  TimelineLine line = TimelineLine::kOps;
  double start = 0;  // seconds
  double duration = 0;
  const StepTime* step = nullptr;  // null for steps, modules and waits
  InstructionId name = {};         // none for steps and modules
  InstructionId waited_for = {};   // of waits: what ended last
  int64_t skipped_trips = 0;       // of a loop that would have made more events than asked for
  int64_t device = 0;
};

struct MultiDeviceOptions {
  double max_events = 3e7;  // of steps on devices; then loops are cut short, their trips so far stand for the rest
  // Called for the events of the first `shown` devices, about `max_shown` of each. Those of one line and computation
  // come in the order of their starts, but for loops and calls of devices that differ, which come after what they hold.
  std::function<void(const TimelineEvent&)> show;
  int64_t shown = 1;
  size_t max_shown = 0;
};

// `simulation`: of the module; its `devices` need not be there yet.
DeviceTimelines SimulateDevices(const Module& module, const KernelPlan& plan, const SimulationOptions& options,
                                const Simulation& simulation, const MultiDeviceOptions& walk);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_MULTI_DEVICE_SIMULATION_H_
