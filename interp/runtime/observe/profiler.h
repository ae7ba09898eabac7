// SPDX-License-Identifier: Apache-2.0
// What the process does while a profile is being taken: named spans of its threads, and the executions it calls.
//
//   Profiler::Start();                        one at a time
//   { TraceMe span("cpu_loader.next"); ... }    costs a load of a flag while no profile is being taken
//   absl::StatusOr<Profile> profile = Profiler::Stop();
//
// A profile writes itself as an XSpace, as JSON for Perfetto and as text (interp/runtime/observe/profile_files.h); a
// server hands it to whoever asks on a port (interp/runtime/observe/profiler_server.h).
#ifndef HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILER_H_
#define HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlokit::runtime {

class Executable;

// Nanoseconds of a clock that only goes forward, the same for all threads.
int64_t ProfileClock();

struct TraceEvent {
  std::string name;
  uint32_t thread = 0;  // index of Profile::threads
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::vector<std::pair<std::string, int64_t>> stats;  // "step_num", "_r", "group_id"
};

// A call of an executable.
struct ExecutionEvent {
  std::shared_ptr<Executable> executable;
  int device = 0;
  uint32_t thread = 0;    // that called
  int64_t called_ns = 0;  // when the call returned: it is in the device's queue
};

struct Profile {
  int64_t start_ns = 0;  // ProfileClock
  int64_t stop_ns = 0;
  int64_t start_unix_ns = 0;               // the same instant by the clock on the wall
  std::vector<std::string> threads;        // names, by number
  std::vector<TraceEvent> events;          // in the order of their starts; what holds another comes before it
  std::vector<ExecutionEvent> executions;  // in the order of their calls
  int64_t dropped = 0;                     // events beyond the limit
  std::vector<int64_t> step_ends_ns;       // ascending; empty: steps end with their step markers
};

struct ProfilerOptions {
  size_t max_events = 2000000;
};

class Profiler {
 public:
  // An error while another profile is being taken.
  static absl::Status Start(const ProfilerOptions& options = {});
  // An error if none is.
  static absl::StatusOr<Profile> Stop();
  static bool active();
  // A call, noted if a profile is being taken.
  static void RecordExecution(std::shared_ptr<Executable> executable, int device);
  // How this thread is called in profiles.
  static void SetThreadName(std::string_view name);
};

// A span of this thread, from construction to destruction. Noted if a profile was being taken at both ends.
class TraceMe {
 public:
  explicit TraceMe(std::string_view name);
  ~TraceMe();
  TraceMe(const TraceMe&) = delete;
  TraceMe& operator=(const TraceMe&) = delete;
  void Add(std::string_view stat, int64_t value);

 private:
  uint64_t session_;  // 0: not noted
  int64_t start_ns_ = 0;
  std::string name_;
  std::vector<std::pair<std::string, int64_t>> stats_;
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILER_H_
