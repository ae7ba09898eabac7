// SPDX-License-Identifier: Apache-2.0
// Uncertainty of an estimated device time: from the error bars of the figures that it rests on, each weighted by the
// part of the time that changes with it, and from what the model of the hardware does not explain.
#ifndef HLOKIT_SIMULATOR_REPORT_UNCERTAINTY_H_
#define HLOKIT_SIMULATOR_REPORT_UNCERTAINTY_H_

#include <string_view>
#include <vector>

#include "passes/target/device_description.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

// Deviation of measured times from simulated ones that the figures do not explain: the root mean square of the
// leave-one-out errors of bench/tpu_accuracy.py.
inline constexpr double kModelError = 0.08;

struct UncertaintySource {
  std::string_view figure;  // name in the device description
  double error = 0;         // relative, of the figure
  double share = 0;         // part of the device time that is proportional to the figure or its inverse
};

struct Uncertainty {
  double relative = 0;                     // standard deviation of the device time as a fraction of it
  std::vector<UncertaintySource> sources;  // largest contribution (error * share) first
};

// Contributions of different figures are independent.
Uncertainty UncertaintyOf(const DeviceDescription& machine, const Simulation& simulation);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_UNCERTAINTY_H_
