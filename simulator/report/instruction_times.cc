// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/instruction_times.h"

#include "simulator/program/kernel_plan.h"
#include "simulator/report/breakdown.h"
#include "simulator/report/simulated_module.h"
#include "simulator/timing/compile.h"

namespace hlokit::tpu {

absl::StatusOr<InstructionTimes> TimeInstructions(const SimulationOptions& options, const Module& module,
                                                  RemarkCollector* remarks) {
  InstructionTimes times;
  times.compiled = std::make_unique<Module>(module.Clone());
  if (absl::Status s = Compile(options, "tpu", times.compiled.get(), {{}, nullptr, remarks}); !s.ok()) return s;
  const SimulatedModule simulated(*times.compiled, options);
  const Simulation& simulation = simulated.simulation;
  std::vector<double> exposed(times.compiled->instruction_id_bound(), 0);
  for (const CoreStall& stall : CoreStalls(simulated.Input(nullptr, ""), simulated.plan)) {
    const bool named = stall.kind == ScheduleUnitKind::kCollective && stall.waited_for.valid();
    if (named) exposed[stall.waited_for.value] += stall.seconds;
  }
  times.device_seconds = simulation.device_seconds;
  times.use = DeviceUseOf(options, simulation);
  for (const OpRow& row : simulation.rows) {
    times.rows.push_back({times.compiled->instruction(row.name), row.seconds, row.runs, exposed[row.name.value]});
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
