// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/timeline.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "runtime/observe/trace_lanes.h"
#include "simulator/export/plane_writer.h"

namespace hlokit::tpu {

namespace {

constexpr int kDigits = 15;           // significant digits of counts
constexpr int64_t kFurtherLanes = 9;  // threads of events that overlap others of their line follow it

class ChromeWriter {
 public:
  ChromeWriter(const ReportInput& input, TextWriter* out)
      : input_(input), out_(*out), json_(out, JsonLayout::kSpaced) {}

  void Add(const TimelineEvent& e) { lines_[{e.device, e.line}].push_back(e); }

  void Write(int64_t devices) {
    json_.BeginObject().Member("displayTimeUnit", "ns").Key("traceEvents").BeginArray();
    for (int64_t d = 0; d < devices; ++d) {
      Meta("process_name", d, 0, StrCat("/device:TPU:", d, " (", input_.options.machine.name, ")"));
      int64_t further = kFurtherLanes;
      for (TimelineLine line : {TimelineLine::kSteps, TimelineLine::kModules, TimelineLine::kOps,
                                TimelineLine::kAsyncOps, TimelineLine::kWaits}) {
        const std::vector<TimelineEvent>& events = lines_[{d, line}];
        std::vector<runtime::TraceSlice> slices;
        Nesting nesting;
        for (size_t k = 0; k < events.size(); ++k) {
          Nesting::Span span = {Picoseconds(events[k].start), Picoseconds(events[k].start + events[k].duration)};
          if (line == TimelineLine::kOps) span = nesting.Place(span);
          slices.push_back({runtime::NanosecondOf(span.start), runtime::NanosecondOf(span.end), k});
        }
        const size_t lanes = runtime::AssignLanes(&slices);
        std::vector<int64_t> threads(lanes, static_cast<int64_t>(line));
        for (size_t lane = 0; lane < lanes; ++lane) {
          if (lane > 0) threads[lane] = ++further;
          Meta("thread_name", d, threads[lane],
               lane == 0 ? std::string(ToString(line)) : StrCat(ToString(line), " (", lane + 1, ")"));
        }
        for (const runtime::TraceSlice& slice : slices) WriteEvent(events[slice.event], threads[slice.lane], slice);
      }
    }
    json_.EndArray("\n").EndObject();
    out_ << '\n';
  }

 private:
  void WriteEvent(const TimelineEvent& e, int64_t thread, const runtime::TraceSlice& slice) {
    std::string name;
    if (e.skipped_iterations > 0) {
      name = StrCat(e.skipped_iterations, " more iterations");
    } else if (e.line == TimelineLine::kSteps) {
      name = "step 0";
    } else if (e.line == TimelineLine::kModules) {
      name = std::string(input_.module.name());
    } else if (e.line == TimelineLine::kWaits) {
      name = "wait";
      if (e.waited_for.valid()) StrAppend(&name, " for ", input_.module.instruction(e.waited_for).name());
    } else {
      name = std::string(input_.module.instruction(e.name).name());
    }
    BeginEvent("X", e.device, thread, name);
    json_.Key("ts").Value(runtime::TraceMicroseconds(slice.start));
    json_.Key("dur").Value(runtime::TraceMicroseconds(slice.end - slice.start));
    if (e.step != nullptr) Arguments(e);
    json_.EndObject();
  }

  void Arguments(const TimelineEvent& e) {
    const Instruction i = input_.module.instruction(e.name);
    json_.Key("args").BeginObject();
    json_.Member("opcode", i.opcode_text()).Member("bound_by", ToString(e.step->bound));
    json_.Key("flops").Rounded(e.step->flops, kDigits).Key("hbm_bytes").Rounded(e.step->hbm_bytes, kDigits);
    if (e.step->wire_bytes > 0) json_.Key("interconnect_bytes").Rounded(e.step->wire_bytes, kDigits);
    if (e.step->trip_count != 1) json_.Key("iterations").Rounded(e.step->trip_count, kDigits);
    if (const std::string_view scope = ScopeOf(i); !scope.empty()) json_.Member("tf_op", scope);
    if (const std::string source = SourceOf(i); !source.empty()) json_.Member("source", source);
    json_.EndObject();
  }
  void Meta(std::string_view what, int64_t device, int64_t tid, std::string_view name) {
    BeginEvent("M", device, tid, what);
    json_.Key("args").BeginObject().Member("name", name).EndObject().EndObject();
  }
  void BeginEvent(std::string_view phase, int64_t device, int64_t tid, std::string_view name) {
    json_.Line("\n")
        .BeginObject()
        .Member("ph", phase)
        .Member("pid", device + 1)
        .Member("tid", tid)
        .Member("name", name);
  }

  const ReportInput& input_;
  TextWriter& out_;
  JsonWriter json_;
  std::map<std::pair<int64_t, TimelineLine>, std::vector<TimelineEvent>> lines_;  // by device
};

}  // namespace

std::string_view ToString(TimelineLine line) {
  switch (line) {
    case TimelineLine::kSteps:
      return "Steps";
    case TimelineLine::kModules:
      return "XLA Modules";
    case TimelineLine::kOps:
      return "XLA Ops";
    case TimelineLine::kAsyncOps:
      return "Async XLA Ops";
    case TimelineLine::kWaits:
      return "Core stalls";
  }
  return "";
}

void VisitTimeline(const ReportInput& input, const KernelPlan& plan, size_t max_events,
                   const std::function<void(const TimelineEvent&)>& event, int64_t devices) {
  MultiDeviceOptions multi_device_options;
  multi_device_options.show = event;
  multi_device_options.shown = devices;
  multi_device_options.max_shown = max_events;
  SimulateDevices(input.module, plan, input.options, input.simulation, multi_device_options);
}

void WriteChromeTrace(const ReportInput& input, const KernelPlan& plan, size_t max_events, int64_t devices,
                      TextWriter* out) {
  devices = std::min<int64_t>(devices, static_cast<int64_t>(input.simulation.devices.shares.size()));
  ChromeWriter writer(input, out);
  VisitTimeline(
      input, plan, max_events, [&](const TimelineEvent& e) { writer.Add(e); }, devices);
  writer.Write(devices);
}

}  // namespace hlokit::tpu
