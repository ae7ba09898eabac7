// SPDX-License-Identifier: Apache-2.0
// Slowdown of each device's kernels relative to the plan.
#ifndef HLOKIT_SIMULATOR_TIMING_DEVICE_SPEEDS_H_
#define HLOKIT_SIMULATOR_TIMING_DEVICE_SPEEDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/timing/device_timelines.h"

namespace hlokit::tpu {

// A deterministic function of the variation, the device and the number of the random sample, so that runs repeat.
class DeviceSpeeds {
 public:
  DeviceSpeeds(const PerformanceVariation& variation, size_t devices);
  double Factor(size_t device, uint64_t draw) const;

 private:
  double jitter_ = 0;
  uint64_t seed_ = 0;
  std::vector<double> speed_;  // by device
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_DEVICE_SPEEDS_H_
