// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/export/replay.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "ir/core/str_cat.h"

namespace hlokit::tpu {

namespace {

using runtime::Profile;
using runtime::TraceEvent;

struct NamedPhase {
  std::string_view text;
  HostPhase phase;
};
// Phases by prefix of a span name.
constexpr NamedPhase kPhases[] = {
    {"PjRtComputationClient::Compile", HostPhase::kCompile},
    {"PjRtComputationClient::TransferToDevice", HostPhase::kTransfer},
    {"PjRtComputationClient::TransferFromDevice", HostPhase::kFetch},
    {"PjRtComputationClient::Execute", HostPhase::kExecute},
    {"TPUExecute", HostPhase::kExecute},
    {"XLAGraphExecutor::Compile", HostPhase::kCompile},
    {"WaitForDevice", HostPhase::kFetch},
    {"WaitForQueue", HostPhase::kExecute},
    {"WaitForBatch", HostPhase::kInput},
    {"DeviceBarrier", HostPhase::kFetch},
    {"cpu_loader.next", HostPhase::kInput},
    {"get_batch_from_cpu_queue", HostPhase::kInput},
    {"cpu_data_to_xla_device", HostPhase::kTransfer},
    {kStepMarker, HostPhase::kMarker},
    {"SyncLiveTensorsGraph", HostPhase::kMarker},
    {"SyncTensorsGraph", HostPhase::kMarker},
    {"CollectSyncTensors", HostPhase::kMarker},
    {"RunPostOrder", HostPhase::kMarker},
    {"ScheduleSyncTensorsGraph", HostPhase::kMarker},
    {"SetTensorData", HostPhase::kMarker},
};

// Phases by substring, for names without a known prefix: spans of PJRT clients, JAX and input pipelines. Earlier rows
// take precedence.
constexpr NamedPhase kPartsOfNames[] = {
    {"BlockHostUntilReady", HostPhase::kFetch}, {"block_until_ready", HostPhase::kFetch},
    {"::Compile", HostPhase::kCompile},         {"backend_compile", HostPhase::kCompile},
    {"XlaCompile", HostPhase::kCompile},        {"compile_or_get_cached", HostPhase::kCompile},
    {"::Execute", HostPhase::kExecute},         {"ExecuteReplicated", HostPhase::kExecute},
    {"ExecuteSharded", HostPhase::kExecute},    {"TpuExecute", HostPhase::kExecute},
    {"PjitFunction", HostPhase::kExecute},      {"BufferFromHost", HostPhase::kTransfer},
    {"TransferToDevice", HostPhase::kTransfer}, {"TransferLiteralTo", HostPhase::kTransfer},
    {"device_put", HostPhase::kTransfer},       {"TransferFromDevice", HostPhase::kFetch},
    {"TransferLiteralFrom", HostPhase::kFetch}, {"ToLiteral", HostPhase::kFetch},
    {"CopyToHost", HostPhase::kFetch},          {"Iterator::", HostPhase::kInput},
    {"IteratorGetNext", HostPhase::kInput},
};
constexpr std::string_view kDeviceWaits[] = {"WaitForDevice", "BlockHostUntilReady", "block_until_ready"};
constexpr std::string_view kQueueWait = "WaitForQueue";
constexpr std::string_view kBatchWait = "WaitForBatch";
constexpr std::string_view kProgram = "program";  // work outside of any span

// Maps recorded times of the program's thread to times with simulated waits.
class TimeMap {
 public:
  // Maps the recorded interval [from, to] so that it ends at `until`.
  void Add(double from, double to, double until) { segments_.push_back({from, to, Map(from), until}); }
  double Map(double t) const {
    const auto after = std::upper_bound(segments_.begin(), segments_.end(), t,
                                        [](double value, const Segment& segment) { return value < segment.from; });
    if (after == segments_.begin()) return t;
    const Segment& segment = *(after - 1);
    if (t >= segment.to) return segment.new_to + (t - segment.to);
    const double part = segment.to > segment.from ? (t - segment.from) / (segment.to - segment.from) : 1;
    return segment.new_from + part * (segment.new_to - segment.new_from);
  }

