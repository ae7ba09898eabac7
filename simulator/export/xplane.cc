// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/xplane.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "runtime/observe/xplane.pb.h"
#include "simulator/export/hlo_proto.h"
#include "simulator/export/plane_writer.h"
#include "simulator/export/span_names.h"
#include "simulator/export/utilization.h"
#include "simulator/export/xplane_memory.h"
#include "simulator/report/ascii.h"

namespace hlokit::tpu {

namespace {

namespace proto = ::tensorflow::profiler;

// Metadata ids: steps, then for each program its module, the rest of a loop, its instructions.
constexpr int64_t kFirstStep = 1;
constexpr int64_t kFirstProgram = int64_t{1} << 33;
constexpr int64_t kFirstCounter = kFirstProgram - kUtilizationCounters - 1;
constexpr int64_t kCounterLine = 20;
// Ids of planes other than devices; XProf uses 1 to 500 for devices.
constexpr int64_t kHostPlane = 1001;
constexpr int64_t kMetadataPlane = 1002;
constexpr int64_t kTaskPlane = 1003;
// Context types of producers and consumers, as tsl's ContextType numbers them.
constexpr int64_t kStepContext = 0;          // a step's root, and the calls of its step
constexpr int64_t kCallContext = 5;          // a call, and the runtime's span of the execution
constexpr int64_t kExecuteContext = 7;       // that span, and the module on the device
constexpr int64_t kLibraryCallContext = 14;  // a framework's call of a function of the plugin, and what carries it out
// XProf counts an event to all steps that it touches, so steps end before the next begins.
constexpr int64_t kStepGap = 1;  // picoseconds

int64_t ProgramId(size_t program) { return static_cast<int64_t>(program) + 1; }

std::string DeviceType(const std::string& machine) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"v5e", "TPU v5 Lite"}, {"v6e", "TPU v6 Lite"}, {"v5p", "TPU v5"}};
  for (const auto& [name, type] : kNames) {
    if (machine == name) return std::string(type);
  }
  return StrCat("TPU ", machine);
}

// Returns XProf's name of a category.
std::string ProfilerCategory(std::string_view category) {
  if (category == "matmul" || category == "convolution") return "convolution fusion";
  if (category == "elementwise" || category == "reduction") return "loop fusion";
  if (category == "data movement") return "data formatting";
  if (category == "async wait") return "async-done";
  return std::string(category);
}

// Writes the planes of the devices; the events of a program are computed once.
class DevicePlanes {
 public:
  DevicePlanes(const ProfileSpace& space, proto::XSpace* out) : space_(space), out_(*out) {
    for (const ProfileProgram& program : space.programs) {
      std::map<uint32_t, const OpRow*> rows;
      for (const OpRow& row : program.input->simulation.rows) rows.insert({row.name.value, &row});
      rows_.push_back(std::move(rows));
      std::map<int64_t, std::vector<TimelineEvent>> events;
      VisitTimeline(
          *program.input, *program.plan, space.max_events,
          [&](const TimelineEvent& e) { events[e.device].push_back(e); }, space.devices);
      events_.push_back(std::move(events));
    }
  }

  void Write() {
    if (space_.programs.empty()) return;
    for (int64_t device = 0; device < space_.devices; ++device) WriteDevice(device);
  }

 private:
  void WriteDevice(int64_t device) {
    PlaneWriter writer(&out_, device + 1, StrCat("/device:TPU:", device));
    WritePeaks(device, &writer);
    nesting_ = Nesting();
    // Lines are stored in a growing vector: refer to them by index.
    for (TimelineLine line :
         {TimelineLine::kSteps, TimelineLine::kModules, TimelineLine::kOps, TimelineLine::kAsyncOps}) {
      writer.Line(static_cast<int64_t>(line), ToString(line))->set_timestamp_ns(space_.line_start_ns());
    }
    std::vector<size_t> runs;
    for (size_t run = 0; run < space_.runs.size(); ++run) {
      if (space_.runs[run].device < 0 || space_.runs[run].device == device) runs.push_back(run);
    }
    for (size_t k = 0; k < runs.size(); ++k) {
      limit_ = k + 1 < runs.size() ? Picoseconds(space_.runs[runs[k + 1]].start) - kStepGap : INT64_MAX;
      WriteStep(space_.runs[runs[k]], &writer);
      const std::map<int64_t, std::vector<TimelineEvent>>& events = events_[space_.runs[runs[k]].program];
      // Homogeneous devices share the events of the first.
      auto found = events.find(device);
      if (found == events.end()) found = events.find(0);
      if (found == events.end()) continue;
      for (const TimelineEvent& e : found->second) WriteEvent(e, runs[k], &writer);
    }
    WriteCounters(device, runs, &writer);
  }

