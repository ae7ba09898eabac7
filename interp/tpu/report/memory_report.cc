// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/report/memory_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "interp/tpu/report/ascii.h"
#include "interp/tpu/report/number_text.h"
#include "ir/core/double_text.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"

namespace hlokit::tpu {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kListedArrays = 12;
constexpr size_t kListedGroups = 6;
constexpr size_t kListedInJson = 50;

template <typename NameOf>
std::vector<LiveBytesGroup> GroupLive(const Module& module, const MemoryPlan& memory, const NameOf& name_of) {
  std::map<std::string, LiveBytesGroup> groups;
  for (const LiveArray& array : memory.live) {
    std::string name(name_of(module.instruction(array.value)));
    LiveBytesGroup& group = groups[name];
    group.name = std::move(name);
    group.bytes = SaturatingAdd(group.bytes, array.bytes);
    ++group.arrays;
  }
  std::vector<LiveBytesGroup> result;
  for (auto& [name, group] : groups) result.push_back(std::move(group));
  std::stable_sort(result.begin(), result.end(),
                   [](const LiveBytesGroup& a, const LiveBytesGroup& b) { return a.bytes > b.bytes; });
  return result;
}

// Returns the scope of an instruction without its last component, the operation.
std::string_view OuterScope(Instruction i) {
  const std::string_view scope = ScopeOf(i);
  return scope.substr(0, std::min(scope.rfind('/'), scope.size()));
}

double Part(int64_t bytes, int64_t whole) { return Share(static_cast<double>(bytes), static_cast<double>(whole)); }

void PrintGroups(std::string_view title, const std::vector<LiveBytesGroup>& groups, int64_t whole, TextWriter* out) {
  if (groups.empty() || (groups.size() == 1 && groups[0].name.empty())) return;
  *out << "  by " << title << ":\n";
  for (size_t k = 0; k < std::min(groups.size(), kListedGroups); ++k) {
    *out << "    " << FormatBytes(static_cast<double>(groups[k].bytes)) << "  "
         << FormatFixed(100 * Part(groups[k].bytes, whole), 1) << " %  " << groups[k].arrays << " arrays  "
         << (groups[k].name.empty() ? std::string_view("(none)") : std::string_view(groups[k].name)) << "\n";
  }
  if (groups.size() > kListedGroups) {
    *out << "    ... " << static_cast<int64_t>(groups.size() - kListedGroups) << " more\n";
  }
}

Json GroupsJson(const std::vector<LiveBytesGroup>& groups) {
  Json json = Json::array();
  for (size_t k = 0; k < std::min(groups.size(), kListedInJson); ++k) {
    json.push_back({{"name", Ascii(groups[k].name)}, {"bytes", groups[k].bytes}, {"arrays", groups[k].arrays}});
  }
  return json;
}

}  // namespace

std::vector<LiveBytesGroup> LiveByScope(const Module& module, const MemoryPlan& memory) {
  return GroupLive(module, memory, OuterScope);
}

std::vector<LiveBytesGroup> LiveBySource(const Module& module, const MemoryPlan& memory) {
  return GroupLive(module, memory, [](Instruction i) { return SourceOf(i); });
}

