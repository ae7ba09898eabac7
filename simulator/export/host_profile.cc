// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/host_profile.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/observe/profile_files.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/xplane.pb.h"
#include "simulator/export/replay.h"
#include "simulator/export/span_names.h"

namespace hlokit::tpu {

namespace {

namespace proto = ::tensorflow::profiler;
using runtime::TraceEvent;

constexpr std::string_view kHostPlaneName = "/host:CPU";
constexpr std::string_view kAllocatorLine = "allocator";
// Batches that a loader on a dedicated thread prepares ahead; the recording does not contain it.
constexpr int64_t kPrefetch = 2;

struct RootEvent {
  uint32_t thread = 0;
  int64_t end_ns = 0;
};

// Reads the host threads of an XSpace.
class Reader {
 public:
  absl::Status Read(std::string_view bytes) {
    proto::XSpace space;
    if (absl::Status s = runtime::ParseProfile(bytes, &space); !s.ok()) return s;
    for (const proto::XPlane& plane : space.planes()) {
      if (plane.name() == kHostPlaneName) ReadPlane(plane);
    }
    if (profile_.events.empty()) return absl::NotFoundError("the profile has no plane /host:CPU with events");
    std::stable_sort(profile_.events.begin(), profile_.events.end(), [](const TraceEvent& a, const TraceEvent& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    profile_.start_ns = profile_.events[0].start_ns;
    for (const TraceEvent& e : profile_.events) profile_.stop_ns = std::max(profile_.stop_ns, e.end_ns);
    IdentifyMainThread();
    CollectCalls();
    return CollectSteps();
  }

  const runtime::Profile& profile() const { return profile_; }
  uint32_t main_thread() const { return main_; }

 private:
  void ReadPlane(const proto::XPlane& plane) {
    int64_t root_stat = -1;
    for (const auto& [id, metadata] : plane.stat_metadata()) {
      if (metadata.name() == "_r") root_stat = id;
    }
    for (const proto::XLine& line : plane.lines()) {
      if (line.name().compare(0, kAllocatorLine.size(), kAllocatorLine) == 0) continue;
      const uint32_t thread = static_cast<uint32_t>(profile_.threads.size());
      profile_.threads.push_back(line.name());
      for (const proto::XEvent& event : line.events()) {
        const auto metadata = plane.event_metadata().find(event.metadata_id());
        if (metadata == plane.event_metadata().end() || event.data_case() == proto::XEvent::kNumOccurrences) continue;
        // Times in a file are arbitrary.
        const int64_t start = Add(line.timestamp_ns(), event.offset_ps() / 1000);
        const int64_t end = Add(start, std::max<int64_t>(event.duration_ps(), 0) / 1000);
        const bool root = std::any_of(event.stats().begin(), event.stats().end(), [&](const proto::XStat& stat) {
          return stat.metadata_id() == root_stat && (stat.int64_value() != 0 || stat.uint64_value() != 0);
        });
        if (root) {
          roots_.push_back({thread, end});
        } else {
          profile_.events.push_back({metadata->second.name(), thread, start, end, {}});
        }
      }
    }
  }

  // Clamps the sum so that differences do not overflow; times up to the year 2043 are below the bound.
  static int64_t Add(int64_t a, int64_t b) {
    constexpr int64_t kMaxTimeNs = int64_t{1} << 61;
    return std::clamp(a, -kMaxTimeNs, kMaxTimeNs) + std::clamp(b, -kMaxTimeNs / 2, kMaxTimeNs / 2);
  }

  // Selects the thread with the steps, else with most calls, else with most events.
  void IdentifyMainThread() {
    std::vector<int64_t> weight(std::max<size_t>(profile_.threads.size(), 1), 0);
    for (const RootEvent& root : roots_) weight[root.thread] += int64_t{1} << 40;
    for (const TraceEvent& e : profile_.events) {
      weight[e.thread] += PhaseOfSpan(e.name) == HostPhase::kExecute ? int64_t{1} << 20 : 1;
    }
    main_ = static_cast<uint32_t>(std::max_element(weight.begin(), weight.end()) - weight.begin());
  }

  // Collects the outermost spans of the phase, since a call passes through several functions.
  void CollectCalls() {
    int64_t until = std::numeric_limits<int64_t>::min();
    for (const TraceEvent& e : profile_.events) {
      if (e.thread != main_ || e.start_ns < until || PhaseOfSpan(e.name) != HostPhase::kExecute) continue;
      until = std::max(e.end_ns, e.start_ns + 1);
      runtime::ExecutionEvent call;
      call.thread = main_;
      call.called_ns = e.end_ns;
      profile_.executions.push_back(std::move(call));
    }
  }

  absl::Status CollectSteps() {
    for (const RootEvent& root : roots_) {
      if (root.thread == main_) profile_.step_ends_ns.push_back(root.end_ns);
    }
    if (profile_.step_ends_ns.empty()) {
      const bool marked = std::any_of(profile_.events.begin(), profile_.events.end(),
                                      [&](const TraceEvent& e) { return e.thread == main_ && e.name == kStepMarker; });
      if (!marked) {
        for (const runtime::ExecutionEvent& call : profile_.executions) {
          profile_.step_ends_ns.push_back(call.called_ns);
        }
        if (profile_.step_ends_ns.empty()) {
          return absl::NotFoundError(
              "the profile has neither steps (step markers, StepTraceAnnotation) nor calls of executables");
        }
      }
    }
    std::sort(profile_.step_ends_ns.begin(), profile_.step_ends_ns.end());
    return absl::OkStatus();
  }

  runtime::Profile profile_;
  std::vector<RootEvent> roots_;
  uint32_t main_ = 0;
};

// Returns the seconds of a phase on threads other than the program's, by outermost spans.
double SecondsElsewhere(const Reader& reader, HostPhase phase) {
  std::vector<int64_t> until(reader.profile().threads.size(), std::numeric_limits<int64_t>::min());
  double seconds = 0;
  for (const TraceEvent& e : reader.profile().events) {
    if (e.thread == reader.main_thread() || e.start_ns < until[e.thread] || PhaseOfSpan(e.name) != phase) continue;
    if (IsWait(e.name)) continue;
    until[e.thread] = e.end_ns;
    seconds += static_cast<double>(e.end_ns - e.start_ns) * 1e-9;
  }
  return seconds;
}

}  // namespace

absl::StatusOr<HostModel> HostModelOfProfile(std::string_view xspace) {
  Reader reader;
  if (absl::Status s = reader.Read(xspace); !s.ok()) return s;
  const std::vector<size_t> program_of(reader.profile().executions.size(), 0);
  const double no_time[] = {0};
  ReplayOptions options;
  options.program_of = program_of;
  options.seconds_of = no_time;
  HostModel plan = ReplayProfile(reader.profile(), options).plan;
  if (plan.steps.empty()) return absl::NotFoundError("the profile has no steps");
  const double steps = static_cast<double>(plan.steps.size());
  const double input = SecondsElsewhere(reader, HostPhase::kInput) / steps;
  const double transfer = SecondsElsewhere(reader, HostPhase::kTransfer) / steps;
  if (input + transfer > 0) plan.prefetch = kPrefetch;
  for (HostStep& step : plan.steps) {
    step.input += input;
    step.transfer += transfer;
    step.runs = step.runs > 0 ? 1 : 0;
  }
  return plan;
}

}  // namespace hlokit::tpu