 private:
  struct Segment {
    double from, to, new_from, new_to;
  };
  std::vector<Segment> segments_;  // ordered and disjoint
};

class Replayer {
 public:
  Replayer(const Profile& profile, absl::Span<const size_t> program_of, absl::Span<const double> seconds_of)
      : profile_(profile), program_of_(program_of), seconds_of_(seconds_of) {}

  Replay Run() {
    IdentifyProgramThread();
    SimulateDeviceQueue();
    MakePlan();
    MakeThreads();
    return std::move(result_);
  }

 private:
  double Seconds(int64_t ns) const { return static_cast<double>(ns - profile_.start_ns) * 1e-9; }

  // Selects the thread with step markers, else with calls, else with most spans.
  void IdentifyProgramThread() {
    std::vector<int64_t> weight(std::max<size_t>(profile_.threads.size(), 1), 0);
    for (const TraceEvent& e : profile_.events) weight[e.thread] += e.name == kStepMarker ? 1000000 : 1;
    for (const runtime::ExecutionEvent& e : profile_.executions) weight[e.thread] += 1000;
    main_ = static_cast<uint32_t>(std::max_element(weight.begin(), weight.end()) - weight.begin());
    for (int64_t end : profile_.step_ends_ns) boundaries_.push_back(Seconds(end));
    for (const TraceEvent& e : profile_.events) {
      if (e.thread != main_) continue;
      if (e.name == kStepMarker && profile_.step_ends_ns.empty()) boundaries_.push_back(Seconds(e.end_ns));
      // Nested waits belong to the outermost one.
      if (IsDeviceWait(e.name) && (waits_.empty() || Seconds(e.start_ns) >= waits_.back().second)) {
        waits_.push_back({Seconds(e.start_ns), Seconds(e.end_ns)});
      }
    }
  }

  int64_t StepAt(double t) const {
    return std::lower_bound(boundaries_.begin(), boundaries_.end(), t) - boundaries_.begin();
  }

  // Returns the step in progress at `t`; a step that ends at `t` is over.
  int64_t StepFrom(double t) const {
    return std::upper_bound(boundaries_.begin(), boundaries_.end(), t) - boundaries_.begin();
  }

  // Devices of one process run alike: only the first is simulated.
  void SimulateDeviceQueue() {
    run_of_.assign(profile_.executions.size(), -1);
    for (const runtime::ExecutionEvent& e : profile_.executions) device_ = std::min(device_, e.device);
    double free = 0;
    size_t next = 0;
    const auto run_until = [&](double t) {
      for (; next < profile_.executions.size() && Seconds(profile_.executions[next].called_ns) <= t; ++next) {
        const runtime::ExecutionEvent& e = profile_.executions[next];
        if (e.device != device_) continue;
        run_of_[next] = static_cast<int64_t>(result_.runs.size());
        const double called = Seconds(e.called_ns);
        const double start = std::max(e.thread == main_ ? time_map_.Map(called) : called, free);
        const size_t program = program_of_[next];
        result_.runs.push_back({program, start, StepAt(called)});
        free = start + seconds_of_[program];
      }
    };
    for (const auto& [from, to] : waits_) {
      run_until(from);
      const double now = time_map_.Map(from);
      time_map_.Add(from, to, std::max(now, free));
    }
    run_until(1e300);
    result_.seconds = std::max(free, time_map_.Map(Seconds(profile_.stop_ns)));
  }