  // Writes the step of an execution, until the next execution begins. XProf merges those of one step.
  void WriteStep(const ProgramExecution& run, PlaneWriter* writer) {
    const double seconds = space_.programs[run.program].input->simulation.device_seconds;
    const int64_t start = Picoseconds(run.start);
    const int64_t end = limit_ == INT64_MAX ? Picoseconds(run.start + seconds) : std::max(limit_, start);
    proto::XEvent* event = writer->plane().mutable_lines(static_cast<int>(TimelineLine::kSteps) - 1)->add_events();
    event->set_metadata_id(StepMetadata(run.step, writer));
    event->set_offset_ps(start);
    event->set_duration_ps(end - start);
    writer->Stat(event, "device_offset_ps", event->offset_ps());
    writer->Stat(event, "device_duration_ps", event->duration_ps());
    writer->Stat(event, "step_idle_time_ps", std::max<int64_t>(end - Picoseconds(run.start + seconds), 0));
  }

  // Writes the utilization as counters, percentages that hold until the next event of their name.
  void WriteCounters(int64_t device, const std::vector<size_t>& runs, PlaneWriter* writer) {
    std::vector<std::vector<Utilization::Change>> changes(space_.programs.size());
    for (size_t p = 0; p < changes.size(); ++p) {
      auto found = events_[p].find(device);
      if (found == events_[p].end()) found = events_[p].find(0);
      if (found == events_[p].end()) continue;
      Utilization utilization(*space_.programs[p].input);
      for (const TimelineEvent& e : found->second) utilization.Add(e);
      changes[p] = utilization.Changes();
    }
    proto::XLine* line = writer->Line(kCounterLine, "_counters_");
    line->set_timestamp_ns(space_.line_start_ns());
    for (size_t run : runs) {
      const ProgramExecution& r = space_.runs[run];
      for (const Utilization::Change& change : changes[r.program]) {
        proto::XEvent* event = line->add_events();
        const int64_t id = kFirstCounter + static_cast<int64_t>(change.counter);
        proto::XEventMetadata* metadata = nullptr;
        writer->Event(id, StrCat(ToString(change.counter), " (%)"), &metadata);
        event->set_metadata_id(id);
        event->set_offset_ps(Picoseconds(r.start + change.time));
        // `counter_value` is for integers that the hardware counts, which XProf lists.
        writer->Stat(event, "percent", 100 * change.value);
      }
    }
  }

