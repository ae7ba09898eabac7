// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/export/profile_simulation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "interp/runtime/client/client.h"
#include "interp/tpu/timing/compile.h"

namespace hlokit::tpu {

ProfileSimulation::Program::Program(Module module_in, SimulationOptions options_in)
    : module(std::move(module_in)),
      options(std::move(options_in)),
      plan(module),
      simulation(Simulate(module, plan, options)),
      memory(PlanMemory(options.machine, module, plan, simulation.implicit_partitions)),
      input{module, options, simulation, memory} {}

absl::StatusOr<std::unique_ptr<ProfileSimulation>> ProfileSimulation::Create(const runtime::Profile& profile,
                                                                             const Options& options) {
  if (profile.executions.empty()) return absl::NotFoundError("the profile has no executions");
  auto result = std::make_unique<ProfileSimulation>();
  result->start_unix_ns_ = profile.start_unix_ns;
  std::map<const runtime::Executable*, size_t> known;
  std::vector<size_t> program_of;
  for (const runtime::ExecutionEvent& e : profile.executions) {
    const auto [place, fresh] = known.insert({e.executable.get(), result->programs_.size()});
    program_of.push_back(place->second);
    if (!fresh) continue;
    Module module = e.executable->module().Clone();
    if (options.replicas > 0) module.header().replica_count = options.replicas;
    absl::StatusOr<SimulationOptions> machine = options.machine(module);
    if (!machine.ok()) return machine.status();
    if (absl::Status status = Compile(*machine, options.pipeline, &module); !status.ok()) return status;
    result->programs_.push_back(std::make_unique<Program>(std::move(module), *std::move(machine)));
  }
  std::vector<double> seconds_of;
  for (const std::unique_ptr<Program>& program : result->programs_) {
    seconds_of.push_back(program->simulation.device_seconds);
  }
  result->replay_ = ReplayProfile(profile, program_of, seconds_of);
  return result;
}

ProfileSpace ProfileSimulation::ToSpace(int64_t devices, size_t max_events) const {
  ProfileSpace space;
  int64_t most = 1;
  for (const std::unique_ptr<Program>& program : programs_) {
    space.programs.push_back({&program->input, &program->plan});
    most = std::max(most, program->simulation.devices.devices);
  }
  space.runs = replay_.runs;
  space.threads = replay_.threads;
  space.devices = std::min(devices, most);
  space.start_unix_ns = start_unix_ns_;
  space.seconds = replay_.seconds;
  space.max_events = max_events;
  return space;
}

}  // namespace hlokit::tpu
