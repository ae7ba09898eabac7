#include "interp/tpu/xplane.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "interp/tpu/xplane.pb.h"
#include "ir/printer.h"
#include "ir/str_cat.h"

namespace hlokit::tpu {

namespace {

namespace proto = ::tensorflow::profiler;

constexpr int64_t kProgram = 1;
constexpr int64_t kModuleEvent = 1;  // metadata ids of events that stand for no instruction
constexpr int64_t kStepEvent = 2;
constexpr int64_t kSkippedEvent = 3;
constexpr int64_t kFirstInstruction = 16;

int64_t Picoseconds(double seconds) { return std::llround(std::min(seconds * 1e12, 9e18)); }

// Proto strings are UTF-8; names from a file may be anything.
std::string Ascii(std::string_view s) {
  std::string out;
  for (char c : s) out.push_back(static_cast<unsigned char>(c) < 0x80 ? c : '?');
  return out;
}

class PlaneWriter {
 public:
  PlaneWriter(proto::XSpace* space, int64_t id, std::string name) : plane_(*space->add_planes()) {
    plane_.set_id(id);
    plane_.set_name(std::move(name));
  }
  proto::XPlane& plane() { return plane_; }

  template <typename Owner>
  void Stat(Owner* owner, const std::string& name, double value) {
    Add(owner, name)->set_double_value(value);
  }
  template <typename Owner>
  void Stat(Owner* owner, const std::string& name, int64_t value) {
    Add(owner, name)->set_int64_value(value);
  }
  template <typename Owner>
  void Stat(Owner* owner, const std::string& name, std::string value) {
    Add(owner, name)->set_str_value(std::move(value));
  }
  template <typename Owner>
  proto::XStat* Add(Owner* owner, const std::string& name) {
    const auto [place, fresh] = stats_.insert({name, static_cast<int64_t>(stats_.size()) + 1});
    if (fresh) {
      proto::XStatMetadata& metadata = (*plane_.mutable_stat_metadata())[place->second];
      metadata.set_id(place->second);
      metadata.set_name(name);
    }
    proto::XStat* stat = owner->add_stats();
    stat->set_metadata_id(place->second);
    return stat;
  }

  // The metadata of events; true if it is new.
  bool Event(int64_t id, const std::string& name, proto::XEventMetadata** metadata) {
    proto::XEventMetadata& m = (*plane_.mutable_event_metadata())[id];
    *metadata = &m;
    if (m.id() != 0) return false;
    m.set_id(id);
    m.set_name(name);
    return true;
  }

  proto::XLine* Line(int64_t id, std::string_view name) {
    proto::XLine* line = plane_.add_lines();
    line->set_id(id);
    line->set_display_id(id);
    line->set_name(std::string(name));
    return line;
  }

 private:
  proto::XPlane& plane_;
  std::map<std::string, int64_t> stats_;
};

std::string DeviceType(const std::string& machine) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"v5e", "TPU v5 Lite"}, {"v6e", "TPU v6 Lite"}, {"v5p", "TPU v5"}};
  for (const auto& [name, type] : kNames) {
    if (machine == name) return std::string(type);
  }
  return StrCat("TPU ", machine);
}

// XProf's names of categories.
std::string ProfilerCategory(std::string_view category) {
  if (category == "product" || category == "convolution") return "convolution fusion";
  if (category == "elementwise" || category == "reduction") return "loop fusion";
  if (category == "data movement") return "data formatting";
  return std::string(category);
}

class DevicePlane {
 public:
  DevicePlane(const ReportInput& input, proto::XSpace* space) : input_(input), writer_(space, 1, "/device:TPU:0") {
    const Machine& machine = input.options.machine;
    proto::XPlane* plane = &writer_.plane();
    writer_.Stat(plane, "peak_teraflops_per_second", machine.PeakFlops() / 1e12);
    writer_.Stat(plane, "peak_hbm_bw_gigabytes_per_second", machine.HbmRate() / 1e9);
    writer_.Stat(plane, "peak_vmem_rd_bw_gigabytes_per_second", machine.vmem_rate / 1e9);
    writer_.Stat(plane, "peak_vmem_wr_bw_gigabytes_per_second", machine.vmem_rate / 1e9);
    writer_.Stat(plane, "has_megacore", static_cast<int64_t>(machine.megacore));
    writer_.Stat(plane, "device_type_string", DeviceType(machine.name));
    writer_.Stat(plane, "device_id", int64_t{0});
    writer_.Stat(plane, "clock_rate", machine.clock / 1e3);
    writer_.Stat(plane, "core_count", machine.cores_per_device());
    writer_.Stat(plane, "memory_size", static_cast<int64_t>(machine.HbmBytes()));
    // Lines are stored in a vector that grows: ask for them by index.
    for (TimelineLine line :
         {TimelineLine::kSteps, TimelineLine::kModules, TimelineLine::kOps, TimelineLine::kAsyncOps}) {
      writer_.Line(static_cast<int64_t>(line), NameOf(line));
    }
    for (const OpRow& row : input.simulation.rows) rows_.insert({row.name.value, &row});
  }