  // Computes the seconds of each phase in each step by innermost span.
  void MakePlan() {
    HostModel& plan = result_.plan;
    plan.source = "a profile";
    plan.prefetch = 0;
    plan.steps.resize(boundaries_.size());
    for (HostStep& step : plan.steps) {
      step.graphs = 0;
      step.runs = 0;
    }
    std::vector<const TraceEvent*> open;
    std::vector<std::string> scopes;
    double at = 0;
    // Attributes the time up to `t` to the open spans.
    const auto spend = [&](double t) {
      while (at < t) {
        const int64_t k = StepFrom(at);
        if (k >= static_cast<int64_t>(plan.steps.size())) return;
        const double end = std::min(t, boundaries_[k]);
        const HostPhase phase = open.empty() ? HostPhase::kOther : PhaseOfSpan(open.back()->name);
        if (!open.empty() && IsWait(open.back()->name)) {
          plan.steps[k].waits |= IsDeviceWait(open.back()->name);
        } else {
          *SecondsIn(phase, &plan.steps[k]) += end - at;
        }
        at = end;
      }
    };
    for (const TraceEvent& e : profile_.events) {
      if (e.thread != main_) continue;
      while (!open.empty() && open.back()->end_ns <= e.start_ns) {
        spend(Seconds(open.back()->end_ns));
        open.pop_back();
        scopes.pop_back();
      }
      spend(Seconds(e.start_ns));
      const bool scope = PhaseOfSpan(e.name) == HostPhase::kTrace;
      std::string path = scopes.empty() ? std::string() : scopes.back();
      if (scope) path = path.empty() ? e.name : StrCat(path, "/", e.name);
      open.push_back(&e);
      scopes.push_back(path);
      const int64_t k = StepFrom(Seconds(e.start_ns));
      if (scope && k < static_cast<int64_t>(plan.steps.size())) {
        const double begin = k == 0 ? 0 : boundaries_[k - 1];
        plan.steps[k].scopes.push_back({path, Seconds(e.start_ns) - begin, Seconds(e.end_ns) - Seconds(e.start_ns)});
      }
    }
    while (!open.empty()) {
      spend(Seconds(open.back()->end_ns));
      open.pop_back();
    }
    if (!boundaries_.empty()) spend(boundaries_.back());
    std::vector<double> totals(seconds_of_.size(), 0);
    for (const ProgramExecution& run : result_.runs) totals[run.program] += seconds_of_[run.program];
    if (!totals.empty()) {
      result_.main_program = static_cast<size_t>(std::max_element(totals.begin(), totals.end()) - totals.begin());
    }
    for (const ProgramExecution& run : result_.runs) {
      if (run.step >= static_cast<int64_t>(plan.steps.size())) continue;
      HostStep& step = plan.steps[run.step];
      ++step.graphs;
      if (run.program == result_.main_program) {
        step.runs += 1;
      } else {
        step.other_device += seconds_of_[run.program];
      }
    }
    for (HostStep& step : plan.steps) {
      step.graphs = std::max<int64_t>(step.graphs, 1);
      // HostStep::execute is the time of one call.
      step.execute /= static_cast<double>(step.graphs);
    }
  }

  static double* SecondsIn(HostPhase phase, HostStep* step) {
    switch (phase) {
      case HostPhase::kInput:
        return &step->input;
      case HostPhase::kTransfer:
        return &step->transfer;
      case HostPhase::kTrace:
        return &step->trace;
      case HostPhase::kMarker:
        return &step->marker;
      case HostPhase::kCompile:
        return &step->compile;
      case HostPhase::kExecute:
        return &step->execute;
      case HostPhase::kFetch:
        return &step->fetch;
      case HostPhase::kOther:
        break;
    }
    return &step->other;
  }

