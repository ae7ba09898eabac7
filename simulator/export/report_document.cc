// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/report_document.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "simulator/export/advice_json.h"
#include "simulator/export/report_timeline.h"
#include "simulator/report/ascii.h"
#include "simulator/report/breakdown.h"
#include "simulator/report/device_report.h"
#include "simulator/report/number_text.h"
#include "simulator/report/scope_time.h"

namespace hlokit::tpu {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kListedGaps = 200;
constexpr size_t kListedActivities = 5000;
constexpr size_t kListedWaits = 100;
// A run is in the steady state if its step is that of the longer one to this part, or the threads' to this.
constexpr double kSettledTolerance = 1e-3;
constexpr double kRunTolerance = 0.02;

std::string_view ToString(TimeKind kind) {
  switch (kind) {
    case TimeKind::kCompute:
      return "compute";
    case TimeKind::kMemory:
      return "memory";
    case TimeKind::kCommunication:
      return "communication";
    case TimeKind::kHost:
      return "host";
    case TimeKind::kOverhead:
      return "overhead";
  }
  return "";
}

std::string_view ToString(Track track) {
  switch (track) {
    case Track::kProgram:
      return "program";
    case Track::kLoader:
      return "loader";
    case Track::kLink:
      return "link";
    case Track::kDevice:
      return "device";
  }
  return "";
}

Json GapParts(const DeviceGap& gap) {
  Json parts = Json::array();
  for (const DeviceGap::Part& part : gap.parts) {
    // Merges neighbors of one phase and step.
    if (!parts.empty() && parts.back()["phase"] == std::string(ToString(part.phase)) &&
        parts.back()["step"] == part.step) {
      parts.back()["time_us"] = parts.back()["time_us"].get<double>() + ToMicroseconds(part.seconds);
      continue;
    }
    parts.push_back(
        {{"phase", std::string(ToString(part.phase))}, {"step", part.step}, {"time_us", ToMicroseconds(part.seconds)}});
  }
  return parts;
}

// Returns the recorded scopes on the host's timeline. Each begins with the recording of its step.
Json SpansJson(const HostModel& plan, const HostTimeline& time) {
  std::map<int64_t, double> recording;
  for (const TimelineSpan& a : time.spans) {
    if (a.track == Track::kProgram && !a.wait && a.phase == HostPhase::kTrace) recording.try_emplace(a.step, a.start);
  }
  Json spans = Json::array();
  for (size_t k = 0; k < plan.steps.size(); ++k) {
    const auto begin = recording.find(static_cast<int64_t>(k));
    for (const HostScope& scope : plan.steps[k].scopes) {
      if (begin == recording.end() || spans.size() >= kListedActivities) break;
      spans.push_back(
          {Ascii(scope.name), k, ToMicroseconds(begin->second + scope.start), ToMicroseconds(scope.duration)});
    }
  }
  return spans;
}

Json HostJson(const HostModel& plan, const HostTimeline& time) {
  Json host = Json::object();
  host["source"] = Ascii(plan.source);
  host["steps"] = time.steps;
  host["steady_from"] = time.steady_from;
  host["steady"] = HasSteadyState(plan);
  host["prefetch"] = plan.prefetch;
  host["in_flight"] = plan.in_flight;
  host["total_us"] = ToMicroseconds(time.seconds);
  Json phases = Json::array();
  for (size_t p = 0; p < kHostPhaseCount; ++p) {
    const HostPhase phase = static_cast<HostPhase>(p);
    double busy = 0;
    for (const TimelineSpan& a : time.spans) {
      if (a.track != Track::kDevice && a.phase == phase && !a.wait && static_cast<size_t>(a.step) >= time.steady_from) {
        busy += a.end - a.start;
      }
    }
    const double steps = static_cast<double>(std::max<size_t>(time.steps - time.steady_from, 1));
    if (busy == 0 && time.SteadyGap(phase) == 0) continue;
    phases.push_back({{"phase", std::string(ToString(phase))},
                      {"time_per_step_us", ToMicroseconds(busy / steps)},
                      {"device_idle_per_step_us", ToMicroseconds(time.SteadyGap(phase))}});
  }
  host["phases"] = std::move(phases);
  Json activities = Json::array();
  for (size_t a = 0; a < std::min(time.spans.size(), kListedActivities); ++a) {
    const TimelineSpan& activity = time.spans[a];
    activities.push_back(
        {std::string(ToString(activity.track)),
         activity.track == Track::kDevice ? std::string("step") : std::string(ToString(activity.phase)), activity.step,
         ToMicroseconds(activity.start), ToMicroseconds(activity.end - activity.start), activity.wait ? 1 : 0});
  }
  host["spans"] = SpansJson(plan, time);
  host["span_columns"] = {"scope", "step", "start_us", "time_us"};
  host["activity_columns"] = {"lane", "phase", "step", "start_us", "time_us", "is_wait"};
  host["activities"] = std::move(activities);
  Json scopes = Json::array();
  std::map<std::string, std::pair<double, int64_t>> by_name;
  for (size_t k = time.steady_from; k < plan.steps.size(); ++k) {
    for (const HostScope& scope : plan.steps[k].scopes) {
      by_name[scope.name].first += scope.duration;
      ++by_name[scope.name].second;
    }
  }
  const double steps = static_cast<double>(std::max<size_t>(time.steps - time.steady_from, 1));
  for (const auto& [name, sum] : by_name) {
    scopes.push_back(
        {{"scope", Ascii(name)}, {"time_per_step_us", ToMicroseconds(sum.first / steps)}, {"runs", sum.second}});
  }
  host["scopes"] = std::move(scopes);
  return host;
}

Json GapsJson(const HostTimeline& time) {
  Json list = Json::array();
  for (size_t g = 0; g < std::min(time.gaps.size(), kListedGaps); ++g) {
    const DeviceGap& gap = time.gaps[g];
    list.push_back({{"start_us", ToMicroseconds(gap.start)},
                    {"time_us", ToMicroseconds(gap.end - gap.start)},
                    {"before_step", gap.before_step},
                    {"filled_by", std::string(ToString(gap.Longest()))},
                    {"parts", GapParts(gap)}});
  }
  Json gaps = Json::object();
  gaps["count"] = time.gaps.size();
  double sum = 0;
  for (const DeviceGap& gap : time.gaps) sum += gap.end - gap.start;
  gaps["time_us"] = ToMicroseconds(sum);
  gaps["list"] = std::move(list);
  return gaps;
}

Json BreakdownJson(const std::vector<ReportGraph>& graphs, const HostTimeline& time) {
  std::vector<TimeShare> shares;
  for (const ReportGraph& graph : graphs) {
    for (TimeShare share : DeviceBreakdown(*graph.input, *graph.plan)) {
      share.seconds *= graph.runs_per_step;
      const auto same =
          std::find_if(shares.begin(), shares.end(), [&](const TimeShare& s) { return s.name == share.name; });
      if (same == shares.end()) {
        if (share.seconds > 0) shares.push_back(std::move(share));
      } else {
        same->seconds += share.seconds;
      }
    }
  }
  if (graphs.size() > 1) {
    std::stable_sort(shares.begin(), shares.end(),
                     [](const TimeShare& a, const TimeShare& b) { return a.seconds > b.seconds; });
  }
  Json parts = Json::array();
  for (const TimeShare& share : shares) {
    parts.push_back({{"name", Ascii(share.name)},
                     {"kind", std::string(ToString(share.kind))},
                     {"time_us", ToMicroseconds(share.seconds)}});
  }
  for (size_t p = 0; p < kHostPhaseCount; ++p) {
    const double seconds = time.SteadyGap(static_cast<HostPhase>(p));
    if (seconds <= 0) continue;
    parts.push_back({{"name", StrCat("host: ", ToString(static_cast<HostPhase>(p)))},
                     {"kind", "idle"},
                     {"time_us", ToMicroseconds(seconds)}});
  }
  return parts;
}

Json WaitsJson(const std::vector<ReportGraph>& graphs) {
  Json list = Json::array();
  for (const ReportGraph& graph : graphs) {
    if (graph.runs_per_step <= 0) continue;
    const Module& module = graph.input->module;
    const std::vector<CoreStall> waits = CoreStalls(*graph.input, *graph.plan);
    for (size_t w = 0; w < std::min(waits.size(), kListedWaits); ++w) {
      const CoreStall& wait = waits[w];
      Json row = {{"time_us", ToMicroseconds(wait.seconds * graph.runs_per_step)},
                  {"runs", wait.runs * graph.runs_per_step}};
      row["stalled"] = wait.waiting.valid() ? Ascii(module.instruction(wait.waiting).name()) : "end of computation";
      row["waiting_for"] = wait.waited_for.valid() ? Ascii(module.instruction(wait.waited_for).name()) : "links";
      if (wait.waited_for.valid()) {
        const Instruction i = module.instruction(wait.waited_for);
        row["opcode"] = Ascii(i.opcode_text());
        row["scope"] = Ascii(ScopeOf(i));
        row["source"] = Ascii(SourceOf(i));
      }
      list.push_back(std::move(row));
    }
  }
  std::stable_sort(list.begin(), list.end(), [](const Json& a, const Json& b) { return a["time_us"] > b["time_us"]; });
  return list;
}

// Returns the rows of all graphs, named by `key`, longest first.
Json AttributedJson(const std::vector<ReportGraph>& graphs, decltype(&ScopeTimes) times, const char* key) {
  std::map<std::string, AttributedTime> by_name;
  for (const ReportGraph& graph : graphs) {
    for (const AttributedTime& scope : times(*graph.input, *graph.plan)) {
      AttributedTime& sum = by_name[scope.name];
      sum.seconds += scope.seconds * graph.runs_per_step;
      sum.concurrent_seconds += scope.concurrent_seconds * graph.runs_per_step;
      sum.kernels += scope.kernels;
      sum.mixed_kernel_seconds += scope.mixed_kernel_seconds * graph.runs_per_step;
      sum.flops += scope.flops * graph.runs_per_step;
      sum.hbm_bytes += scope.hbm_bytes * graph.runs_per_step;
    }
  }
  Json scopes = Json::array();
  for (const auto& [name, scope] : by_name) {
    scopes.push_back({{key, Ascii(name)},
                      {"time_us", ToMicroseconds(scope.seconds)},
                      {"concurrent_us", ToMicroseconds(scope.concurrent_seconds)},
                      {"kernels", scope.kernels},
                      {"in_mixed_kernels_us", ToMicroseconds(scope.mixed_kernel_seconds)},
                      {"flops", scope.flops},
                      {"hbm_bytes", scope.hbm_bytes}});
  }
  std::stable_sort(scopes.begin(), scopes.end(),
                   [](const Json& a, const Json& b) { return a["time_us"] > b["time_us"]; });
  return scopes;
}

Json DeviceDescriptionJson(const DeviceDescription& machine) {
  Json rows = Json::array();
  const absl::Span<const DeviceDescriptionField> fields = DeviceDescriptionFields();
  for (size_t f = 0; f < fields.size(); ++f) {
    const std::string source = f < machine.sources.size() ? machine.sources[f] : std::string();
    rows.push_back({{"parameter", std::string(fields[f].name)},
                    {"value", machine.*fields[f].member},
                    {"description", std::string(fields[f].meaning)},
                    {"source", Ascii(source)}});
  }
  return rows;
}

// Returns what a reader of the step time has to know, as sentences.
Json NotesJson(const ReportInput& input, const HostModel& host, const HostTimeline& time, bool settled) {
  Json notes = Json::array();
  const std::string idle = IdleNote(DeviceUseOf(input.options, input.simulation));
  if (!idle.empty()) notes.push_back(idle);
  if (!HasSteadyState(host)) notes.push_back(std::string(kNoSteadyState));
  if (!settled) {
    notes.push_back(StrCat("The last ", time.steps - time.steady_from,
                           " steps of the run took batches that the loader had made before. The step time is that of a "
                           "longer run, in which the loader is no longer ahead."));
  }
  return notes;
}

// A page shows so many remarks: the first of them, those on what was missed before others.
void LimitRemarks(Json* report) {
  constexpr size_t kMaxRemarks = 4000;
  const auto remarks = report->find("remarks");
  if (remarks == report->end() || remarks->size() <= kMaxRemarks) return;
  Json kept = Json::array();
  for (const bool missed : {true, false}) {
    for (const Json& remark : *remarks) {
      if (kept.size() < kMaxRemarks && (remark["kind"] == "missed") == missed) kept.push_back(remark);
    }
  }
  (*report)["remarks_left_out"] = remarks->size() - kept.size();
  (*report)["remarks"] = std::move(kept);
}

}  // namespace

