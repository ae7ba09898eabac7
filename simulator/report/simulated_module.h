// SPDX-License-Identifier: Apache-2.0
// A compiled module on simulated devices: its schedule units, their times, and the memory that it takes.
#ifndef HLOKIT_SIMULATOR_REPORT_SIMULATED_MODULE_H_
#define HLOKIT_SIMULATOR_REPORT_SIMULATED_MODULE_H_

#include <string_view>

#include "ir/graph/module_fwd.h"
#include "simulator/memory/memory_plan.h"
#include "simulator/program/kernel_plan.h"
#include "simulator/report/report.h"
#include "simulator/timing/host.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

struct SimulatedModule {
  // Simulates a module that is compiled (compile.h). Both must outlive this.
  SimulatedModule(const Module& compiled, const SimulationOptions& devices);
  SimulatedModule(const SimulatedModule&) = delete;
  SimulatedModule& operator=(const SimulatedModule&) = delete;

  // Counts the work of the host into the step.
  void AddHost(const HostModel& host);
  // Returns what reports are about. `source`: the module before compilation by this pipeline; null: as it was given.
  ReportInput Input(const Module* source, std::string_view pipeline) const;

  const Module& module;
  const SimulationOptions& options;
  const KernelPlan plan;
  Simulation simulation;
  const MemoryPlan memory;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_SIMULATED_MODULE_H_
