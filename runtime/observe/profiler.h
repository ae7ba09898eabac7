// SPDX-License-Identifier: Apache-2.0
// Records profiles of this process: named spans of its threads and calls of executables.
//
//   absl::Status status = Profiler::Start();    // one at a time
//   { TraceMe span("cpu_loader.next"); }        // costs a load of a flag while no profile is recorded
//   absl::StatusOr<Profile> profile = Profiler::Stop();
//
// runtime/observe/profile_files.h converts profiles to XSpace, JSON for Perfetto and text;
// runtime/observe/profiler_server.h serves them on a port.
#ifndef HLOKIT_RUNTIME_OBSERVE_PROFILER_H_
#define HLOKIT_RUNTIME_OBSERVE_PROFILER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/observe/host_work.h"

namespace hlokit::runtime {

class Executable;

// Returns nanoseconds of a monotonic clock shared by all threads.
int64_t ProfileClock();

// Name of spans in which a tool works for itself, such as reading values to print: they are no part of the program.
inline constexpr std::string_view kToolSpan = "(tool)";

struct TraceEvent {
  std::string name;
  uint32_t thread = 0;  // index of Profile::threads
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::vector<std::pair<std::string, int64_t>> stats;  // "step_num", "_r", "cost_ns", "_p", "_c", "framework_call"
  ThreadCounters at_start = {}, at_end = {};           // of its thread
  std::string source = {};                             // "train.py:12"; empty: unknown
};

// A call of an executable.
struct ExecutionEvent {
  std::shared_ptr<Executable> executable;
  int device = 0;
  uint32_t thread = 0;    // the calling thread
  int64_t called_ns = 0;  // when the call returned, with the execution in the device's queue
  ThreadCounters at_call = {};
  bool collective = false;  // begins once all devices of the process have been called
};

// A compilation, within a span of its thread.
struct CompilationEvent {
  std::shared_ptr<Executable> executable;
  uint32_t thread = 0;
  int64_t time_ns = 0;
  std::string reason = {};  // why no known program was used; "": not explained
};

struct Profile {
  int64_t start_ns = 0;  // of ProfileClock
  int64_t stop_ns = 0;
  int64_t start_unix_ns = 0;               // the same instant in wall-clock time
  std::vector<std::string> threads;        // names by number
  std::vector<TraceEvent> events;          // in order of start; parents before children
  std::vector<ExecutionEvent> executions;  // in order of call
  std::vector<CompilationEvent> compilations;
  int64_t dropped = 0;                // events beyond the limit
  std::vector<int64_t> step_ends_ns;  // ascending; empty: steps end at their step markers
};

struct ProfilerOptions {
  size_t max_events = 2000000;
};

class Profiler {
 public:
  // Starts recording. Returns an error if a profile is being recorded.
  static absl::Status Start(const ProfilerOptions& options = {});
  // Stops recording. Returns an error if no profile is being recorded.
  static absl::StatusOr<Profile> Stop();
  static bool active();
  // Records a call if a profile is being recorded.
  static void RecordExecution(std::shared_ptr<Executable> executable, int device, bool collective = false);
  // Records a compilation if a profile is being recorded.
  static void RecordCompilation(std::shared_ptr<Executable> executable);
  // Sets the reason of the last compilation of `executable`.
  static void ExplainCompilation(const Executable* executable, std::string_view reason);
  // Discards what was recorded since Start, so that the profile begins here: after a program has set up its parameters.
  static void Restart();
  // Sets the name of this thread in profiles. Threads with the same name share a line.
  static void SetThreadName(std::string_view name);
  // Sets the function that returns the current source line of the program, for spans. Null: unknown.
  static void SetSourceProvider(std::string (*provider)());
};

// A span of this thread, from construction to destruction. Recorded if a profile was being recorded at both ends.
class TraceMe {
 public:
  explicit TraceMe(std::string_view name);
  ~TraceMe();
  TraceMe(const TraceMe&) = delete;
  TraceMe& operator=(const TraceMe&) = delete;
  void Add(std::string_view stat, int64_t value);
  // Declares the host time of the span, in place of the measured one: of work that a program pretends to do.
  void SetCost(int64_t ns) { Add("cost_ns", ns); }
  // Connects threads: a span that consumes a flow begins, or if it is a wait ends, no earlier than the span that
  // produces it ends. Returned by NewFlow.
  void Produces(int64_t flow) { Add("_p", flow); }
  void Consumes(int64_t flow) { Add("_c", flow); }
  static int64_t NewFlow();

 private:
  uint64_t session_;  // 0: not recorded
  int64_t start_ns_ = 0;
  ThreadCounters at_start_;
  std::string name_;
  std::string source_;
  std::vector<std::pair<std::string, int64_t>> stats_;
};

// A span that names a part of the user's program. One that is in progress when a profile starts or stops is in the
// profile too, from its start or until its end.
class AnnotationSpan {
 public:
  explicit AnnotationSpan(std::string_view name, std::vector<std::pair<std::string, int64_t>> stats = {});
  ~AnnotationSpan();
  AnnotationSpan(const AnnotationSpan&) = delete;
  AnnotationSpan& operator=(const AnnotationSpan&) = delete;

 private:
  uint64_t id_;
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_OBSERVE_PROFILER_H_
