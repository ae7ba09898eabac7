// SPDX-License-Identifier: Apache-2.0
// Replays a profile of a traced program with the simulated TPU: host work takes its recorded time, waits for the device
// take the simulated time.
//
// The thread that marks steps is the program's. Span names are those of PyTorch/XLA, JAX and this program. Each span
// named WaitForDevice is replaced by the time until the simulated device has run all previous calls. Executions begin
// once their call has returned and the device is free. Host times are those of the recording machine.
#ifndef HLOKIT_INTERP_TPU_EXPORT_REPLAY_H_
#define HLOKIT_INTERP_TPU_EXPORT_REPLAY_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "interp/runtime/observe/profiler.h"
#include "interp/tpu/export/xplane.h"
#include "interp/tpu/timing/host.h"

namespace hlokit::tpu {

// Name of the span that ends a step.
inline constexpr std::string_view kStepMarker = "StepMarker";

// Returns the phase of a host span: kTrace for scopes of the program, kOther for Python functions.
HostPhase PhaseOfSpan(std::string_view name);
// Returns true for waits for results of the device.
bool IsDeviceWait(std::string_view name);
// Returns true for any wait: for the device, for a slot in its queue, for a batch.
bool IsWait(std::string_view name);

// Returns the span name of a host phase, or of its wait, in written profiles.
std::string_view SpanNameOf(HostPhase phase, bool wait);

struct Replay {
  HostModel plan;                   // seconds by phase and step, and the recorded scopes
  std::vector<HostThread> threads;  // with simulated waits
  std::vector<ProgramExecution> runs;
  size_t main_program = 0;  // the program with most device time, which the plan describes
  double seconds = 0;
};

// Replays a profile. `program_of`: program of each execution; `seconds_of`: device time of each program.
Replay ReplayProfile(const runtime::Profile& profile, absl::Span<const size_t> program_of,
                     absl::Span<const double> seconds_of);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_REPLAY_H_
