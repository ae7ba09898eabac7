// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/host_plan_recorder.h"

#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"
#include "simulator/export/span_names.h"

namespace hlokit::tpu {

namespace {

// Steps are numbered up to this; the numbers of a program may be arbitrary.
constexpr int64_t kMaxStepNumber = int64_t{1} << 32;
constexpr size_t kMaxCauses = 64;  // of a step; later ones are not told apart

double* SecondsIn(HostPhase phase, HostStep* step) {
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

}  // namespace

void HostPlanRecorder::Add(const ThreadPoint& point, double at, bool ends_step) {
  const std::string_view in =
      point.in == ThreadPoint::kNone ? std::string_view() : std::string_view(profile_.events[point.in].name);
  if (point.work > 0) {
    // Time outside of spans is the program's own, unless it records ops.
    const bool outside = point.in == ThreadPoint::kNone || StatOf(profile_.events[point.in], "_r", 0) != 0;
    const HostPhase phase = !outside ? PhaseOfSpan(in) : point.records ? HostPhase::kTrace : HostPhase::kOther;
    *SecondsIn(phase, &step()) += point.work;
    if (point.in != ThreadPoint::kNone && (phase == HostPhase::kCompile || phase == HostPhase::kTransfer ||
                                           phase == HostPhase::kInput || phase == HostPhase::kTrace)) {
      const std::string& source = profile_.events[point.in].source;
      if (in == kCompileSpan && point.kind == ThreadPoint::Kind::kEnd) {
        AddCause(phase, ReasonOf(profile_.events[point.in]), source, point.work);
      } else if (phase == HostPhase::kTrace) {
        AddCause(phase, open_.empty() ? std::string() : open_.back().path, source, point.work);
      } else if (phase != HostPhase::kCompile) {
        AddCause(phase, "", source, point.work);
      }
    }
  }
  if (!point.in_tool && !IsWait(in)) step_cpu_ += point.cpu;
  switch (point.kind) {
    case ThreadPoint::Kind::kBegin: {
      const runtime::TraceEvent& e = profile_.events[point.index];
      std::string path = open_.empty() ? std::string() : open_.back().path;
      const bool scope = !point.in_tool && PhaseOfSpan(e.name) == HostPhase::kTrace && StatOf(e, "_r", 0) == 0 &&
                         e.name != runtime::kToolSpan;
      if (scope) path = path.empty() ? e.name : StrCat(path, "/", e.name);
      open_.push_back({point.index, std::move(path), at});
      if (StatOf(e, "fallback", 0) != 0) fallbacks_.push_back(point.index);
      if (point.in_tool) break;
      if (IsDeviceWait(e.name)) {
        step().waits = true;
        AddCause(HostPhase::kFetch, fallbacks_.empty() ? std::string() : profile_.events[fallbacks_.back()].name,
                 e.source, 0);
      } else if (IsWait(e.name) && PhaseOfSpan(e.name) == HostPhase::kInput) {
        AddCause(HostPhase::kInput, "", e.source, 0);
      }
      break;
    }
    case ThreadPoint::Kind::kEnd: {
      const runtime::TraceEvent& e = profile_.events[point.index];
      if (!fallbacks_.empty() && fallbacks_.back() == point.index) fallbacks_.pop_back();
      while (!open_.empty() && open_.back().event != point.index) open_.pop_back();
      if (open_.empty()) break;
      const bool scope = !point.in_tool && PhaseOfSpan(e.name) == HostPhase::kTrace && StatOf(e, "_r", 0) == 0 &&
                         e.name != runtime::kToolSpan;
      if (scope) {
        // A span that began in an earlier step counts from the beginning of this one.
        const double begin = ends_.empty() ? 0 : ends_.back();
        const double start = std::max(open_.back().start, begin);
        step().scopes.push_back({open_.back().path, start - begin, at - start});
      }
      open_.pop_back();
      break;
    }
    case ThreadPoint::Kind::kCall:
    case ThreadPoint::Kind::kStepEnd:
      break;
  }
  if (!ends_step) return;
  int64_t number = static_cast<int64_t>(ends_.size());
  if (point.kind == ThreadPoint::Kind::kEnd) {
    const int64_t named = StatOf(profile_.events[point.index], "step_num", -1);
    if (named >= 0 && named < kMaxStepNumber) number = named;
  }
  numbers_.push_back(number);
  ends_.push_back(at);
  steps_.emplace_back();
  cpu_ += std::exchange(step_cpu_, 0);
}

void HostPlanRecorder::SetLoader(double input, double transfer, int64_t prefetch) {
  input_ = input;
  transfer_ = transfer;
  prefetch_ = prefetch;
}

void HostPlanRecorder::AddCause(HostPhase phase, std::string what, const std::string& source, double seconds) {
  for (HostCause& cause : step().causes) {
    if (cause.phase != phase || cause.what != what || cause.source != source) continue;
    cause.seconds += seconds;
    ++cause.count;
    return;
  }
  if (step().causes.size() >= kMaxCauses) return;
  step().causes.push_back({phase, std::move(what), source, seconds, 1});
}

std::string HostPlanRecorder::ReasonOf(const runtime::TraceEvent& compile) const {
  for (const runtime::CompilationEvent& c : profile_.compilations) {
    if (c.thread == compile.thread && c.time_ns >= compile.start_ns && c.time_ns <= compile.end_ns) return c.reason;
  }
  return "";
}

int64_t HostPlanRecorder::StepAt(double seconds) const {
  return std::upper_bound(ends_.begin(), ends_.end(), seconds) - ends_.begin();
}

void HostPlanRecorder::Finish(const std::vector<double>& seconds_of, Replay* replay) {
  steps_.pop_back();  // not finished
  HostModel& plan = replay->plan;
  plan.source = "a profile";
  plan.prefetch = prefetch_;
  plan.steps = std::move(steps_);
  replay->step_numbers = numbers_;
  replay->cpu_seconds = cpu_;
  const size_t count = plan.steps.size();
  for (HostStep& step : plan.steps) {
    step.graphs = 0;
    step.runs = 0;
    step.input += input_;
    step.transfer += transfer_;
  }
  std::vector<double> totals(seconds_of.size(), 0);
  for (const auto& [program, step] : runs_) totals[program] += seconds_of[program];
  if (!totals.empty()) {
    replay->main_program = static_cast<size_t>(std::max_element(totals.begin(), totals.end()) - totals.begin());
  }
  replay->runs_per_step.assign(seconds_of.size(), 0);
  const size_t steady = SteadyFrom(plan);
  for (const auto& [program, at] : runs_) {
    if (at < 0 || at >= static_cast<int64_t>(count)) continue;
    HostStep& step = plan.steps[static_cast<size_t>(at)];
    ++step.graphs;
    if (program == replay->main_program) {
      step.runs += 1;
    } else {
      step.other_device += seconds_of[program];
    }
    if (at >= static_cast<int64_t>(steady)) {
      replay->runs_per_step[program] += 1 / static_cast<double>(count - steady);
    }
  }
  for (HostStep& step : plan.steps) {
    step.graphs = std::max<int64_t>(step.graphs, 1);
    // HostStep::execute is the time of one call.
    step.execute /= static_cast<double>(step.graphs);
  }
}

}  // namespace hlokit::tpu
