// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/export/timeline.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"

namespace hlokit::tpu {

namespace {

// Significant digits of times and counts: they keep a picosecond in an hour.
constexpr int kDigits = 15;

class ChromeWriter {
 public:
  ChromeWriter(const ReportInput& input, TextWriter* out)
      : input_(input), out_(*out), json_(out, JsonLayout::kSpaced) {}

  void Begin(int64_t devices) {
    json_.BeginObject().Member("displayTimeUnit", "ns").Key("traceEvents").BeginArray();
    for (int64_t d = 0; d < devices; ++d) {
      Meta("process_name", d, 0, StrCat("/device:TPU:", d, " (", input_.options.machine.name, ")"));
      for (TimelineLine line : {TimelineLine::kSteps, TimelineLine::kModules, TimelineLine::kOps,
                                TimelineLine::kAsyncOps, TimelineLine::kWaits}) {
        Meta("thread_name", d, static_cast<int>(line), ToString(line));
      }
    }
  }
  void End() {
    json_.EndArray("\n").EndObject();
    out_ << '\n';
  }

  void Write(const TimelineEvent& e) {
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
    BeginEvent("X", e.device, static_cast<int>(e.line), name);
    json_.Key("ts").Rounded(e.start * 1e6, kDigits).Key("dur").Rounded(e.duration * 1e6, kDigits);
    if (e.step != nullptr) Arguments(e);
    json_.EndObject();
  }

 private:
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
  void Meta(std::string_view what, int64_t device, int tid, std::string_view name) {
    BeginEvent("M", device, tid, what);
    json_.Key("args").BeginObject().Member("name", name).EndObject().EndObject();
  }
  void BeginEvent(std::string_view phase, int64_t device, int tid, std::string_view name) {
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
  writer.Begin(devices);
  VisitTimeline(
      input, plan, max_events, [&](const TimelineEvent& e) { writer.Write(e); }, devices);
  writer.End();
}

}  // namespace hlokit::tpu
