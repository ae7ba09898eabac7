// SPDX-License-Identifier: Apache-2.0
// Simulates the host: its phases in each step of a training or serving loop, and the causes of device idle time.
//
// The program's thread takes a batch from the loader, sends it to the device, records the step (lazy tracing), looks
// the graph up or compiles it, calls the executable and, where the program needs a value, waits for it. Calls are
// asynchronous: the thread records step n+1 while the device runs step n, up to a limit of executions in flight. The
// loader prepares and sends batches on a dedicated thread, a few ahead.
//
// A captured program records nothing and compiles once; each of its graphs costs one call.
#ifndef HLOKIT_SIMULATOR_TIMING_HOST_H_
#define HLOKIT_SIMULATOR_TIMING_HOST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hlokit::tpu {

enum class HostPhase : uint8_t { kInput, kTransfer, kTrace, kMarker, kCompile, kExecute, kFetch, kOther };
inline constexpr size_t kHostPhaseCount = static_cast<size_t>(HostPhase::kOther) + 1;
// Returns "input pipeline", "IR generation", "compile", ...
std::string_view ToString(HostPhase phase);

// A named part of a step's recording, such as "forward". In seconds since the recording began.
struct HostScope {
  std::string name;  // "train.1/forward.2"
  double start = 0;
  double duration = 0;
};

// What a phase of a step was spent for, or why a step waited.
struct HostCause {
  HostPhase phase = HostPhase::kOther;
  std::string what;    // the scope, or the op without a lowering; "": nothing in particular
  std::string source;  // "train.py:12"; "": unknown
  double seconds = 0;  // of host work; 0 for waits
  int64_t count = 0;
};

// Host seconds of one step, by phase.
struct HostStep {
  double input = 0;     // producing the batch
  double transfer = 0;  // sending the batch
  double trace = 0;
  double marker = 0;        // collecting pending operations, computing the key
  double compile = 0;       // 0: cached
  double execute = 0;       // each call
  double fetch = 0;         // copying a value to the host
  double other = 0;         // other work of the program
  bool waits = false;       // blocks on the device to fetch a value
  int64_t graphs = 1;       // number of executions; device time, trace and compile are divided evenly among them
  double runs = 1;          // executions of the program that SimulateHost times
  double other_device = 0;  // device seconds of other programs
  std::vector<HostScope> scopes;
  std::vector<HostCause> causes;
};

struct HostModel {
  std::vector<HostStep> steps;
  int64_t prefetch = 2;    // batches that the loader prepares ahead; 0: the program's thread makes and sends them
  int64_t in_flight = 32;  // maximal executions in flight
  std::string source;      // source of the times
};

// Parses "steps=8,trace=12ms,compile=3s,execute=35us,...": a model of equal steps, of which the first compiles. Keys:
//   steps       how many, 1 to 100000
//   input       producing a batch           transfer      sending it: a time, or bytes (12MB) at the rate of the link
//   trace       recording a step            marker        step marker: collecting and looking up
//   compile     a compilation               compile_every N: each Nth step compiles again (0: only the first)
//   execute     a call                      graphs        executions of a step
//   fetch       copying a value             fetch_every   N: each Nth step waits for a value (0: none)
//   other       other work of the program   prefetch      batches that the loader prepares ahead
//   in_flight   executions in flight        mode          lazy, or captured: nothing is recorded after the first step
// Times end in ns, us, ms, s. `call`: default of `execute`. `host_rate`: link rate in bytes per second.
absl::StatusOr<HostModel> ParseHostModel(std::string_view text, double call, double host_rate);
// Returns the keys of ParseHostModel.
std::vector<std::string_view> HostModelKeys();

enum class Track : uint8_t { kProgram, kLoader, kLink, kDevice };

struct TimelineSpan {
  Track track = Track::kProgram;
  HostPhase phase = HostPhase::kOther;  // of the host's tracks
  int64_t step = 0;
  double start = 0;
  double end = 0;
  int64_t after = -1;  // the activity whose end determined the start; -1: none
  bool wait = false;   // the thread is blocked
};

// An interval in which the device is idle.
struct DeviceGap {
  struct Part {
    HostPhase phase = HostPhase::kOther;
    int64_t step = 0;  // the step of that phase
    double seconds = 0;
  };
  double start = 0;
  double end = 0;
  int64_t before_step = 0;    // the next step on the device
  std::vector<Part> parts;    // causes of the delay of the next execution, in order of time; they add up to the gap
  HostPhase Longest() const;  // returns the phase with most of the time
  double SecondsOf(HostPhase phase) const;
};

struct HostTimeline {
  std::vector<TimelineSpan> spans;
  std::vector<DeviceGap> gaps;  // the first ends at the first execution
  double seconds = 0;           // until the last execution ends
  double device_busy = 0;
  // Time between the ends of consecutive steps on the device, in the steady state. Where the last steps of the plan
  // still take batches that were ready before, they are repeated until the loader is no longer ahead.
  double step_seconds = 0;
  double run_step_seconds = 0;               // the same of the last steps of the plan as they are
  double steady_gaps[kHostPhaseCount] = {};  // by phase: mean gap seconds per step in the steady state
  size_t steady_from = 0;                    // first step of the steady state
  size_t steps = 0;
  double SteadyGap(HostPhase phase) const { return steady_gaps[static_cast<size_t>(phase)]; }
};

// Returns the first step of the steady state: the second half of the steps, without the compilations of the first
// three.
size_t SteadyFrom(const HostModel& plan);
// Returns false if the plan is too short for a steady state: it has only the first steps, which still compile.
bool HasSteadyState(const HostModel& plan);

// Simulates the host. `device_seconds`: duration of one execution of the program.
HostTimeline SimulateHost(const HostModel& plan, double device_seconds);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_HOST_H_
