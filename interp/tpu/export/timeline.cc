// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/export/timeline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "interp/runtime/observe/trace_event_json.h"
#include "ir/core/str_cat.h"

namespace hlokit::tpu {

namespace {

class ChromeWriter {
 public:
  ChromeWriter(const ReportInput& input, TextWriter* out) : input_(input), out_(*out) {}

  void Begin(int64_t devices) {
    out_ << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
    for (int64_t d = 0; d < devices; ++d) {
      Meta("process_name", d, 0, StrCat("/device:TPU:", d, " (", input_.options.machine.name, ")"));
      for (TimelineLine line : {TimelineLine::kSteps, TimelineLine::kModules, TimelineLine::kOps,
                                TimelineLine::kAsyncOps, TimelineLine::kWaits}) {
        Meta("thread_name", d, static_cast<int>(line), ToString(line));
      }
    }
  }
  void End() { out_ << "\n]}\n"; }

  void Write(const TimelineEvent& e) {
    std::string name;
    if (e.skipped_trips > 0) {
      name = StrCat(e.skipped_trips, " more iterations");
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
    Separate();
    out_ << "{\"ph\": \"X\", \"pid\": " << e.device + 1 << ", \"tid\": " << static_cast<int64_t>(e.line)
         << ", \"name\": " << runtime::TraceString(name) << ", \"ts\": " << runtime::TraceNumber(e.start * 1e6)
         << ", \"dur\": " << runtime::TraceNumber(e.duration * 1e6);
    if (e.step != nullptr) Arguments(e);
    out_ << "}";
  }

 private:
  void Arguments(const TimelineEvent& e) {
    const Instruction i = input_.module.instruction(e.name);
    out_ << ", \"args\": {\"opcode\": " << runtime::TraceString(i.opcode_text())
         << ", \"bound_by\": " << runtime::TraceString(ToString(e.step->bound))
         << ", \"flops\": " << runtime::TraceNumber(e.step->flops)
         << ", \"hbm_bytes\": " << runtime::TraceNumber(e.step->hbm_bytes);
    if (e.step->wire_bytes > 0) out_ << ", \"interconnect_bytes\": " << runtime::TraceNumber(e.step->wire_bytes);
    if (e.step->trips != 1) out_ << ", \"iterations\": " << runtime::TraceNumber(e.step->trips);
    if (const std::string_view scope = ScopeOf(i); !scope.empty())
      out_ << ", \"tf_op\": " << runtime::TraceString(scope);
    if (const std::string source = SourceOf(i); !source.empty())
      out_ << ", \"source\": " << runtime::TraceString(source);
    out_ << "}";
  }
  void Meta(std::string_view what, int64_t device, int tid, std::string_view name) {
    Separate();
    out_ << "{\"ph\": \"M\", \"pid\": " << device + 1 << ", \"tid\": " << tid
         << ", \"name\": " << runtime::TraceString(what) << ", \"args\": {\"name\": " << runtime::TraceString(name)
         << "}}";
  }
  void Separate() {
    if (!first_) out_ << ",\n";
    first_ = false;
  }

  const ReportInput& input_;
  TextWriter& out_;
  bool first_ = true;
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

void WalkTimeline(const ReportInput& input, const KernelPlan& plan, size_t max_events,
                  const std::function<void(const TimelineEvent&)>& event, int64_t devices) {
  MultiDeviceOptions walk;
  walk.show = event;
  walk.shown = devices;
  walk.max_shown = max_events;
  SimulateDevices(input.module, plan, input.options, input.simulation, walk);
}

void WriteChromeTrace(const ReportInput& input, const KernelPlan& plan, size_t max_events, int64_t devices,
                      TextWriter* out) {
  devices = std::min<int64_t>(devices, static_cast<int64_t>(input.simulation.devices.shares.size()));
  ChromeWriter writer(input, out);
  writer.Begin(devices);
  WalkTimeline(
      input, plan, max_events, [&](const TimelineEvent& e) { writer.Write(e); }, devices);
  writer.End();
}

}  // namespace hlokit::tpu