  void WritePeaks(int64_t device, PlaneWriter* writer) const {
    const DeviceDescription& machine = space_.programs[0].input->options.machine;
    proto::XPlane* plane = &writer->plane();
    writer->Stat(plane, "peak_teraflops_per_second", machine.PeakFlops() / 1e12);
    writer->Stat(plane, "peak_hbm_bw_gigabytes_per_second", machine.HbmRate() / 1e9);
    writer->Stat(plane, "peak_vmem_rd_bw_gigabytes_per_second", machine.vmem_rate / 1e9);
    writer->Stat(plane, "peak_vmem_wr_bw_gigabytes_per_second", machine.vmem_rate / 1e9);
    writer->Stat(plane, "has_megacore", static_cast<int64_t>(machine.megacore));
    writer->Stat(plane, "has_merged_vmem", int64_t{0});
    writer->Stat(plane, "device_type_string", DeviceType(machine.name));
    writer->Stat(plane, "device_id", device);
    writer->Stat(plane, "clock_rate", machine.clock / 1e3);
    writer->Stat(plane, "core_count", machine.cores_per_device());
    writer->Stat(plane, "memory_bandwidth", static_cast<int64_t>(machine.HbmRate()));
    writer->Stat(plane, "memory_size", static_cast<int64_t>(machine.HbmBytes()));
    proto::CoreDetails core;
    const int64_t per_chip = machine.devices_per_chip();
    const int64_t chip = device / per_chip;
    core.set_hostname(space_.hostname);
    core.set_device_ordinal(static_cast<uint32_t>(device));
    core.set_core_num(static_cast<uint32_t>(device % per_chip));
    core.set_local_chip_id(static_cast<uint32_t>(chip % static_cast<int64_t>(machine.chips_per_host)));
    core.set_global_chip_id(static_cast<uint32_t>(chip));
    core.set_global_core_id(static_cast<uint32_t>(device));
    writer->Add(plane, "core_details")->set_bytes_value(core.SerializeAsString());
  }

  proto::XEvent* AddEvent(TimelineLine line, int64_t metadata, double start_seconds, double seconds,
                          PlaneWriter* writer) {
    proto::XEvent* event = writer->plane().mutable_lines(static_cast<int>(line) - 1)->add_events();
    event->set_metadata_id(metadata);
    Nesting::Span span = {Picoseconds(start_seconds), Picoseconds(start_seconds + seconds)};
    if (line == TimelineLine::kOps) span = nesting_.Place(span);
    span.start = std::min(span.start, limit_);
    span.end = std::clamp(span.end, span.start, limit_);
    event->set_offset_ps(span.start);
    event->set_duration_ps(span.end - span.start);
    return event;
  }

  int64_t StepMetadata(int64_t step, PlaneWriter* writer) const {
    proto::XEventMetadata* metadata = nullptr;
    const int64_t id = kFirstStep + step;
    writer->Event(id, StrCat(step), &metadata);
    return id;
  }

  void WriteEvent(const TimelineEvent& e, size_t run, PlaneWriter* writer) {
    if (e.line == TimelineLine::kSteps) return;
    const ProgramExecution& r = space_.runs[run];
    if (e.line == TimelineLine::kAsyncOps && e.issued >= 0 && StartsAsync(e, r.program)) {
      // The core starts the operation, which takes it no time.
      TimelineEvent start = e;
      start.line = TimelineLine::kOps;
      start.start = e.issued;
      start.duration = 0;
      WriteEvent(start, run, writer);
    }
    TimelineLine line = e.line;
    if (e.line == TimelineLine::kWaits) {
      // The core waits inside of the operation that completes an asynchronous one, or of a synchronous collective.
      // Other stalls are gaps.
      if (!e.name.valid() || !HoldsCore(e, r.program)) return;
      line = TimelineLine::kOps;
    }
    proto::XEvent* event = AddEvent(line, MetadataFor(e, r.program, writer), r.start + e.start, e.duration, writer);
    if (e.line == TimelineLine::kWaits) {
      if (e.waited_for.valid()) {
        const Module& module = space_.programs[r.program].input->module;
        writer->Stat(event, "waited_for", Ascii(module.instruction(e.waited_for).name()));
      }
      if (e.sync > 0) writer->Stat(event, "sync_wait_ps", Picoseconds(e.sync));
      if (e.slowest >= 0) writer->Stat(event, "waited_for_device", e.slowest);
    }
    writer->Stat(event, "run_id", static_cast<int64_t>(run) + 1);
    if (e.line == TimelineLine::kModules) {
      writer->Stat(event, "_ct", kExecuteContext);
      writer->Stat(event, "_c", static_cast<int64_t>(run) + 1);
      return;
    }
    writer->Stat(event, "device_offset_ps", event->offset_ps());
    writer->Stat(event, "device_duration_ps", event->duration_ps());
    if (e.step != nullptr && e.step->wire_bytes > 0 && e.name.valid()) {
      writer->Stat(event, "all_reduce_id", static_cast<int64_t>(e.name.value) + 1);
    }
  }

