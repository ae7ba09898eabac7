// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/simulated_module.h"

namespace hlokit::tpu {

SimulatedModule::SimulatedModule(const Module& compiled, const SimulationOptions& devices)
    : module(compiled),
      options(devices),
      plan(module),
      simulation(Simulate(module, plan, options)),
      memory(PlanMemory(options.machine, module, plan, simulation.implicit_partitions)) {}

void SimulatedModule::AddHost(const HostModel& host) {
  simulation.step_seconds = SimulateHost(host, simulation.device_seconds).step_seconds;
  if (simulation.step_seconds > 1.001 * simulation.device_seconds) simulation.bound = Resource::kHost;
}

ReportInput SimulatedModule::Input(const Module* source, std::string_view pipeline) const {
  return {module, options, simulation, memory, source, pipeline};
}

}  // namespace hlokit::tpu
