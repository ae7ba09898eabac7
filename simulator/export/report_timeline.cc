// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/report_timeline.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "simulator/export/timeline.h"
#include "simulator/export/utilization.h"
#include "simulator/report/ascii.h"
#include "simulator/report/number_text.h"

namespace hlokit::tpu {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMemoryPoints = 1500;
constexpr size_t kDepths = 4;             // nesting depth of loops and calls on the timeline
constexpr size_t kMinDeviceEvents = 250;  // shown of one device
constexpr size_t kShownDevices = 64;
constexpr size_t kUtilizationPoints = 400;  // of a step

bool IsOp(const TimelineEvent& e) { return e.line == TimelineLine::kOps; }

// Orders events by start, those that enclose others first.
void SortByStart(std::vector<TimelineEvent>* events) {
  std::stable_sort(events->begin(), events->end(), [](const TimelineEvent& a, const TimelineEvent& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
}

// Merges events of one line and depth that are too short to be visible.
class DeviceRows {
 public:
  DeviceRows(const ReportInput& input, const KernelPlan& plan, double whole, size_t shown)
      : input_(input), plan_(plan), least_(whole / static_cast<double>(std::max<size_t>(shown, 1))) {}

  void Add(const TimelineEvent& e) {
    const size_t line = static_cast<size_t>(e.line);
    // Loops and calls enclose the events of their bodies.
    std::vector<double>& open = open_[line];
    while (!open.empty() && e.start >= open.back() - 1e-15) open.pop_back();
    const size_t depth = IsOp(e) ? open.size() : 0;
    if (IsOp(e)) open.push_back(e.start + e.duration);
    if (depth >= kDepths) return;
    Bucket& bucket = buckets_[{line, depth}];
    if (bucket.count > 0 && e.start + e.duration - bucket.start > least_) Flush(line, depth, &bucket);
    if (bucket.count == 0) bucket.start = e.start;
    ++bucket.count;
    bucket.end = std::max(bucket.end, e.start + e.duration);
    if (e.duration >= bucket.longest) {
      bucket.longest = e.duration;
      bucket.event = e;
    }
    if (e.duration > least_) Flush(line, depth, &bucket);
  }

  Json Take() {
    for (auto& [place, bucket] : buckets_) {
      if (bucket.count > 0) Flush(place.first, place.second, &bucket);
    }
    return std::move(rows_);
  }

 private:
  struct Bucket {
    double start = 0;
    double end = 0;
    double longest = -1;
    int64_t count = 0;
    TimelineEvent event;
  };

  std::string Category(const TimelineEvent& e) const {
    if (e.step == nullptr || !e.name.valid()) return "";
    const Instruction i = input_.module.instruction(e.name);
    const int64_t at = plan_.PlanOf(i.parent().id());
    const uint32_t s = plan_.StepOf(e.name);
    if (at < 0 || s == ComputationPlan::kNoStep) return "";
    ScheduleUnit unit = plan_.computations()[at].steps[s];
    // The core's part of a fusion with a collective.
    if (e.line == TimelineLine::kOps && unit.kind == ScheduleUnitKind::kCollective) {
      unit.kind = ScheduleUnitKind::kKernel;
    }
    return std::string(CategoryOf(input_.module, unit));
  }

  void Flush(size_t line, size_t depth, Bucket* bucket) {
    const TimelineEvent& e = bucket->event;
    std::string name;
    if (e.skipped_iterations > 0) {
      name = StrCat(e.skipped_iterations, " more iterations");
    } else if (e.line == TimelineLine::kWaits) {
      name = "wait";
      if (e.waited_for.valid()) StrAppend(&name, " for ", input_.module.instruction(e.waited_for).name());
      if (e.slowest >= 0) StrAppend(&name, " and device ", e.slowest);
    } else if (e.name.valid()) {
      name = std::string(input_.module.instruction(e.name).name());
    }
    std::string bound;
    if (e.step != nullptr) bound = std::string(tpu::ToString(e.step->bound));
    rows_.push_back({line - static_cast<size_t>(TimelineLine::kOps), depth, ToMicroseconds(bucket->start),
                     ToMicroseconds(bucket->end - bucket->start), Ascii(name), bound, bucket->count, Category(e)});
    *bucket = Bucket();
  }

  const ReportInput& input_;
  const KernelPlan& plan_;
  const double least_;
  std::map<size_t, std::vector<double>> open_;
  std::map<std::pair<size_t, size_t>, Bucket> buckets_;
  Json rows_ = Json::array();
};

// Live bytes over one execution, also inside loops and calls.
class MemoryCurve {
 public:
  MemoryCurve(const ReportInput& input, const KernelPlan& plan) : input_(input), plan_(plan) {
    entry_ = plan.PlanOf(input.module.entry().id());
    Point(0, input.memory.parameter_bytes, InstructionId());
  }

  void Add(const TimelineEvent& e) {
    while (!open_.empty() && e.start >= open_.back().end - 1e-15) open_.pop_back();
    if (!e.name.valid()) return;
    const int64_t at = plan_.PlanOf(input_.module.instruction(e.name).parent().id());
    const uint32_t s = plan_.StepOf(e.name);
    if (at < 0 || s == ComputationPlan::kNoStep) return;
    const bool entry = at == entry_;
    const MemoryPlan& memory = input_.memory;
    const std::vector<OpMemory>& ops = entry ? memory.ops : memory.callees[at].ops;
    const std::vector<int64_t>& timeline = entry ? memory.timeline : memory.callees[at].timeline;
    if (s >= ops.size()) return;
    const int64_t base = entry || open_.empty() ? 0 : open_.back().base;
    const OpMemory& op = ops[s];
    const int64_t callees = SaturatingAdd(op.allocation, -op.self);
    const int64_t during = SaturatingAdd(base, timeline[s]);
    const ScheduleUnitKind kind = plan_.computations()[at].steps[s].kind;
    const bool calls = kind == ScheduleUnitKind::kLoop || kind == ScheduleUnitKind::kCall;
    // The steps of the callees show their own bytes, unless they are not among the events.
    const bool skipped = e.skipped_iterations > 0;
    Point(e.start, skipped || !calls ? during : during - callees, e.name);
    if (calls && !skipped && IsOp(e)) open_.push_back({e.start + e.duration, during - callees});
    // Bytes after the step: those during it, less what its callees and what dies with it take.
    Point(e.start + e.duration, during - op.allocation + op.increase, e.name);
  }

  Json Take() {
    std::stable_sort(points_.begin(), points_.end(),
                     [](const Sample& a, const Sample& b) { return a.seconds < b.seconds; });
    Point(std::max(input_.simulation.device_seconds, points_.back().seconds),
          SaturatingAdd(input_.memory.parameter_bytes, input_.memory.result_bytes), InstructionId());
    Json json = Json::array();
    const size_t bucket = std::max<size_t>(1, (points_.size() + kMemoryPoints - 1) / kMemoryPoints);
    for (size_t first = 0; first < points_.size(); first += bucket) {
      size_t most = first;
      for (size_t k = first; k < std::min(points_.size(), first + bucket); ++k) {
        if (points_[k].bytes > points_[most].bytes) most = k;
      }
      // The curve ends with the step.
      if (first + bucket >= points_.size() && bucket > 1) json.push_back(Row(points_[most]));
      json.push_back(Row(first + bucket >= points_.size() ? points_.back() : points_[most]));
    }
    return json;
  }

 private:
  struct Sample {
    double seconds = 0;
    int64_t bytes = 0;
    InstructionId name;
  };
  struct Open {
    double end = 0;
    int64_t base = 0;
  };

  void Point(double seconds, int64_t bytes, InstructionId name) { points_.push_back({seconds, bytes, name}); }
  Json Row(const Sample& point) const {
    const std::string name = point.name.valid() ? Ascii(input_.module.instruction(point.name).name()) : std::string();
    return {ToMicroseconds(point.seconds), point.bytes, name};
  }

  const ReportInput& input_;
  const KernelPlan& plan_;
  int64_t entry_ = -1;
  std::vector<Open> open_;
  std::vector<Sample> points_;
};

// Returns means over equal parts of the step, by counter.
Json UtilizationJson(const std::vector<Utilization::Values>& means, double whole) {
  const double width = whole / static_cast<double>(means.size());
  Json columns = {"start_us"};
  for (size_t c = 0; c < kUtilizationCounters; ++c) {
    columns.push_back(std::string(ToString(static_cast<UtilizationCounter>(c))));
  }
  Json rows = Json::array();
  for (size_t k = 0; k < means.size(); ++k) {
    Json row = {ToMicroseconds(static_cast<double>(k) * width)};
    for (double value : means[k]) row.push_back(static_cast<double>(static_cast<int64_t>(value * 1e4 + 0.5)) / 1e4);
    rows.push_back(std::move(row));
  }
  return {{"columns", std::move(columns)}, {"width_us", ToMicroseconds(width)}, {"rows", std::move(rows)}};
}

}  // namespace

ReportTimelines BuildReportTimelines(const ReportInput& input, const KernelPlan& plan,
                                     const std::vector<StepExecution>& step, const ReportDocumentOptions& options) {
  const DeviceTimelines& all = input.simulation.devices;
  size_t count = 1;
  double whole = 0;
  for (const StepExecution& e : step) {
    count = std::max(count, e.input->simulation.devices.shares.size());
    whole =
        std::max(whole, e.start + std::max(e.input->simulation.devices.seconds, e.input->simulation.device_seconds));
  }
  count = std::min(count, kShownDevices);
  const std::vector<int64_t> stragglers = StragglersOf(all);
  const size_t rows = std::max(options.shown_events / count, kMinDeviceEvents);
  std::vector<Json> events(count, Json::array());
  std::vector<Utilization::Values> means(kUtilizationPoints);
  MemoryCurve curve(input, plan);
  bool curved = false;
  for (const StepExecution& e : step) {
    std::vector<std::vector<TimelineEvent>> own(count);
    VisitTimeline(
        *e.input, *e.plan, options.max_events / (count * step.size()),
        [&](const TimelineEvent& event) {
          if (event.line != TimelineLine::kOps && event.line != TimelineLine::kAsyncOps &&
              event.line != TimelineLine::kWaits) {
            return;
          }
          if (event.device >= 0 && event.device < static_cast<int64_t>(count)) own[event.device].push_back(event);
        },
        static_cast<int64_t>(count));
    for (size_t d = 0; d < count; ++d) {
      // Homogeneous devices share the events of the first.
      SortByStart(&own[d]);
      if (d == 0 && e.input == &input && !curved) {
        curved = true;
        for (const TimelineEvent& event : own[d]) {
          if (event.line != TimelineLine::kWaits) curve.Add(event);
        }
      }
      DeviceRows lines(*e.input, *e.plan, whole, rows);
      Utilization utilization(*e.input);
      for (TimelineEvent event : own[d]) {
        event.start += e.start;
        lines.Add(event);
        if (d == 0) utilization.Add(event);
      }
      for (Json& row : lines.Take()) events[d].push_back(std::move(row));
      if (d > 0) continue;
      const std::vector<Utilization::Values> more = utilization.Means(whole, kUtilizationPoints);
      for (size_t k = 0; k < means.size(); ++k) {
        for (size_t c = 0; c < kUtilizationCounters; ++c) means[k][c] = std::min(1.0, means[k][c] + more[k][c]);
      }
    }
  }
  Json devices = Json::array();
  for (size_t d = 0; d < count; ++d) {
    const bool slow = std::find(stragglers.begin(), stragglers.end(), static_cast<int64_t>(d)) != stragglers.end();
    devices.push_back({{"device", d}, {"straggler", slow}, {"events", std::move(events[d])}});
  }
  ReportTimelines result;
  result.devices = Json::object();
  result.devices["lines"] = {std::string(ToString(TimelineLine::kOps)), std::string(ToString(TimelineLine::kAsyncOps)),
                             std::string(ToString(TimelineLine::kWaits))};
  result.devices["columns"] = {"line", "depth", "start_us", "time_us", "name", "bound_by", "events", "category"};
  result.devices["count"] = all.devices;
  result.devices["devices"] = std::move(devices);
  result.devices["utilization"] = UtilizationJson(means, whole);
  result.memory = curve.Take();
  return result;
}

}  // namespace hlokit::tpu