  bool StartsAsync(const TimelineEvent& e, size_t program) const {
    return e.name.valid() &&
           HasTrait(space_.programs[program].input->module.instruction(e.name).opcode(), kStartsAsync);
  }
  // Returns true for waits at the end of an asynchronous operation and in synchronous ones.
  bool HoldsCore(const TimelineEvent& e, size_t program) const {
    const Opcode opcode = space_.programs[program].input->module.instruction(e.name).opcode();
    return HasTrait(opcode, kEndsAsync) || HasTrait(opcode, kCollective) || e.name == e.waited_for;
  }

  int64_t MetadataFor(const TimelineEvent& e, size_t program, PlaneWriter* writer) const {
    const ReportInput& input = *space_.programs[program].input;
    const int64_t base = kFirstProgram * static_cast<int64_t>(program + 1);
    proto::XEventMetadata* metadata = nullptr;
    if (e.line == TimelineLine::kModules) {
      writer->Event(base, StrCat(Ascii(input.module.name()), "(", ProgramId(program), ")"), &metadata);
      return base;
    }
    if (e.step == nullptr && !e.name.valid()) {
      writer->Event(base + 1, "more iterations", &metadata);
      return base + 1;
    }
    const int64_t id = base + 2 + static_cast<int64_t>(e.name.value);
    if (!writer->Event(id, "", &metadata)) return id;
    const Instruction i = input.module.instruction(e.name);
    metadata->set_name(Ascii(ToString(i)));
    metadata->set_display_name(Ascii(i.name()));
    writer->Stat(metadata, "program_id", ProgramId(program));
    writer->Stat(metadata, "symbol_id", static_cast<int64_t>(e.name.value) + 1);
    const auto row = rows_[program].find(e.name.value);
    const std::string category = row == rows_[program].end() ? std::string(i.opcode_text())
                                                             : std::string(CategoryOf(input.module, *row->second));
    writer->Stat(metadata, "hlo_category", ProfilerCategory(category));
    // The name of an op, a colon, and its type, which is not known.
    if (const std::string_view scope = ScopeOf(i); !scope.empty()) {
      writer->Stat(metadata, "tf_op", StrCat(Ascii(scope), ":"));
    }
    const double flops = e.step == nullptr ? 0 : e.step->flops;
    writer->Stat(metadata, "flops", static_cast<int64_t>(std::min(flops, 9e18)));
    writer->Stat(metadata, "model_flops", static_cast<int64_t>(std::min(flops, 9e18)));
    const int64_t bytes = e.step == nullptr ? 0 : static_cast<int64_t>(std::min(e.step->hbm_bytes, 9e18));
    writer->Stat(metadata, "bytes_accessed", bytes);
    proto::MemoryAccessBreakdown breakdown;
    proto::MemoryAccessBreakdown::MemoryAccessed* accessed = breakdown.add_memory_accessed();
    accessed->set_operation_type(1);
    accessed->set_memory_space(1);
    accessed->set_bytes_accessed(bytes);
    writer->Add(metadata, "memory_access_breakdown")->set_bytes_value(breakdown.SerializeAsString());
    writer->Stat(metadata, "deduplicated_name", Ascii(i.name()));
    if (const std::string source = SourceOf(i); !source.empty()) writer->Stat(metadata, "source", Ascii(source));
    writer->Stat(metadata, "shape_with_layout", ToString(i.shape()));
    return id;
  }

  const ProfileSpace& space_;
  proto::XSpace& out_;
  std::vector<std::map<uint32_t, const OpRow*>> rows_;                 // by program, then name
  std::vector<std::map<int64_t, std::vector<TimelineEvent>>> events_;  // by program, then device
  Nesting nesting_;                                                    // operations of the device
  int64_t limit_ = INT64_MAX;                                          // picosecond in which the execution's step ends
};