  void MakeThreads() {
    result_.threads.resize(profile_.threads.size());
    for (size_t t = 0; t < profile_.threads.size(); ++t) result_.threads[t].name = profile_.threads[t];
    if (main_ < result_.threads.size()) {
      double begin = 0;
      for (size_t k = 0; k < boundaries_.size(); ++k) {
        const double end = time_map_.Map(boundaries_[k]);
        result_.threads[main_].spans.push_back({"train", begin, end - begin, static_cast<int64_t>(k), true, -1});
        begin = end;
      }
    }
    size_t run = 0;
    for (const TraceEvent& e : profile_.events) {
      double start = Seconds(e.start_ns);
      double end = Seconds(e.end_ns);
      HostSpan span;
      span.name = e.name;
      if (e.thread == main_) {
        span.step = StepFrom(start);
        if (span.step >= static_cast<int64_t>(boundaries_.size())) span.step = -1;
        // Associates a call with its execution.
        while (run < profile_.executions.size() && profile_.executions[run].called_ns < e.start_ns) ++run;
        if (PhaseOfSpan(e.name) == HostPhase::kExecute && run < profile_.executions.size() &&
            profile_.executions[run].called_ns <= e.end_ns) {
          span.run = run_of_[run];
        }
        start = time_map_.Map(start);
        end = time_map_.Map(end);
      }
      span.start = start;
      span.duration = end - start;
      const bool calls = span.run >= 0;
      HostSpan call = span;
      if (calls) span.run = -1;
      result_.threads[e.thread].spans.push_back(std::move(span));
      if (!calls) continue;
      // The span name of the TPU runtime.
      call.name = "TPUExecute";
      result_.threads[e.thread].spans.push_back(std::move(call));
    }
    for (HostThread& thread : result_.threads) {
      std::stable_sort(thread.spans.begin(), thread.spans.end(), [](const HostSpan& a, const HostSpan& b) {
        return a.start != b.start ? a.start < b.start : a.duration > b.duration;
      });
    }
  }

  const Profile& profile_;
  const absl::Span<const size_t> program_of_;
  const absl::Span<const double> seconds_of_;
  uint32_t main_ = 0;
  std::vector<double> boundaries_;                // recorded ends of steps
  std::vector<std::pair<double, double>> waits_;  // recorded waits of the program's thread
  int device_ = std::numeric_limits<int>::max();
  std::vector<int64_t> run_of_;  // by execution: index into result_.runs, negative for other devices
  TimeMap time_map_;
  Replay result_;
};

}  // namespace

HostPhase PhaseOfSpan(std::string_view name) {
  // Python functions, as JAX's profiler records them.
  if (name == kProgram || (name.substr(0, 1) == "$" && !IsDeviceWait(name))) return HostPhase::kOther;
  for (const NamedPhase& p : kPhases) {
    if (name.substr(0, p.text.size()) == p.text) return p.phase;
  }
  for (const NamedPhase& p : kPartsOfNames) {
    if (name.find(p.text) != std::string_view::npos) return p.phase;
  }
  return HostPhase::kTrace;
}

bool IsDeviceWait(std::string_view name) {
  return std::any_of(std::begin(kDeviceWaits), std::end(kDeviceWaits),
                     [name](std::string_view wait) { return name.find(wait) != std::string_view::npos; });
}

bool IsWait(std::string_view name) { return name == kQueueWait || name == kBatchWait || IsDeviceWait(name); }

std::string_view SpanNameOf(HostPhase phase, bool wait) {
  if (wait) {
    return phase == HostPhase::kFetch ? kDeviceWaits[0] : phase == HostPhase::kExecute ? kQueueWait : kBatchWait;
  }
  switch (phase) {
    case HostPhase::kInput:
      return "cpu_loader.next";
    case HostPhase::kTransfer:
      return "PjRtComputationClient::TransferToDevice";
    case HostPhase::kTrace:
      return "IR generation";
    case HostPhase::kMarker:
      return kStepMarker;
    case HostPhase::kCompile:
      return "XLAGraphExecutor::Compile";
    case HostPhase::kExecute:
      return "TPUExecute";
    case HostPhase::kFetch:
      return "PjRtComputationClient::TransferFromDevice";
    case HostPhase::kOther:
      return kProgram;
  }
  return "";
}

Replay ReplayProfile(const Profile& profile, absl::Span<const size_t> program_of, absl::Span<const double> seconds_of) {
  return Replayer(profile, program_of, seconds_of).Run();
}

}  // namespace hlokit::tpu