std::vector<std::string> OutOfMemorySuggestions(const ReportInput& input) {
  std::vector<std::string> ways;
  const MemoryPlan& memory = input.memory;
  if (memory.fits()) return ways;
  const double limit = memory.limit_bytes;
  const double peak = static_cast<double>(memory.peak_bytes);
  const double parameters = static_cast<double>(memory.parameter_bytes);
  const double short_of = peak - limit;
  const double between = peak - parameters;
  const double devices = static_cast<double>(input.options.topology.Chips() * input.options.machine.devices_per_chip());
  const bool donates = !input.module.header().input_output_alias.empty() || !input.module.header().buffer_donor.empty();
  if (!donates && static_cast<double>(memory.result_bytes) > 0.01 * short_of) {
    const double results = static_cast<double>(memory.result_bytes);
    ways.push_back(StrCat("Results take ", FormatBytes(results),
                          " in addition to the parameters: donating the parameters they replace ",
                          results >= short_of ? "would make it fit." : "helps, but is not enough."));
  }
  if (parameters > limit) {
    ways.push_back(StrCat("The parameters alone do not fit: shard them over more devices (",
                          FormatFixed(devices * parameters / limit, 0), " or more instead of ", FormatFixed(devices, 0),
                          "), or use narrower types."));
    return ways;
  }
  // Arrays with a long interval between definition and last use are candidates for rematerialization.
  const LiveArray* largest = nullptr;
  double kept = 0;
  for (const LiveArray& array : memory.live) {
    if (array.parameter) continue;
    if (largest == nullptr) largest = &array;
    kept += static_cast<double>(array.bytes);
  }
  if (largest != nullptr) {
    const std::vector<LiveBytesGroup> scopes = LiveByScope(input.module, memory);
    std::string way =
        StrCat("Rematerialize arrays instead of keeping ", FormatBytes(kept), " until the peak; ",
               FormatBytes(short_of), " too much. The largest is ", input.module.instruction(largest->value).name(),
               ", ", FormatBytes(static_cast<double>(largest->bytes)));
    for (const LiveBytesGroup& scope : scopes) {
      if (scope.name.empty()) continue;
      StrAppend(&way, "; the scope with the most is ", scope.name, ", ", FormatBytes(static_cast<double>(scope.bytes)));
      break;
    }
    ways.push_back(way + ".");
  }
  if (between > 0) {
    ways.push_back(StrCat("If everything except parameters scales with the batch, a batch of ",
                          FormatFixed(100 * (limit - parameters) / between, 0), " % of this one fits."));
  }
  ways.push_back(StrCat("Sharded evenly over ", FormatFixed(std::ceil(devices * peak / limit), 0),
                        " devices instead of ", FormatFixed(devices, 0), " it fits."));
  if (static_cast<double>(memory.padding_bytes) > 0.05 * peak) {
    ways.push_back(StrCat(FormatBytes(static_cast<double>(memory.padding_bytes)),
                          " at the peak are padding: minor dimensions that are multiples of ",
                          FormatFixed(input.options.machine.lanes, 0), " have none."));
  }
  return ways;
}

void PrintMemory(const ReportInput& input, bool details, TextWriter* out) {
  const MemoryPlan& memory = input.memory;
  *out << "\nHBM of a device\n";
  *out << "  peak        " << FormatBytes(static_cast<double>(memory.peak_bytes)) << " of "
       << FormatBytes(memory.limit_bytes) << (memory.fits() ? "" : "  DOES NOT FIT") << "\n";
  *out << "  parameters  " << FormatBytes(static_cast<double>(memory.parameter_bytes)) << "\n";
  *out << "  padding     " << FormatBytes(static_cast<double>(memory.padding_bytes)) << " at the peak\n";
  *out << "  fragmented  " << FormatBytes(static_cast<double>(memory.fragmentation_bytes()))
       << " between blocks of the heap\n";
  if (memory.peak_at.valid()) *out << "  peak is at  " << input.module.instruction(memory.peak_at).name() << "\n";
  const Simulation& s = input.simulation;
  *out << "vector memory\n";
  *out << "  peak        " << FormatBytes(s.vmem_peak) << " of " << FormatBytes(input.options.machine.OnChipBytes());
  if (s.vmem_peak_at.valid()) *out << " at " << input.module.instruction(s.vmem_peak_at).name();
  *out << "\n";
  if (memory.fits() && !details) return;
  *out << "live in HBM at the peak\n  largest arrays:\n";
  for (size_t k = 0; k < std::min(memory.live.size(), kListedArrays); ++k) {
    const LiveArray& array = memory.live[k];
    const Instruction i = input.module.instruction(array.value);
    *out << "    " << FormatBytes(static_cast<double>(array.bytes)) << "  " << ArrayText(i, array.leaf)
         << (array.parameter ? " (parameter)" : "");
    if (const std::string source = SourceOf(i); !source.empty()) *out << "  " << source;
    *out << "\n";
  }
  PrintGroups("scope", LiveByScope(input.module, memory), memory.peak_bytes, out);
  PrintGroups("source line", LiveBySource(input.module, memory), memory.peak_bytes, out);
  if (memory.fits()) return;
  *out << "  " << FormatBytes(static_cast<double>(memory.peak_bytes) - memory.limit_bytes) << " too much:\n";
  for (const std::string& way : OutOfMemorySuggestions(input)) *out << "    " << way << "\n";
}

