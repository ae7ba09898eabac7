// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "ir/core/double_text.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/source_line.h"
#include "passes/remarks/remark_text.h"
#include "passes/target/aliases.h"
#include "passes/target/fused_collectives.h"
#include "passes/target/op_class.h"
#include "simulator/report/ascii.h"
#include "simulator/report/device_report.h"
#include "simulator/report/memory_report.h"
#include "simulator/report/number_text.h"
#include "simulator/report/origin.h"
#include "simulator/report/uncertainty.h"
#include "simulator/timing/compile.h"

namespace hlokit::tpu {

namespace {

using Json = nlohmann::ordered_json;

double PeakSeconds(const Simulation& simulation, const DeviceDescription& machine) {
  return simulation.flops / machine.PeakFlops();
}

Json ResourceJson(const ResourceTimes& times) {
  Json json = Json::object();
  for (size_t r = 0; r < kResourceCount; ++r) {
    if (times[r] > 0) json[std::string(ToString(static_cast<Resource>(r)))] = ToMicroseconds(times[r]);
  }
  return json;
}

struct Totals {
  double runs = 0;
  double seconds = 0;
  double flops = 0;
  double hbm_bytes = 0;
  double wire_bytes = 0;
};

// By name, and whether the core works meanwhile: only the times of the others are parts of the device time.
std::map<std::pair<std::string, bool>, Totals> ByCategory(const ReportInput& input) {
  std::map<std::pair<std::string, bool>, Totals> result;
  const auto add = [&](const OpRow& row, bool beside, double part) {
    Totals& t = result[{std::string(CategoryOf(input.module, row)), beside}];
    t.runs += row.runs * part;
    t.seconds += row.seconds * part;
    t.flops += row.flops * part;
    t.hbm_bytes += row.hbm_bytes * part;
    t.wire_bytes += row.wire_bytes * part;
  };
  for (const OpRow& row : input.simulation.rows) {
    if (!row.on_core && row.core_seconds > 0) {
      // A fusion with a collective: the kernel has the operations, the collective the bytes.
      OpRow kernel = CorePartOf(row);
      kernel.seconds = row.core_seconds;
      kernel.hbm_bytes = kernel.wire_bytes = 0;
      add(kernel, false, 1);
      OpRow collective = row;
      collective.flops = 0;
      add(collective, true, 1);
      continue;
    }
    const double core = !row.on_core ? 0 : row.seconds > 0 ? row.core_seconds / row.seconds : 1;
    if (core > 0) add(row, false, core);
    if (core < 1) add(row, true, 1 - core);
  }
  return result;
}

std::string DeviceToString(const ReportInput& input) {
  const SimulationOptions& o = input.options;
  return StrCat(o.machine.name, ":", ToString(o.topology), " (", ToString(DeviceUseOf(o, input.simulation)), ")");
}

}  // namespace

std::string_view ScopeOf(Instruction instruction) { return OpNameOf(instruction); }

std::string SourceOf(Instruction instruction) {
  const Metadata metadata = instruction.metadata();
  if (!metadata.source_file) return "";
  return StrCat(instruction.module().context().str(metadata.source_file), ":", metadata.source_line);
}

namespace {

// Returns the category of the instructions with most of a fusion's time.
std::string_view CategoryOfFusion(Instruction fusion) {
  std::string_view category = "data movement";
  const Computation body = fusion.computation_attr(Attr::kCalls);
  if (!body.valid()) return ToString(fusion.opcode());
  for (Instruction i : body.instructions()) {
    const OpClass op_class = ClassOf(i.opcode());
    if (op_class == OpClass::kProduct) return i.opcode() == Opcode::kConvolution ? "convolution" : "matmul";
    if (op_class == OpClass::kReduce) category = "reduction";
    if (op_class == OpClass::kElementwise && category == "data movement") category = "elementwise";
  }
  return category;
}

}  // namespace

std::string_view CategoryOf(const Module& module, const ScheduleUnit& unit) {
  OpRow row;
  row.name = unit.root;
  row.kind = unit.kind;
  row.collective = unit.collective;
  row.scatters = unit.scatters;
  return CategoryOf(module, row);
}

OpRow CorePartOf(const OpRow& row) {
  OpRow kernel = row;
  if (row.kind == ScheduleUnitKind::kCollective) kernel.kind = ScheduleUnitKind::kKernel;
  return kernel;
}

std::string_view CategoryOf(const Module& module, const OpRow& row) {
  const Instruction i = module.instruction(row.name);
  switch (row.kind) {
    case ScheduleUnitKind::kCollective:
      if (i.opcode() == Opcode::kFusion) return NameOfCollective(module.instruction(row.collective), row.scatters);
      return ToString(AsyncWrappedInstruction(i).opcode());
    case ScheduleUnitKind::kCopy:
      return "copy";
    case ScheduleUnitKind::kHost:
      return "host transfer";
    case ScheduleUnitKind::kDone:
      return "async wait";
    case ScheduleUnitKind::kCall:
    case ScheduleUnitKind::kLoop:
      return "control flow";
    case ScheduleUnitKind::kKernel:
      break;
  }
  switch (ClassOf(i.opcode())) {
    case OpClass::kProduct:
      return i.opcode() == Opcode::kConvolution ? "convolution" : "matmul";
    case OpClass::kReduce:
      return "reduction";
    case OpClass::kMovement:
      return "data movement";
    case OpClass::kUpdate:
      return "in-place update";
    case OpClass::kScalar:
      return "scalar";
    case OpClass::kStandalone:
      return i.opcode() == Opcode::kFusion ? CategoryOfFusion(i) : ToString(i.opcode());
    case OpClass::kElementwise:
    case OpClass::kNoWork:
    case OpClass::kAlias:
    case OpClass::kTuple:
    case OpClass::kGetTupleElement:
    case OpClass::kCollective:
    case OpClass::kAsyncCopy:
    case OpClass::kHost:
    case OpClass::kDone:
    case OpClass::kCall:
    case OpClass::kLoop:
      break;
  }
  return "elementwise";
}

namespace {

// Prints the largest contributions to the uncertainty.
void PrintUncertainty(const Uncertainty& uncertainty, TextWriter* out) {
  constexpr size_t kMaxSources = 3;
  constexpr double kMinContribution = 0.01;
  *out << "uncertain by model " << FormatFixed(100 * kModelError, 0) << " %";
  for (size_t k = 0; k < std::min(uncertainty.sources.size(), kMaxSources); ++k) {
    const UncertaintySource& source = uncertainty.sources[k];
    if (source.error * source.share < kMinContribution) break;
    *out << ", " << source.figure << " " << FormatFixed(100 * source.error * source.share, 0) << " %";
  }
  *out << "\n";
}

Json UncertaintyJson(const Uncertainty& uncertainty) {
  Json sources = Json::array();
  for (const UncertaintySource& source : uncertainty.sources) {
    sources.push_back({{"figure", std::string(source.figure)}, {"error", source.error}, {"time_share", source.share}});
  }
  return {{"relative", uncertainty.relative}, {"model", kModelError}, {"figures", std::move(sources)}};
}

}  // namespace

std::string_view NoteOfCompilation(const ReportInput& input) {
  const bool again = input.source != nullptr && !input.pipeline.empty() && IsCompiledForOtherDevice(*input.source);
  return again ? kCompiledAgain : std::string_view();
}

void PrintReport(const ReportInput& input, size_t top, bool memory_details, TextWriter* out) {
  const Simulation& s = input.simulation;
  const DeviceDescription& machine = input.options.machine;
  *out << "module " << input.module.name() << " on " << DeviceToString(input) << "\n";
  if (const std::string_view note = NoteOfCompilation(input); !note.empty()) *out << note << "\n";
  const std::string idle = IdleNote(DeviceUseOf(input.options, s));
  *out << idle << (idle.empty() ? "\n" : "\n\n");
  *out << "step time    " << FormatSeconds(s.step_seconds) << ", bound by " << ToString(s.bound) << "\n";
  const Uncertainty uncertainty = UncertaintyOf(machine, s);
  *out << "device time  " << FormatSeconds(s.device_seconds) << " \u00b1 " << FormatFixed(100 * uncertainty.relative, 0)
       << " %: core busy " << FormatSeconds(s.core_busy) << ", stalled " << FormatSeconds(s.stall) << "\n";
  if (s.prefetches > 0) {
    *out << "first run    " << FormatSeconds(s.first_run_seconds) << ": waits for "
         << Counted(s.prefetches, "copy", "copies") << " that a run starts for the next one\n";
  }
  PrintUncertainty(uncertainty, out);
  *out << "operations   " << FormatSignificant(s.flops / 1e9) << " GFLOP, "
       << FormatSignificant(Share(s.flops, s.device_seconds) / 1e12) << " TFLOP/s, "
       << FormatFixed(100 * Share(PeakSeconds(s, machine), s.device_seconds), 1) << " % of the bf16 peak\n";
  *out << "HBM traffic  " << FormatBytes(s.hbm_bytes) << ", "
       << FormatSignificant(Share(s.hbm_bytes, s.device_seconds) / 1e9) << " GB/s, "
       << FormatFixed(100 * Share(s.hbm_bytes / machine.HbmRate(), s.device_seconds), 1) << " % of the peak\n";
  *out << "busy         ";
  for (size_t r = 0; r < kResourceCount; ++r) {
    if (s.busy[r] <= 0 || Share(s.busy[r], s.device_seconds) < 0.0005) continue;
    *out << ToString(static_cast<Resource>(r)) << " " << FormatFixed(100 * Share(s.busy[r], s.device_seconds), 1)
         << " %  ";
  }
  *out << "\n";
  PrintMemory(input, memory_details, out);

  const auto cell = [out](std::string_view text, size_t width) { PrintCell(text, width, out); };
  PrintDevices(s.devices, out);
  PrintCollectives(s.devices, out);
  *out << "\n";
  for (std::string_view head : {"time", "%", "runs", "GFLOP", "HBM MB", "ICI MB"}) cell(head, 10);
  *out << "category\n";
  std::vector<std::pair<std::pair<std::string, bool>, Totals>> categories;
  for (auto& entry : ByCategory(input)) categories.push_back(entry);
  std::stable_sort(categories.begin(), categories.end(), [](const auto& a, const auto& b) {
    if (a.first.second != b.first.second) return b.first.second;
    return a.second.seconds > b.second.seconds;
  });
  bool beside = false;
  for (const auto& [key, t] : categories) {
    const auto& [name, concurrent] = key;
    if (concurrent && !std::exchange(beside, true)) *out << "beside the core, while it works or stalls:\n";
    cell(FormatSeconds(t.seconds), 10);
    cell(FormatFixed(100 * Share(t.seconds, s.device_seconds), 1), 10);
    cell(FormatFixed(t.runs, 0), 10);
    cell(FormatSignificant(t.flops / 1e9), 10);
    cell(FormatSignificant(t.hbm_bytes / 1e6), 10);
    cell(FormatSignificant(t.wire_bytes / 1e6), 10);
    *out << name << "\n";
  }
  *out << "\n";
  for (std::string_view head : {"time", "%", "runs", "stall", "bound by"}) cell(head, 10);
  *out << "operation\n";
  const Origins origins(input.source);
  for (size_t k = 0; k < std::min(s.rows.size(), top); ++k) {
    const OpRow& row = s.rows[k];
    const Instruction i = input.module.instruction(row.name);
    cell(FormatSeconds(row.seconds), 10);
    cell(FormatFixed(100 * Share(row.seconds, s.device_seconds), 1), 10);
    cell(FormatFixed(row.runs, 0), 10);
    cell(FormatSeconds(row.stall), 10);
    cell(ToString(row.bound), 10);
    *out << i.name() << "  " << (ScopeOf(i).empty() ? origins.InstructionOf(i) : std::string(ScopeOf(i)))
         << (row.on_core || row.seconds <= 0 ? "" : "  (beside the core)") << "\n";
  }
  if (s.rows.size() > top) *out << "... " << static_cast<int64_t>(s.rows.size() - top) << " more\n";
  if (!s.unmodeled.empty()) *out << "\nnot modeled\n";
  for (const auto& [what, count] : s.unmodeled) {
    *out << "  " << what << (count > 1 ? StrCat(" (", count, " times)") : std::string()) << "\n";
  }
}

namespace {

Json RemarksJson(absl::Span<const Remark> remarks) {
  std::string text;
  {
    TextWriter out(&text);
    JsonWriter json(&out, JsonLayout::kCompact);
    WriteRemarksJson(remarks, &json);
  }
  return Json::parse(text);
}

}  // namespace

std::string ReportJson(const ReportInput& input, bool memory_details) {
  const Simulation& s = input.simulation;
  const DeviceDescription& machine = input.options.machine;
  Json json = Json::object();
  json["module"] = Ascii(input.module.name());
  json["device"] = machine.name;
  json["topology"] = ToString(input.options.topology);
  json["chips"] = input.options.topology.Chips();
  const DeviceUse use = DeviceUseOf(input.options, s);
  json["devices"] = use.devices;
  json["used_chips"] = use.used_chips;
  json["used_devices"] = use.used_devices;
  json["step_time_us"] = ToMicroseconds(s.step_seconds);
  json["device_time_us"] = ToMicroseconds(s.device_seconds);
  if (s.prefetches > 0) json["first_run_us"] = ToMicroseconds(s.first_run_seconds);
  json["bound_by"] = std::string(ToString(s.bound));
  json["uncertainty"] = UncertaintyJson(UncertaintyOf(machine, s));
  json["core_busy_us"] = ToMicroseconds(s.core_busy);
  json["core_stall_us"] = ToMicroseconds(s.stall);
  json["flops"] = s.flops;
  json["hbm_bytes"] = s.hbm_bytes;
  json["interconnect_bytes"] = s.wire_bytes;
  json["peaks"] = {{"bf16_flops_per_second", machine.PeakFlops()},
                   {"hbm_bytes_per_second", machine.HbmRate()},
                   {"hbm_bytes", machine.HbmBytes()},
                   {"vmem_bytes", machine.VmemBytes()}};
  json["utilization"] = {{"peak_flops", Share(PeakSeconds(s, machine), s.device_seconds)},
                         {"peak_hbm", Share(s.hbm_bytes / machine.HbmRate(), s.device_seconds)}};
  json["busy_us"] = ResourceJson(s.busy);
  json["memory"] = MemoryJson(input);
  if (memory_details) json["memory"]["ways_to_fit"] = WaysToFitJson(input);
  AddDevicesJson(s.devices, &json);
  Json missing = Json::array();
  for (const auto& [what, count] : s.unmodeled) missing.push_back({{"what", Ascii(what)}, {"count", count}});
  json["unmodeled"] = std::move(missing);
  if (const std::string_view note = NoteOfCompilation(input); !note.empty()) json["note"] = std::string(note);
  Json categories = Json::array();
  for (const auto& [key, t] : ByCategory(input)) {
    categories.push_back({{"category", key.first},
                          {"runs", t.runs},
                          {"time_us", ToMicroseconds(t.seconds)},
                          {"concurrent_us", key.second ? ToMicroseconds(t.seconds) : 0.0},
                          {"flops", t.flops},
                          {"hbm_bytes", t.hbm_bytes},
                          {"interconnect_bytes", t.wire_bytes}});
  }
  json["categories"] = std::move(categories);
  const Origins origins(input.source);
  Json ops = Json::array();
  for (const OpRow& row : s.rows) {
    const Instruction i = input.module.instruction(row.name);
    ops.push_back({{"name", Ascii(i.name())},
                   {"category", std::string(CategoryOf(input.module, row))},
                   {"operation", Ascii(origins.InstructionOf(i))},
                   {"scope", Ascii(ScopeOf(i))},
                   {"source", Ascii(SourceOf(i))},
                   {"runs", row.runs},
                   {"time_us", ToMicroseconds(row.seconds)},
                   {"stall_us", ToMicroseconds(row.stall)},
                   {"core_us", ToMicroseconds(row.core_seconds)},
                   {"concurrent", !row.on_core},
                   {"bound_by", std::string(ToString(row.bound))},
                   {"flops", row.flops},
                   {"hbm_bytes", row.hbm_bytes},
                   {"interconnect_bytes", row.wire_bytes},
                   {"busy_us", ResourceJson(row.times)}});
  }
  json["ops"] = std::move(ops);
  if (input.remarks != nullptr) json["remarks"] = RemarksJson(input.remarks->remarks());
  return json.dump(1) + "\n";
}

}  // namespace hlokit::tpu
