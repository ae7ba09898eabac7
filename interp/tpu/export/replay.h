// SPDX-License-Identifier: Apache-2.0
// A profile of a traced program, run again beside the simulated TPU: what the host did takes as long as it took; what
// it waited for the device takes as long as the device would.
//
// The thread that marks steps is the program's. Names of spans are those of PyTorch/XLA, JAX and this program. Its time
// is cut at spans named WaitForDevice; each is replaced by the time until the simulated device has run what was called
// before. Executions begin when their call returned and the device is free. Times of the host's work are those of this
// machine's clock.
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

// Ends a step.
inline constexpr std::string_view kStepMarker = "StepMarker";

// What a span of the host is part of; kTrace for scopes of the program, kOther for functions of Python.
HostPhase PhaseOfSpan(std::string_view name);
// A wait for the device's results.
bool IsDeviceWait(std::string_view name);
// That, or any other wait: for a place in the queue of the device, for a batch.
bool IsWait(std::string_view name);

// What the host's phases are called in the profiles that are written here, and what their waits are.
std::string_view SpanNameOf(HostPhase phase, bool wait);

struct Replay {
  HostModel plan;                   // seconds of each phase in each step, and the recorded scopes
  std::vector<HostThread> threads;  // with simulated waits
  std::vector<ProgramExecution> runs;
  size_t main_program = 0;  // with most time on the device; the plan is about it
  double seconds = 0;
};

// `program_of`: for each execution of the profile, its program; `seconds_of`: for each program, its time on the device.
Replay ReplayProfile(const runtime::Profile& profile, absl::Span<const size_t> program_of,
                     absl::Span<const double> seconds_of);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_REPLAY_H_
