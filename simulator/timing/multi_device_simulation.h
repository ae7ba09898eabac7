// SPDX-License-Identifier: Apache-2.0
// Simulates all devices of a run step by step. Devices run the same steps at speeds of their own with jitter. A
// collective begins when the last device of its group has arrived and the links are free.
//
// Homogeneous devices are simulated as one, with the times of the Simulation.
#ifndef HLOKIT_SIMULATOR_TIMING_MULTI_DEVICE_SIMULATION_H_
#define HLOKIT_SIMULATOR_TIMING_MULTI_DEVICE_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "ir/graph/module.h"
#include "simulator/program/kernel_plan.h"
#include "simulator/timing/device_timelines.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

// Lines of a device's timeline, as profilers name them.
enum class TimelineLine : uint8_t { kSteps = 1, kModules, kOps, kAsyncOps, kWaits };

struct TimelineEvent {
  TimelineLine line = TimelineLine::kOps;
  double start = 0;  // seconds
  double duration = 0;
  const StepTime* step = nullptr;  // null for steps, modules and waits
  InstructionId name = {};         // none for steps and modules
  InstructionId waited_for = {};   // for waits: the operation that ended last
  int64_t skipped_iterations = 0;  // iterations of a loop that exceed the event limit
  int64_t device = 0;
  double issued = -1;    // of asynchronous operations: when the core started them; negative: unknown
  double sync = 0;       // of waits: the part that ends when other devices enter the collective
  int64_t slowest = -1;  // the device that enters it last; negative: none
};

struct MultiDeviceOptions {
  double max_events = 3e7;  // limit on simulated steps over all devices; beyond it loops are extrapolated
  // Called for the events of the first `shown` devices, about `max_shown` for each. Events of one line and computation
  // arrive in order of their starts. Loops and calls of heterogeneous devices arrive after the events inside them.
  std::function<void(const TimelineEvent&)> show;
  int64_t shown = 1;
  size_t max_shown = 0;
};

// Simulates all devices. `simulation`: result for the module; its `devices` is not read.
DeviceTimelines SimulateDevices(const Module& module, const KernelPlan& plan, const SimulationOptions& options,
                                const Simulation& simulation, const MultiDeviceOptions& multi_device_options);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_MULTI_DEVICE_SIMULATION_H_
