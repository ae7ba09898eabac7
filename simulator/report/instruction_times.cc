// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/instruction_times.h"

#include "simulator/program/kernel_plan.h"
#include "simulator/timing/compile.h"

namespace hlokit::tpu {

absl::StatusOr<InstructionTimes> TimeInstructions(const SimulationOptions& options, const Module& module) {
  InstructionTimes times;
  times.compiled = std::make_unique<Module>(module.Clone());
  if (absl::Status s = Compile(options, "tpu", times.compiled.get()); !s.ok()) return s;
  const KernelPlan plan(*times.compiled);
  const Simulation simulation = Simulate(*times.compiled, plan, options);
  times.device_seconds = simulation.device_seconds;
  times.use = DeviceUseOf(options, simulation);
  for (const OpRow& row : simulation.rows) {
    times.rows.push_back({times.compiled->instruction(row.name), row.seconds, row.runs});
  }
  return times;
}

std::vector<double> InstructionTimes::ByInstruction() const {
  std::vector<double> seconds(compiled->instruction_id_bound(), 0);
  for (const InstructionTime& row : rows) seconds[row.instruction.id().value] += row.seconds;
  return seconds;
}

std::vector<double> SecondsByInstruction(const Module& module, const Simulation& simulation) {
  std::vector<double> seconds(module.instruction_id_bound(), 0);
  for (const OpRow& row : simulation.rows) seconds[row.name.value] += row.seconds;
  return seconds;
}

}  // namespace hlokit::tpu