// Writes how busy the matrix unit and HBM of a device are while it executes.
void WriteUtilization(const ProfileSpace& space, PlaneWriter* host) {
  double seconds = 0, matrix = 0, hbm = 0;
  for (const ProgramExecution& run : space.runs) {
    if (run.device > 0) continue;
    const ReportInput& input = *space.programs[run.program].input;
    seconds += input.simulation.device_seconds;
    matrix += input.simulation.busy[static_cast<size_t>(Resource::kMxu)];
    hbm += input.simulation.hbm_bytes / input.options.machine.HbmRate();
  }
  if (seconds <= 0) return;
  host->Stat(&host->plane(), "matrix_unit_utilization_percent", 100 * std::min(matrix / seconds, 1.0));
  host->Stat(&host->plane(), "hbm_utilization_percent", 100 * std::min(hbm / seconds, 1.0));
}

// Writes the links of a span to those of other threads.
void WriteLinks(const HostSpan& span, proto::XEvent* event, PlaneWriter* host) {
  const auto link = [&](bool produces, int64_t context, int64_t id) {
    host->Stat(event, produces ? "_pt" : "_ct", context);
    host->Stat(event, produces ? "_p" : "_c", id + 1);
  };
  if (span.run >= 0) {
    host->Stat(event, "run_id", span.run + 1);
    link(true, kExecuteContext, span.run);
  } else if (span.makes_call >= 0) {
    link(true, kCallContext, span.makes_call);
  } else if (span.opens_step >= 0) {
    link(true, kStepContext, span.opens_step);
  }
  if (span.framework_call != 0) {
    host->Stat(event, "_ct", kLibraryCallContext);
    host->Stat(event, "_c", span.framework_call);
  } else if (span.takes_call >= 0) {
    link(false, kCallContext, span.takes_call);
  } else if (span.in_step >= 0) {
    link(false, kStepContext, span.in_step);
  }
}

void WriteHost(const ProfileSpace& space, proto::XSpace* out) {
  PlaneWriter host(out, kHostPlane, space.of_plugin ? "/host:TPU-runtime" : "/host:CPU");
  WriteUtilization(space, &host);
  for (size_t t = 0; t < space.threads.size(); ++t) {
    proto::XLine* line = host.Line(static_cast<int64_t>(t) + 1, Ascii(space.threads[t].name));
    line->set_timestamp_ns(space.line_start_ns());
    for (const HostSpan& span : space.threads[t].spans) {
      proto::XEvent* event = line->add_events();
      event->set_metadata_id(host.EventNamed(Ascii(span.name)));
      const int64_t start = Picoseconds(span.start);
      event->set_offset_ps(start);
      event->set_duration_ps(Picoseconds(span.start + span.duration) - start);
      if (span.root) {
        host.Stat(event, "step_num", span.step);
        // A second thread's spans of steps would be steps of their own: they are linked to the first one's.
        if (span.in_step < 0) host.Stat(event, "_r", int64_t{1});
      }
      WriteLinks(span, event, &host);
      if (PhaseOfSpan(span.name) == HostPhase::kInput) {
        host.Stat(event, "_ipl_stage_name", Ascii(span.name));
        host.Stat(event, "_ipl_stage_cat", std::string(IsWait(span.name) ? "wait" : "read"));
      }
      if (!span.source.empty()) host.Stat(event, "source", Ascii(span.source));
      if (space.threads[t].straggler) host.Stat(event, "straggler", int64_t{1});
    }
  }
  WriteMemoryEvents(space, static_cast<int64_t>(space.threads.size()) + 1, &host);
}

// Writes the programs with their buffers.
void WriteProgramMetadata(const ProfileSpace& space, proto::XSpace* out) {
  PlaneWriter plane(out, kMetadataPlane, "/host:metadata");
  for (size_t p = 0; p < space.programs.size(); ++p) {
    const ProfileProgram& program = space.programs[p];
    const int64_t id = ProgramId(p);
    proto::XEventMetadata* metadata = nullptr;
    plane.Event(id, StrCat(Ascii(program.input->module.name()), "(", id, ")"), &metadata);
    metadata->set_display_name(Ascii(program.input->module.name()));
    plane.Stat(metadata, "program_id", id);
    plane.Add(metadata, "Hlo Proto")->set_bytes_value(HloProtoBytes(*program.input, *program.plan, id));
  }
}

}  // namespace