  void Write(const TimelineEvent& e) {
    if (e.line == TimelineLine::kWaits) return;  // gaps between operations show them
    proto::XEvent* event = writer_.plane().mutable_lines(static_cast<int>(e.line) - 1)->add_events();
    event->set_metadata_id(MetadataFor(e));
    const int64_t start = Picoseconds(e.start);
    const int64_t duration = Picoseconds(e.start + e.duration) - start;
    event->set_offset_ps(start);
    event->set_duration_ps(duration);
    writer_.Stat(event, "group_id", int64_t{0});
    writer_.Stat(event, "run_id", int64_t{1});
    writer_.Stat(event, "device_offset_ps", start);
    writer_.Stat(event, "device_duration_ps", duration);
  }

 private:
  int64_t MetadataFor(const TimelineEvent& e) {
    proto::XEventMetadata* metadata = nullptr;
    if (e.line == TimelineLine::kSteps) {
      writer_.Event(kStepEvent, "0", &metadata);
      return kStepEvent;
    }
    if (e.line == TimelineLine::kModules) {
      writer_.Event(kModuleEvent, StrCat(Ascii(input_.module.name()), "(", kProgram, ")"), &metadata);
      return kModuleEvent;
    }
    if (e.step == nullptr) {
      writer_.Event(kSkippedEvent, "more trips", &metadata);
      return kSkippedEvent;
    }
    const int64_t id = kFirstInstruction + static_cast<int64_t>(e.name.value);
    const Instruction i = input_.module.instruction(e.name);
    const std::string shape = ToString(i.shape());
    if (!writer_.Event(id, "", &metadata)) return id;
    metadata->set_name(Ascii(ToString(i)));
    metadata->set_display_name(Ascii(i.name()));
    writer_.Stat(metadata, "program_id", kProgram);
    writer_.Stat(metadata, "symbol_id", id);
    const auto row = rows_.find(e.name.value);
    const std::string category =
        row == rows_.end() ? std::string(i.opcode_text()) : std::string(CategoryOf(input_.module, *row->second));
    writer_.Stat(metadata, "hlo_category", ProfilerCategory(category));
    writer_.Stat(metadata, "tf_op", Ascii(ScopeOf(i)));
    writer_.Stat(metadata, "flops", static_cast<int64_t>(std::min(e.step->flops, 9e18)));
    writer_.Stat(metadata, "model_flops", static_cast<int64_t>(std::min(e.step->flops, 9e18)));
    const int64_t bytes = static_cast<int64_t>(std::min(e.step->hbm_bytes, 9e18));
    writer_.Stat(metadata, "bytes_accessed", bytes);
    proto::MemoryAccessBreakdown breakdown;
    proto::MemoryAccessBreakdown::MemoryAccessed* accessed = breakdown.add_memory_accessed();
    accessed->set_operation_type(1);
    accessed->set_memory_space(1);
    accessed->set_bytes_accessed(bytes);
    writer_.Add(metadata, "memory_access_breakdown")->set_bytes_value(breakdown.SerializeAsString());
    writer_.Stat(metadata, "source", Ascii(SourceOf(i)));
    writer_.Stat(metadata, "shape_with_layout", shape);
    return id;
  }

  const ReportInput& input_;
  PlaneWriter writer_;
  std::map<uint32_t, const OpRow*> rows_;
};

void WriteHost(const ReportInput& input, proto::XSpace* space) {
  PlaneWriter host(space, 2, "/host:CPU");
  proto::XLine* line = host.Line(1, "main");
  const double dispatch = input.options.dispatch < 0 ? input.options.machine.dispatch_queued : input.options.dispatch;
  const std::pair<const char*, double> kEvents[] = {{"train", input.simulation.step_seconds}, {"TPUExecute", dispatch}};
  int64_t id = 1;
  for (const auto& [name, seconds] : kEvents) {
    proto::XEventMetadata* metadata = nullptr;
    host.Event(id, name, &metadata);
    proto::XEvent* event = line->add_events();
    event->set_metadata_id(id++);
    event->set_offset_ps(0);
    event->set_duration_ps(Picoseconds(seconds));
    host.Stat(event, "group_id", int64_t{0});
    if (id == 2) {
      host.Stat(event, "step_num", int64_t{0});
      host.Stat(event, "step_name", std::string("0"));
      host.Stat(event, "_r", int64_t{1});
    }
  }
  PlaneWriter task(space, 3, "Task Environment");
  task.Stat(&task.plane(), "profile_start_time", int64_t{0});
  task.Stat(&task.plane(), "profile_stop_time", Picoseconds(input.simulation.step_seconds) / 1000 + 1);
}

}  // namespace

std::string XSpaceBytes(const ReportInput& input, const KernelPlan& plan, size_t max_events) {
  proto::XSpace space;
  space.add_hostnames("hlokit");
  {
    DevicePlane device(input, &space);
    WalkTimeline(input, plan, max_events, [&](const TimelineEvent& e) { device.Write(e); });
  }
  WriteHost(input, &space);
  // Maps in a fixed order.
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  space.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace hlokit::tpu
