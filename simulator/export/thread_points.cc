// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/thread_points.h"

#include <algorithm>
#include <utility>

#include "simulator/export/span_names.h"

namespace hlokit::tpu {

namespace {

using runtime::ThreadCounters;
using runtime::TraceEvent;

// CPU time up to this multiple of the counted work's cost, plus a constant, is that work on a busy or slow machine, and
// pages that are touched first; what exceeds it is work of the user's own code, which nothing counts.
constexpr double kUnexplainedFactor = 4;
constexpr double kUnexplainedSeconds = 20e-3;
constexpr double kUnexplainedSecondsAlone = 1e-3;  // where nothing was counted

class ThreadReader {
 public:
  ThreadReader(const runtime::Profile& profile, uint32_t thread, const ThreadRecord& record,
               const ReplayOptions& options)
      : profile_(profile), thread_(thread), record_(record), options_(options) {}

  std::vector<ThreadPoint> Read(absl::Span<const int64_t> step_ends) {
    now_ = profile_.start_ns;
    size_t call = 0;
    size_t step = 0;
    // Adds the calls and ends of steps up to `ns`.
    const auto add_until = [&](int64_t ns) {
      for (;;) {
        const runtime::ExecutionEvent* const e =
            call < record_.executions.size() ? &profile_.executions[record_.executions[call]] : nullptr;
        const bool calls = e != nullptr && e->called_ns <= ns;
        const bool ends = step < step_ends.size() && step_ends[step] <= ns;
        if (calls && (!ends || e->called_ns <= step_ends[step])) {
          Add(ThreadPoint::Kind::kCall, e->called_ns, record_.executions[call++], e->at_call);
        } else if (ends) {
          Add(ThreadPoint::Kind::kStepEnd, step_ends[step], step, ThreadCounters());
          ++step;
        } else {
          return;
        }
      }
    };
    const auto close = [&] {
      const TraceEvent& e = profile_.events[open_.back()];
      add_until(e.end_ns);
      Add(ThreadPoint::Kind::kEnd, e.end_ns, open_.back(), e.at_end);
      tools_ -= e.name == runtime::kToolSpan ? 1 : 0;
      open_.pop_back();
    };
    for (size_t i : record_.events) {
      const TraceEvent& e = profile_.events[i];
      while (!open_.empty() && profile_.events[open_.back()].end_ns <= e.start_ns) close();
      add_until(e.start_ns);
      Add(ThreadPoint::Kind::kBegin, e.start_ns, i, e.at_start);
      open_.push_back(i);
      tools_ += e.name == runtime::kToolSpan ? 1 : 0;
    }
    while (!open_.empty()) close();
    add_until(INT64_MAX);
    return std::move(points_);
  }

 private:
  void Add(ThreadPoint::Kind kind, int64_t ns, size_t index, const ThreadCounters& at) {
    ThreadPoint point;
    point.kind = kind;
    point.ns = std::max(ns, now_);
    point.index = index;
    point.in = open_.empty() ? ThreadPoint::kNone : open_.back();
    point.in_tool = tools_ > 0;
    const double wall = static_cast<double>(point.ns - now_) * 1e-9;
    if (Known(at)) {
      point.cpu = static_cast<double>(std::max<int64_t>(at.cpu_ns - last_.cpu_ns, 0)) * 1e-9;
    }
    const bool declared = point.in != ThreadPoint::kNone && StatOf(profile_.events[point.in], "cost_ns", -1) >= 0;
    point.records = Known(at) && (at.work - last_.work).ops > 0;
    if (!point.in_tool && !declared && !InWait()) point.work = WorkUntil(wall, point.cpu, at);
    if (kind == ThreadPoint::Kind::kEnd) point.work += CostAtEnd(index);
    now_ = point.ns;
    if (at.cpu_ns >= 0) last_ = at;
    points_.push_back(point);
  }

  // Returns true if the counters tell what was done since the previous point.
  bool Known(const ThreadCounters& at) const {
    return at.cpu_ns >= 0 && last_.cpu_ns >= 0 && at.thread == last_.thread;
  }

  bool InWait() const { return !open_.empty() && IsWait(profile_.events[open_.back()].name); }

  double WorkUntil(double wall, double cpu, const ThreadCounters& at) const {
    const std::string_view span = open_.empty() ? std::string_view() : profile_.events[open_.back()].name;
    const bool compiles = span == kCompileSpan && !options_.compile_seconds_of.empty();
    switch (options_.times) {
      case HostTimes::kRecorded:
        return compiles ? 0 : wall;
      case HostTimes::kMeasured:
        return compiles ? 0 : cpu;
      case HostTimes::kCounted:
      case HostTimes::kModeled:
        break;
    }
    if (!Known(at)) return 0;
    const double counted = SecondsOf(options_.costs, at.work - last_.work);
    // Even CPU time depends on what else the machine does: the time that a virtual machine is stopped counts.
    if (options_.times == HostTimes::kCounted) return counted;
    const HostPhase phase = open_.empty() ? HostPhase::kOther : PhaseOfSpan(span);
    const bool own = phase == HostPhase::kTrace || phase == HostPhase::kOther || phase == HostPhase::kInput;
    const double excess =
        cpu - kUnexplainedFactor * counted - (counted > 0 ? kUnexplainedSeconds : kUnexplainedSecondsAlone);
    return own && excess > 0 ? counted + excess : counted;
  }

  // Returns the declared time of a span, or that of the compilation in it.
  double CostAtEnd(size_t event) const {
    const TraceEvent& e = profile_.events[event];
    if (tools_ > 0) return 0;
    if (const int64_t cost = StatOf(e, "cost_ns", -1); cost >= 0) return static_cast<double>(cost) * 1e-9;
    if (e.name != kCompileSpan || options_.compile_seconds_of.empty()) return 0;
    for (size_t c = 0; c < profile_.compilations.size(); ++c) {
      const runtime::CompilationEvent& compilation = profile_.compilations[c];
      if (compilation.thread != thread_ || compilation.time_ns < e.start_ns || compilation.time_ns > e.end_ns) continue;
      return options_.compile_seconds_of[options_.compiled_program_of[c]];
    }
    return 0;
  }

  const runtime::Profile& profile_;
  const uint32_t thread_;
  const ThreadRecord& record_;
  const ReplayOptions& options_;
  std::vector<ThreadPoint> points_;
  std::vector<size_t> open_;  // events, innermost last
  int tools_ = 0;             // open spans of tools
  int64_t now_ = 0;
  ThreadCounters last_;  // the last known ones
};

}  // namespace

int64_t StatOf(const TraceEvent& event, std::string_view stat, int64_t otherwise) {
  for (const auto& [name, value] : event.stats) {
    if (name == stat) return value;
  }
  return otherwise;
}

std::vector<ThreadRecord> RecordsOfThreads(const runtime::Profile& profile) {
  std::vector<ThreadRecord> records(std::max<size_t>(profile.threads.size(), 1));
  for (size_t i = 0; i < profile.events.size(); ++i) records[profile.events[i].thread].events.push_back(i);
  for (size_t i = 0; i < profile.executions.size(); ++i) records[profile.executions[i].thread].executions.push_back(i);
  return records;
}

std::vector<ThreadPoint> PointsOfThread(const runtime::Profile& profile, uint32_t thread, const ThreadRecord& record,
                                        absl::Span<const int64_t> step_ends, const ReplayOptions& options) {
  return ThreadReader(profile, thread, record, options).Read(step_ends);
}

}  // namespace hlokit::tpu
