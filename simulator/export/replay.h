// SPDX-License-Identifier: Apache-2.0
// Replays a profile of a traced program with the simulated TPU: each thread's work takes the host's time, waits for the
// device take the simulated time, and threads wait for each other as they did.
//
// The thread that marks steps is the program's. Span names are those of PyTorch/XLA, JAX and this program. Spans in
// which a thread waits for the device end when the simulated device has run all calls before them; spans in which a
// tool works for itself are omitted. Executions begin once their call has returned and the device is free, those with
// collectives once this holds on all devices.
#ifndef HLOKIT_SIMULATOR_EXPORT_REPLAY_H_
#define HLOKIT_SIMULATOR_EXPORT_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/observe/profiler.h"
#include "simulator/export/host_costs.h"
#include "simulator/export/span_names.h"
#include "simulator/export/xplane.h"
#include "simulator/timing/host.h"

namespace hlokit::tpu {

// What the work of a thread takes.
enum class HostTimes : uint8_t {
  kCounted,   // the costs of the counted work: of programs without code of their own, the same in every run
  kModeled,   // the same, and of the user's own code, CPU time that this cannot explain
  kMeasured,  // CPU time of the thread
  kRecorded,  // wall-clock time
};

struct ReplayOptions {
  HostTimes times = HostTimes::kRecorded;
  HostCosts costs;
  absl::Span<const size_t> program_of;           // by execution
  absl::Span<const double> seconds_of;           // by program: on the device
  absl::Span<const size_t> compiled_program_of;  // by compilation
  absl::Span<const double> compile_seconds_of;   // by program; empty: as recorded
};

struct Replay {
  HostModel plan;                   // seconds by phase and step, and the recorded scopes
  std::vector<HostThread> threads;  // with simulated waits; after the recorded ones, the runtime's for each device
  std::vector<ProgramExecution> runs;
  std::vector<int64_t> step_numbers;  // by step of the plan: the program's number of it
  std::vector<double> runs_per_step;  // by program: mean of the steady state on the first device
  size_t main_program = 0;            // the program with most device time, which the plan describes
  double seconds = 0;
  double step_seconds = 0;  // mean of the steady state; 0: not known
  double cpu_seconds = 0;   // of the program's thread in the steps, as measured; 0: unknown
};

Replay ReplayProfile(const runtime::Profile& profile, const ReplayOptions& options);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_REPLAY_H_
