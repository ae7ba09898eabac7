// SPDX-License-Identifier: Apache-2.0
// State of the runs of computations that the simulation of all devices has in progress. Internal to it.
#ifndef HLOKIT_SIMULATOR_TIMING_DEVICE_RUN_STATE_H_
#define HLOKIT_SIMULATOR_TIMING_DEVICE_RUN_STATE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "passes/target/cost_model.h"
#include "simulator/timing/call_totals.h"
#include "simulator/timing/device_groups.h"
#include "simulator/timing/device_timelines.h"

namespace hlokit::tpu {

inline constexpr uint32_t kNone = 0xffffffffu;

// State of an off-core step on each device, until its last use; or on each device that of another step.
struct AsyncState {
  std::vector<double> issue;   // the step's inputs are ready on the device
  std::vector<double> arrive;  // the step's inputs are ready on all devices of its group
  std::vector<double> end;     // its results are ready
  std::vector<uint32_t> last;  // the device of the group that arrives last

  // Returns the part of a stall of device `d` in which it waits for other devices to enter the collective.
  double SyncPart(size_t d, double from, double until) const {
    return std::clamp(arrive[d] - std::max(from, issue[d]), 0.0, until - from);
  }
  void CopyDevice(size_t d, const AsyncState& other) {
    issue[d] = other.issue[d];
    arrive[d] = other.arrive[d];
    end[d] = other.end[d];
    last[d] = other.last[d];
  }
};

// Properties shared by all runs of a computation.
struct PlanFacts {
  std::vector<uint8_t> off_core;              // by step
  std::vector<uint8_t> starts;                // by step: asynchronous, does not block the core
  std::vector<uint32_t> last_use;             // by step: its last user
  std::vector<const DeviceGroupSet*> groups;  // by step, of collectives
  std::vector<uint32_t> kind;                 // by step, of collectives: index into the totals
  bool known = false;
};

// A run of a computation in progress; for a loop, one iteration.
struct Frame {
  size_t plan = 0;
  size_t next = 0;               // index of the next step
  uint32_t caller_step = kNone;  // in the plan of the caller's frame
  bool loop = false;
  double iterations_left = 0;  // after this iteration
  double iterations_done = 0;
  double condition = 0;         // seconds before each iteration and after the last
  std::vector<double> entered;  // core times at the start of the first iteration; of calls, of the shown devices
  std::vector<std::unique_ptr<AsyncState>> off;  // by step
  std::array<std::vector<double>, kLinkGroups> link_free;
  std::vector<double> copy_free;
  std::vector<double> host_free;
  std::vector<uint32_t> tail;              // by device: the off-core step that ends last
  AsyncState tail_state;                   // its state
  std::unique_ptr<RunTotals> at_entry;     // of loops
  std::unique_ptr<MeanTotals> calls_mean;  // of calls, at entry
  double suppressed_from = -1;  // on the first device: when the events of its iterations began to be suppressed
  double suppressed_iterations = 0;
};

// Seconds in which each device waits at collectives for each of the others.
class WaitsByDevice {
 public:
  explicit WaitsByDevice(size_t devices) : counted_(devices), waits_(devices <= kMaxDevices ? devices : 0) {}

  // Adds seconds in which `device` waited for `last`, kNone if it is not known which device that was.
  void Add(size_t device, uint32_t last, double seconds) {
    counted_[device] += seconds;
    if (seconds > 0 && last != kNone && last != device && !waits_.empty()) waits_[device][last] += seconds;
  }
  // Reports the waits as parts of all of the device: those of extrapolated iterations were not added.
  void MoveTo(size_t device, DeviceTimeBreakdown* share) {
    if (waits_.empty() || counted_[device] <= 0) return;
    for (auto& [last, seconds] : waits_[device]) seconds *= share->sync / counted_[device];
    share->sync_for = std::move(waits_[device]);
  }

 private:
  static constexpr size_t kMaxDevices = 1024;  // up to which waits are kept by device

  std::vector<double> counted_;
  std::vector<std::map<int64_t, double>> waits_;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_DEVICE_RUN_STATE_H_
