// SPDX-License-Identifier: Apache-2.0
// Programs on simulated targets for the tests of the simulator.
#ifndef HLOKIT_TESTS_UNIT_SIMULATOR_SIMULATED_H_
#define HLOKIT_TESTS_UNIT_SIMULATOR_SIMULATED_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "parser/formats/parser.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

inline constexpr double kMillisecond = 1e-3;  // in seconds

inline std::unique_ptr<Module> Read(const std::string& text) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  EXPECT_TRUE(module.ok()) << module.status() << "\n" << text;
  return *std::move(module);
}

inline SimulationOptions OptionsOf(std::string_view name, std::string_view topology) {
  SimulationOptions options;
  options.machine = *BuiltinDeviceDescription(name);
  options.topology = *ParseTopology(options.machine, topology);
  return options;
}

inline Simulation RunOn(const Module& module, const SimulationOptions& options) {
  return Simulate(module, KernelPlan(module), options);
}

}  // namespace hlokit::tpu

#endif  // HLOKIT_TESTS_UNIT_SIMULATOR_SIMULATED_H_
