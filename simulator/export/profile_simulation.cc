// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/profile_simulation.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/client/client.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/device_timelines.h"

namespace hlokit::tpu {

namespace {

// Recommendations compile changed programs up to this size again, as in hlo-run; larger ones are changed after
// compilation.
constexpr int64_t kMaxRecompiledInstructions = 8000;

}  // namespace

ProfileSimulation::Program::Program(Module source_in, Module module_in, SimulationOptions options_in,
                                    std::string_view pipeline_in)
    : source(std::move(source_in)),
      module(std::move(module_in)),
      options(std::move(options_in)),
      pipeline(pipeline_in),
      simulated(module, options),
      compile_time(EstimateCompileTime(source, simulated.plan)),
      input(simulated.Input(compile_time.instructions <= kMaxRecompiledInstructions ? &source : nullptr, pipeline)) {}

absl::StatusOr<std::unique_ptr<ProfileSimulation>> ProfileSimulation::Create(const runtime::Profile& profile,
                                                                             const Options& options) {
  if (profile.executions.empty()) return absl::NotFoundError("the profile has no executions");
  auto result = std::make_unique<ProfileSimulation>();
  result->start_unix_ns_ = profile.start_unix_ns;
  std::set<int> devices;
  for (const runtime::ExecutionEvent& e : profile.executions) devices.insert(e.device);
  const int64_t replicas =
      options.replicas > 0 || devices.size() == 1 ? options.replicas : static_cast<int64_t>(devices.size());
  std::map<const void*, size_t> known;
  const auto number_of = [&](const std::shared_ptr<runtime::Executable>& executable) -> absl::StatusOr<size_t> {
    // Devices that share a program have executables of their own.
    const Module& lowered = executable->lowered() != nullptr ? *executable->lowered() : executable->module();
    const auto [place, fresh] = known.insert({&lowered, result->programs_.size()});
    if (!fresh) {
      double& measured = result->programs_[place->second]->measured_compile_seconds;
      measured = std::max(measured, executable->compile_seconds());
      return place->second;
    }
    Module source = lowered.Clone();
    // Devices that are partitions of one replica are no replicas of it.
    if (replicas > 0) {
      source.header().replica_count =
          std::max<int64_t>(replicas / std::max<int64_t>(source.header().num_partitions, 1), 1);
    }
    absl::StatusOr<SimulationOptions> machine = options.machine(source);
    if (!machine.ok()) return machine.status();
    Module module = source.Clone();
    if (absl::Status status = Compile(*machine, options.pipeline, &module); !status.ok()) return status;
    result->programs_.push_back(
        std::make_unique<Program>(std::move(source), std::move(module), *std::move(machine), options.pipeline));
    result->programs_.back()->measured_compile_seconds = executable->compile_seconds();
    return place->second;
  };
  std::vector<size_t> program_of, compiled_program_of;
  for (const runtime::ExecutionEvent& e : profile.executions) {
    absl::StatusOr<size_t> program = number_of(e.executable);
    if (!program.ok()) return program.status();
    program_of.push_back(*program);
  }
  for (const runtime::CompilationEvent& e : profile.compilations) {
    absl::StatusOr<size_t> program = number_of(e.executable);
    if (!program.ok()) return program.status();
    compiled_program_of.push_back(*program);
  }
  std::vector<double> seconds_of, compile_seconds_of;
  for (const std::unique_ptr<Program>& program : result->programs_) {
    seconds_of.push_back(program->simulated.simulation.device_seconds);
    compile_seconds_of.push_back(program->compile_time.seconds);
  }
  ReplayOptions replay;
  replay.times = options.times;
  replay.costs = HostCostsOf(result->programs_[0]->options.machine, options.host);
  replay.program_of = program_of;
  replay.seconds_of = seconds_of;
  replay.compiled_program_of = compiled_program_of;
  replay.compile_seconds_of = compile_seconds_of;
  result->replay_ = ReplayProfile(profile, replay);
  const Simulation& main = result->programs_[result->replay_.main_program]->simulated.simulation;
  for (const int64_t slow : StragglersOf(main.devices)) {
    for (HostThread& thread : result->replay_.threads) thread.straggler |= thread.device == slow;
  }
  result->replay_.plan.source = options.times == HostTimes::kMeasured   ? "CPU time of the threads"
                                : options.host == HostSystem::kTorchXla ? "counted work, at PyTorch/XLA's costs"
                                                                        : "counted work";
  return result;
}

RecordedRun ProfileSimulation::recorded_run() const {
  RecordedRun run;
  for (size_t p = 0; p < programs_.size(); ++p) {
    const Program& program = *programs_[p];
    const double runs = p < replay_.runs_per_step.size() ? replay_.runs_per_step[p] : 0;
    run.graphs.push_back(
        {&program.input, &program.simulated.plan, runs, program.compile_time, program.measured_compile_seconds});
  }
  run.threads = replay_.threads;
  run.step_numbers = replay_.step_numbers;
  run.step_seconds = replay_.step_seconds;
  if (replay_.step_numbers.empty()) return run;
  double begin = -1;
  for (const ProgramExecution& e : replay_.runs) {
    if (e.step != replay_.step_numbers.back() || e.device > 0) continue;
    if (begin < 0) begin = e.start;
    run.step.push_back({&programs_[e.program]->input, &programs_[e.program]->simulated.plan, e.start - begin});
  }
  return run;
}

ProfileSpace ProfileSimulation::ToSpace(int64_t devices, size_t max_events) const {
  ProfileSpace space;
  int64_t most = 1;
  for (const std::unique_ptr<Program>& program : programs_) {
    space.programs.push_back({&program->input, &program->simulated.plan});
    most = std::max(most, program->simulated.simulation.devices.devices);
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