std::string ReportDocument(const ReportInput& input, const KernelPlan& plan, const HostModel& host,
                           const ReportDocumentOptions& options) {
  const HostTimeline time = SimulateHost(host, input.simulation.device_seconds);
  const DeviceDescription& machine = input.options.machine;
  Json json = Json::object();
  json["format"] = "hlokit report 3";
  json["title"] = Ascii(options.title.empty() ? std::string(input.module.name()) : options.title);
  json["command"] = Ascii(options.command);
  json["tool"] = options.tool;
  json["flags"] = Json::array();
  for (const std::string& flag : options.flags) json["flags"].push_back(flag);
  Json base = Json::parse(ReportJson(input));
  LimitRemarks(&base);
  for (const auto& item : base.items()) json[item.key()] = item.value();
  const Module& source = input.source != nullptr ? *input.source : input.module;
  std::vector<ReportGraph> graphs = {{&input, &plan, 1, EstimateCompileTime(source, plan), 0}};
  std::vector<StepExecution> step = {{&input, &plan, 0}};
  if (options.run != nullptr) {
    graphs = options.run->graphs;
    if (!options.run->step.empty()) step = options.run->step;
    MergeGraphs(graphs, input, &json);
  }
  json["graphs"] = GraphsJson(graphs);
  // Uses the given host model rather than the calls alone.
  json["step_time_us"] = ToMicroseconds(time.step_seconds);
  double device_seconds = 0, core_busy = 0, flops = 0, hbm_bytes = 0;
  ResourceTimes busy{};
  for (const ReportGraph& graph : graphs) {
    const Simulation& own = graph.input->simulation;
    device_seconds += own.device_seconds * graph.runs_per_step;
    core_busy += own.core_busy * graph.runs_per_step;
    flops += own.flops * graph.runs_per_step;
    hbm_bytes += own.hbm_bytes * graph.runs_per_step;
    AddTimes(own.busy, graph.runs_per_step, &busy);
  }
  if (time.step_seconds > device_seconds * 1.001) json["bound_by"] = std::string(tpu::ToString(Resource::kHost));
  Json& use = json["utilization"];
  use["duty_cycle"] = Share(core_busy, time.step_seconds);
  // As profilers define it: the part of the step in which the device executes a program, stalled or not.
  use["duty_cycle_executing"] = Share(device_seconds, time.step_seconds);
  use["mxu_busy"] = Share(busy[static_cast<size_t>(Resource::kMxu)], time.step_seconds);
  use["hbm_busy"] = Share(busy[static_cast<size_t>(Resource::kHbm)], time.step_seconds);
  use["ici_busy"] = Share(busy[static_cast<size_t>(Resource::kIci)], time.step_seconds);
  use["flops_of_peak"] = Share(flops / machine.PeakFlops(), time.step_seconds);
  use["hbm_bandwidth_of_peak"] = Share(hbm_bytes / machine.HbmRate(), time.step_seconds);
  json["peaks"]["ici_bytes_per_second_one_way"] = machine.ici_rate;
  json["peaks"]["vmem_bytes_per_second"] = machine.vmem_rate;
  json["breakdown"] = BreakdownJson(graphs, time);
  Json advice = AdviceJson(input, host, options.tool, options.flags);
  json["recommendations"] = std::move(advice["recommendations"]);
  json["gaps"] = GapsJson(time);
  json["host"] = HostJson(host, time);
  if (options.run != nullptr) {
    json["host"]["step_numbers"] = options.run->step_numbers;
    json["host"]["thread_columns"] = {"name", "start_us", "time_us", "step", "is_user", "source", "phase"};
    json["host"]["threads"] = ThreadsJson(*options.run);
  }
  json["core_stalls"] = WaitsJson(graphs);
  ReportTimelines timelines = BuildReportTimelines(input, plan, step, options);
  json["timeline"] = std::move(timelines.devices);
  json["scopes"] = AttributedJson(graphs, &ScopeTimes, "scope");
  json["sources"] = AttributedJson(graphs, &SourceTimes, "source");
  json["memory"]["timeline_columns"] = {"time_us", "bytes", "operation"};
  json["memory"]["timeline"] = std::move(timelines.memory);
  json["sensitivity"] = std::move(advice["sensitivity"]);
  json["other_targets"] = std::move(advice["other_targets"]);
  json["target"] = DeviceDescriptionJson(machine);
  // The last steps of a short run may take batches made before, and say nothing about the steady state.
  const double replayed = options.run != nullptr ? options.run->step_seconds : 0;
  const double run = replayed > 0 ? replayed : time.run_step_seconds;
  const bool settled = time.run_step_seconds >= time.step_seconds * (1 - kSettledTolerance) ||
                       std::abs(run / time.step_seconds - 1) < kRunTolerance;
  if (!settled) json["host"]["run_step_us"] = ToMicroseconds(run);
  json["notes"] = NotesJson(input, host, time, settled);
  CheckParts(graphs, settled ? replayed : 0, &json);
  return json.dump() + "\n";
}

}  // namespace hlokit::tpu