std::string XSpaceBytes(const ProfileSpace& space) {
  proto::XSpace out;
  out.add_hostnames(space.hostname);
  DevicePlanes(space, &out).Write();
  WriteHost(space, &out);
  WriteProgramMetadata(space, &out);
  PlaneWriter task(&out, kTaskPlane, "Task Environment");
  task.Stat(&task.plane(), "profile_start_time", space.start_unix_ns);
  task.Stat(&task.plane(), "profile_stop_time", space.start_unix_ns + Picoseconds(space.seconds) / 1000 + 1);
  // Serializes maps in a fixed order.
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  out.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

ProfileSpace BuildProfileSpace(const ProfileProgram& program, const HostModel& host, int64_t devices,
                               size_t max_events) {
  const HostTimeline time = SimulateHost(host, program.input->simulation.device_seconds);
  ProfileSpace space;
  space.programs = {program};
  space.devices = devices;
  space.max_events = max_events;
  space.seconds = time.seconds;
  static constexpr Track kTracks[] = {Track::kProgram, Track::kLoader, Track::kLink};
  static constexpr std::string_view kNames[] = {"main", "loader", "transfer", "TPU:0 runtime"};
  space.threads.resize(std::size(kNames));
  for (size_t l = 0; l < std::size(kNames); ++l) space.threads[l].name = std::string(kNames[l]);
  // Steps enclose the activities of the program's thread.
  std::vector<std::pair<double, double>> steps(time.steps, {-1, 0});
  std::vector<HostSpan>& runtime = space.threads.back().spans;
  for (const TimelineSpan& a : time.spans) {
    if (a.track == Track::kDevice) {
      // One execution represents all graphs of a step.
      if (!space.runs.empty() && space.runs.back().step == a.step) continue;
      // The runtime's thread has the program from its call, or the end of the one before, until it has run.
      const double called = a.after >= 0 ? time.spans[static_cast<size_t>(a.after)].end : a.start;
      const double free =
          runtime.empty() ? 0 : runtime[runtime.size() - 2].start + runtime[runtime.size() - 2].duration;
      HostSpan span{std::string(kRunExecutable), std::max(std::min(called, a.start), free), 0, a.step, false, -1, ""};
      span.duration = a.end - span.start;
      span.takes_call = a.step;
      runtime.push_back(span);
      span.takes_call = -1;
      span.name = std::string(kTpuExecute);
      span.duration = a.start - span.start;
      span.run = static_cast<int64_t>(space.runs.size());
      runtime.push_back(std::move(span));
      space.runs.push_back({0, a.start, a.step});
      continue;
    }
    if (a.track == Track::kProgram) {
      std::pair<double, double>& step = steps[static_cast<size_t>(a.step)];
      if (step.first < 0) step.first = a.start;
      step.second = std::max(step.second, a.end);
    }
    const HostSpan span{std::string(SpanNameOf(a.phase, a.wait)), a.start, a.end - a.start, a.step, false, -1, ""};
    for (size_t l = 0; l < std::size(kTracks); ++l) {
      if (kTracks[l] != a.track) continue;
      space.threads[l].spans.push_back(span);
      if (a.track == Track::kProgram && a.phase == HostPhase::kExecute && !a.wait) {
        space.threads[l].spans.back().makes_call = a.step;
      }
      if (span.name != kTransferSpan) continue;
      space.threads[l].spans.push_back(span);
      space.threads[l].spans.back().name = std::string(kTransferToServer);
    }
  }
  std::vector<HostSpan> roots;
  for (size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].first < 0) continue;
    roots.push_back({"train", steps[k].first, steps[k].second - steps[k].first, static_cast<int64_t>(k), true, -1, ""});
  }
  std::vector<HostSpan>& main = space.threads[0].spans;
  main.insert(main.begin(), roots.begin(), roots.end());
  std::stable_sort(main.begin(), main.end(), [](const HostSpan& a, const HostSpan& b) { return a.start < b.start; });
  return space;
}

}  // namespace hlokit::tpu
