// SPDX-License-Identifier: Apache-2.0
// The host beside the device: what it does in each step of a training or serving loop, and why the device stands still.
//
// The program's thread takes a batch from the loader, sends it to the device, records the step (lazy tracing), looks
// the graph up or compiles it, calls the executable and, where the program asks for a value, waits for it. Calls are
// asynchronous: the thread records step n+1 while the device runs step n, until so many executions are under way. The
// loader prepares and sends batches on a thread of its own, some ahead.
//
// A captured program records nothing and compiles once; each of its graphs costs a call.
#ifndef HLOKIT_INTERP_TPU_TIMING_HOST_H_
#define HLOKIT_INTERP_TPU_TIMING_HOST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hlokit::tpu {

enum class HostPhase : uint8_t { kInput, kTransfer, kTrace, kMarker, kCompile, kExecute, kFetch, kOther };
inline constexpr size_t kHostPhaseCount = static_cast<size_t>(HostPhase::kOther) + 1;
// "input pipeline", "IR generation", "compile", ...
std::string_view ToString(HostPhase phase);

// A named part of a step's recording, such as "forward"; seconds since the recording began.
struct HostScope {
  std::string name;  // "train.1/forward.2"
  double start = 0;
  double duration = 0;
};

// Seconds of the host in one step.
struct HostStep {
  double input = 0;     // making the batch
  double transfer = 0;  // sending it
  double trace = 0;
  double marker = 0;   // collecting what is pending, its key
  double compile = 0;  // 0: the graph was known
  double execute = 0;  // each call
  double fetch = 0;    // copying a value to the host
  double other = 0;    // the program's own work
  bool waits = false;  // for the device, to fetch a value
  int64_t graphs = 1;  // executions; each runs its part of the device's time, and has its part of trace and compile
  double runs = 1;     // executions of the program that SimulateHost is told of
  double other_device = 0;  // seconds on the device of other programs
  std::vector<HostScope> scopes;
};

struct HostModel {
  std::vector<HostStep> steps;
  int64_t prefetch = 2;    // batches that the loader is ahead; 0: the program's thread makes and sends them itself
  int64_t in_flight = 32;  // executions under way at a time
  std::string source;      // where the times come from
};

// "steps=8,trace=12ms,compile=3s,execute=35us,...": the plan of equal steps; the first compiles. Keys:
//   steps       how many, 1 to 100000
//   input       making a batch              transfer      sending it: a time, or bytes (12MB) at the rate of the link
//   trace       recording a step            marker        step marker: collecting and looking up
//   compile     a compilation               compile_every N: each Nth step compiles again (0: only the first)
//   execute     a call                      graphs        executions of a step
//   fetch       copying a value             fetch_every   N: each Nth step waits for a value (0: none)
//   other       the program's own work      prefetch      batches that the loader is ahead
//   in_flight   executions under way        mode          lazy, or captured: nothing is recorded after the first step
// Times end in ns, us, ms, s. `call` is the time of a call if `execute` is not given, `host_rate` in bytes a second.
absl::StatusOr<HostModel> ParseHostModel(std::string_view text, double call, double host_rate);
// What may stand before the `=` there.
std::vector<std::string_view> HostModelKeys();

enum class Track : uint8_t { kProgram, kLoader, kLink, kDevice };

struct TimelineSpan {
  Track track = Track::kProgram;
  HostPhase phase = HostPhase::kOther;  // of the host's lanes
  int64_t step = 0;
  double start = 0;
  double end = 0;
  int64_t after = -1;  // the activity whose end decided the start; -1: none
  bool wait = false;   // the thread stands still
};

// A time in which the device has nothing to run.
struct DeviceGap {
  struct Part {
    HostPhase phase = HostPhase::kOther;
    int64_t step = 0;  // whose phase it is
    double seconds = 0;
  };
  double start = 0;
  double end = 0;
  int64_t before_step = 0;    // the step that runs next
  std::vector<Part> parts;    // what the next execution waited for, in order of time; they add up to the gap
  HostPhase Longest() const;  // the phase with most of the time
  double SecondsOf(HostPhase phase) const;
};

struct HostTimeline {
  std::vector<TimelineSpan> spans;
  std::vector<DeviceGap> gaps;  // the first: before anything ran
  double seconds = 0;           // until the last execution ended
  double device_busy = 0;
  double step_seconds = 0;  // from the end of one step on the device to that of the next, in the steady state
  double SteadyGap(HostPhase phase) const;  // seconds a step, of gaps in the steady state
  size_t steady_from = 0;                   // first step of it
  size_t steps = 0;
};

// `device_seconds`: of one execution of the program.
HostTimeline SimulateHost(const HostModel& plan, double device_seconds);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TIMING_HOST_H_
