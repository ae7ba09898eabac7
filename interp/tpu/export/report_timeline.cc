// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/export/report_timeline.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "interp/tpu/export/timeline.h"
#include "interp/tpu/export/utilization.h"
#include "interp/tpu/report/ascii.h"
#include "interp/tpu/report/number_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::tpu {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kDepths = 4;               // nesting depth of loops and calls on the timeline
constexpr size_t kUtilizationPoints = 400;  // of a step
constexpr int64_t kTimelineDevices = 8;     // of devices that differ

// Merges events of one line and depth that are too short to be visible.
class TimelineLines {
 public:
  TimelineLines(double whole, size_t shown) : least_(whole / static_cast<double>(std::max<size_t>(shown, 1))) {}

  // Adds an event of a program that began at `offset` seconds of the step.
  void Add(const ReportInput& input, double offset, TimelineEvent e) {
    input_ = &input;
    e.start += offset;
    if (e.line != TimelineLine::kOps && e.line != TimelineLine::kAsyncOps && e.line != TimelineLine::kWaits) return;
    const size_t line = static_cast<size_t>(e.line);
    // Loops and calls enclose the events of their bodies.
    std::vector<double>& open = open_[line];
    while (!open.empty() && e.start >= open.back() - 1e-15) open.pop_back();
    const size_t depth = e.line == TimelineLine::kOps ? open.size() : 0;
    if (e.line == TimelineLine::kOps) open.push_back(e.start + e.duration);
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

  // Adds the rest of the merged events of a program.
  void EndProgram() {
    for (auto& [place, bucket] : buckets_) {
      if (bucket.count > 0) Flush(place.first, place.second, &bucket);
    }
    open_.clear();
  }
  Json Take() { return std::move(rows_); }

 private:
  struct Bucket {
    double start = 0;
    double end = 0;
    double longest = -1;
    int64_t count = 0;
    TimelineEvent event;
  };

  void Flush(size_t line, size_t depth, Bucket* bucket) {
    const TimelineEvent& e = bucket->event;
    std::string name;
    if (e.skipped_iterations > 0) {
      name = StrCat(e.skipped_iterations, " more iterations");
    } else if (e.line == TimelineLine::kWaits) {
      name = "wait";
      if (e.waited_for.valid()) StrAppend(&name, " for ", input_->module.instruction(e.waited_for).name());
      if (e.slowest >= 0) StrAppend(&name, ", for device ", e.slowest);
    } else if (e.name.valid()) {
      name = std::string(input_->module.instruction(e.name).name());
    }
    std::string bound;
    if (e.step != nullptr) bound = std::string(tpu::ToString(e.step->bound));
    rows_.push_back({line - static_cast<size_t>(TimelineLine::kOps), depth, ToMicroseconds(bucket->start),
                     ToMicroseconds(bucket->end - bucket->start), Ascii(name), bound, bucket->count});
    *bucket = Bucket();
  }

  const ReportInput* input_ = nullptr;  // of the last event
  const double least_;
  std::map<size_t, std::vector<double>> open_;
  std::map<std::pair<size_t, size_t>, Bucket> buckets_;
  Json rows_ = Json::array();
};

}  // namespace

Json StepTimelineJson(const std::vector<StepExecution>& executions, const StepTimelineOptions& options) {
  double whole = 0;
  int64_t devices = 1;
  for (const StepExecution& e : executions) {
    whole = std::max(whole, e.start + e.input->simulation.device_seconds);
    devices = std::max(devices, static_cast<int64_t>(e.input->simulation.devices.shares.size()));
  }
  devices = std::min(devices, kTimelineDevices);
  std::vector<TimelineLines> lines(static_cast<size_t>(devices), TimelineLines(whole, options.shown_events));
  std::vector<Utilization::Values> means(kUtilizationPoints);
  const double width = whole / static_cast<double>(kUtilizationPoints);
  for (const StepExecution& e : executions) {
    Utilization utilization(*e.input);
    VisitTimeline(
        *e.input, *e.plan, options.max_events,
        [&](const TimelineEvent& event) {
          lines[static_cast<size_t>(event.device)].Add(*e.input, e.start, event);
          TimelineEvent shifted = event;
          shifted.start += e.start;
          if (event.device == 0) utilization.Add(shifted);
        },
        devices);
    for (TimelineLines& device : lines) device.EndProgram();
    const std::vector<Utilization::Values> more = utilization.Means(whole, kUtilizationPoints);
    for (size_t k = 0; k < means.size(); ++k) {
      for (size_t c = 0; c < kUtilizationCounters; ++c) means[k][c] = std::min(1.0, means[k][c] + more[k][c]);
    }
  }
  Json timeline = Json::object();
  timeline["lines"] = {std::string(ToString(TimelineLine::kOps)), std::string(ToString(TimelineLine::kAsyncOps)),
                       std::string(ToString(TimelineLine::kWaits))};
  timeline["columns"] = {"line", "depth", "start_us", "time_us", "name", "bound_by", "events"};
  timeline["events"] = lines[0].Take();
  if (devices > 1) {
    Json others = Json::array();
    for (int64_t d = 1; d < devices; ++d) {
      others.push_back({{"device", d}, {"events", lines[static_cast<size_t>(d)].Take()}});
    }
    timeline["other_devices"] = std::move(others);
  }
  Json utilization = Json::object();
  Json columns = {"start_us"};
  for (size_t c = 0; c < kUtilizationCounters; ++c) {
    columns.push_back(std::string(ToString(static_cast<UtilizationCounter>(c))));
  }
  utilization["columns"] = std::move(columns);
  utilization["width_us"] = ToMicroseconds(width);
  Json rows = Json::array();
  for (size_t k = 0; k < means.size(); ++k) {
    Json row = {ToMicroseconds(static_cast<double>(k) * width)};
    for (double value : means[k]) row.push_back(static_cast<double>(static_cast<int64_t>(value * 1e4 + 0.5)) / 1e4);
    rows.push_back(std::move(row));
  }
  utilization["rows"] = std::move(rows);
  timeline["utilization"] = std::move(utilization);
  return timeline;
}

}  // namespace hlokit::tpu
