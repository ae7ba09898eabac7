// SPDX-License-Identifier: Apache-2.0
// State of the runs of computations that the simulation of all devices has in progress. Internal to it.
#ifndef HLOKIT_INTERP_TPU_TIMING_DEVICE_RUN_STATE_H_
#define HLOKIT_INTERP_TPU_TIMING_DEVICE_RUN_STATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "interp/tpu/timing/device_groups.h"
#include "interp/tpu/timing/device_timelines.h"
#include "passes/target/cost_model.h"

namespace hlokit::tpu {

inline constexpr uint32_t kNone = 0xffffffffu;

// State of an off-core step on each device, until its last use.
struct AsyncState {
  std::vector<double> issue;   // the step's inputs are ready on the device
  std::vector<double> arrive;  // the step's inputs are ready on all devices of its group
  std::vector<double> end;     // its results are ready
  std::vector<uint32_t> last;  // the device of the group that arrives last
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
  double condition = 0;                          // seconds before each iteration and after the last
  std::vector<double> entered;                   // core times at the start of the first iteration
  std::vector<std::unique_ptr<AsyncState>> off;  // by step
  std::array<std::vector<double>, kLinkGroups> link_free;
  std::vector<double> copy_free;
  std::vector<double> host_free;
  std::vector<double> tail_end;  // latest end of any off-core step
  std::vector<uint32_t> tail;    // that step
  std::unique_ptr<RunTotals> at_entry;
  double suppressed_from = -1;  // on the first device: when the events of its iterations began to be suppressed
  double suppressed_iterations = 0;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_DEVICE_RUN_STATE_H_