nlohmann::ordered_json MemoryJson(const ReportInput& input) {
  const MemoryPlan& plan = input.memory;
  Json memory = Json::object();
  memory["peak_bytes"] = plan.peak_bytes;
  memory["limit_bytes"] = plan.limit_bytes;
  memory["fits"] = plan.fits();
  memory["parameter_bytes"] = plan.parameter_bytes;
  memory["padding_bytes_at_peak"] = plan.padding_bytes;
  memory["heap_bytes"] = plan.heap_bytes;
  memory["heap_peak_bytes"] = plan.heap_peak_bytes;
  memory["fragmentation_bytes"] = plan.fragmentation_bytes();
  if (plan.peak_at.valid()) memory["peak_at"] = Ascii(input.module.instruction(plan.peak_at).name());
  Json live = Json::array();
  for (size_t k = 0; k < std::min(plan.live.size(), kListedInJson); ++k) {
    const LiveArray& array = plan.live[k];
    const Instruction i = input.module.instruction(array.value);
    live.push_back({{"name", Ascii(ArrayText(i, array.leaf))},
                    {"bytes", array.bytes},
                    {"unpadded_bytes", array.unpadded_bytes},
                    {"scope", Ascii(ScopeOf(i))},
                    {"source", Ascii(SourceOf(i))}});
  }
  memory["live_at_peak"] = std::move(live);
  memory["live_by_scope"] = GroupsJson(LiveByScope(input.module, plan));
  memory["live_by_source"] = GroupsJson(LiveBySource(input.module, plan));
  Json ops = Json::array();
  for (size_t s = 0; s < plan.ops.size(); ++s) {
    const OpMemory& op = plan.ops[s];
    ops.push_back(
        {{"name", Ascii(input.module.instruction(op.name).name())},
         {"allocation_bytes", op.allocation},
         {"size_increase_bytes", op.increase},
         {"self_bytes", op.self},
         {"live_bytes", plan.timeline[s]},
         {"vmem_bytes", s < input.simulation.vmem_timeline.size() ? input.simulation.vmem_timeline[s] : 0.0}});
  }
  memory["ops"] = std::move(ops);
  memory["oom_suggestions"] = Json::array();
  for (const std::string& way : OutOfMemorySuggestions(input)) memory["oom_suggestions"].push_back(Ascii(way));
  const Simulation& s = input.simulation;
  Json vmem = {{"peak_bytes", s.vmem_peak}, {"limit_bytes", input.options.machine.OnChipBytes()}};
  if (s.vmem_peak_at.valid()) vmem["peak_at"] = Ascii(input.module.instruction(s.vmem_peak_at).name());
  Json resident = Json::array();
  for (size_t k = 0; k < std::min(s.vmem_live.size(), kListedInJson); ++k) {
    resident.push_back(
        {{"name", Ascii(input.module.instruction(s.vmem_live[k].value).name())}, {"bytes", s.vmem_live[k].bytes}});
  }
  vmem["live_at_peak"] = std::move(resident);
  memory["vmem"] = std::move(vmem);
  return memory;
}

}  // namespace hlokit::tpu
