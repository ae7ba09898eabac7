// SPDX-License-Identifier: Apache-2.0
// A thread of a profile as a sequence of points, the beginnings and ends of its spans and its calls, with the time that
// the thread works between them.
#ifndef HLOKIT_SIMULATOR_EXPORT_THREAD_POINTS_H_
#define HLOKIT_SIMULATOR_EXPORT_THREAD_POINTS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/observe/profiler.h"
#include "simulator/export/replay.h"

namespace hlokit::tpu {

struct ThreadPoint {
  enum class Kind : uint8_t { kBegin, kEnd, kCall, kStepEnd };
  static constexpr size_t kNone = static_cast<size_t>(-1);
  Kind kind = Kind::kBegin;
  int64_t ns = 0;        // recorded time
  size_t index = 0;      // of the event or execution
  double work = 0;       // seconds of work since the previous point
  double cpu = 0;        // the same as measured
  bool records = false;  // ops were recorded since the previous point
  size_t in = kNone;     // the event in which that work was done; kNone: outside of any
  bool in_tool = false;  // within a span of a tool: no part of the program
};

// What a thread of a profile did: indices of its events and executions, in order.
struct ThreadRecord {
  std::vector<size_t> events;
  std::vector<size_t> executions;
};
// Returns the records of all threads.
std::vector<ThreadRecord> RecordsOfThreads(const runtime::Profile& profile);

// Returns the points of a thread. `step_ends`: recorded times at which steps end, besides events.
std::vector<ThreadPoint> PointsOfThread(const runtime::Profile& profile, uint32_t thread, const ThreadRecord& record,
                                        absl::Span<const int64_t> step_ends, const ReplayOptions& options);

// Returns the first value of a stat of a span, or `otherwise`.
int64_t StatOf(const runtime::TraceEvent& event, std::string_view stat, int64_t otherwise);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_THREAD_POINTS_H_
