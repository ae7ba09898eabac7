// SPDX-License-Identifier: Apache-2.0
// Simulates the programs of a profile on a TPU together with the recorded host.
#ifndef HLOKIT_SIMULATOR_EXPORT_PROFILE_SIMULATION_H_
#define HLOKIT_SIMULATOR_EXPORT_PROFILE_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/observe/profiler.h"
#include "simulator/export/replay.h"
#include "simulator/export/report_graphs.h"
#include "simulator/export/xplane.h"
#include "simulator/report/report.h"
#include "simulator/report/simulated_module.h"
#include "simulator/timing/compile_time.h"

namespace hlokit::tpu {

class ProfileSimulation {
 public:
  struct Options {
    std::string pipeline = "tpu";  // runs first on programs without a schedule
    int64_t replicas = 0;          // 0: as in the programs, or as many as devices ran
    HostTimes times = HostTimes::kModeled;
    HostSystem host = HostSystem::kTracer;  // of counted work
    // Returns the simulation options for a program.
    std::function<absl::StatusOr<SimulationOptions>(const Module&)> machine;
  };
  // Creates the simulation. Returns an error if the profile has no executions, or a program cannot be simulated.
  static absl::StatusOr<std::unique_ptr<ProfileSimulation>> Create(const runtime::Profile& profile,
                                                                   const Options& options);

  const Replay& replay() const { return replay_; }
  size_t program_count() const { return programs_.size(); }
  const ReportInput& input(size_t program) const { return programs_[program]->input; }
  const KernelPlan& plan(size_t program) const { return programs_[program]->simulated.plan; }
  // Returns the modeled time of a TPU compiler, and the CPU seconds that compiling took in the recorded process.
  const CompileTime& compile_time(size_t program) const { return programs_[program]->compile_time; }
  double measured_compile_seconds(size_t program) const { return programs_[program]->measured_compile_seconds; }
  // Returns all graphs, threads and one steady step for ReportDocument.
  RecordedRun recorded_run() const;
  // Returns the space for XSpaceBytes.
  ProfileSpace ToSpace(int64_t devices, size_t max_events) const;

 private:
  struct Program {
    Program(Module source, Module module, SimulationOptions options, std::string_view pipeline);
    const Module source;  // as it was lowered
    const Module module;
    const SimulationOptions options;
    const std::string pipeline;
    const SimulatedModule simulated;
    const CompileTime compile_time;
    double measured_compile_seconds = 0;
    const ReportInput input;
  };

  std::vector<std::unique_ptr<Program>> programs_;  // in order of their first calls
  Replay replay_;
  int64_t start_unix_ns_ = 0;
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_PROFILE_SIMULATION_H_
