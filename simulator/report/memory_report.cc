// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/memory_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "ir/core/double_text.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "passes/analysis/cost_key.h"
#include "simulator/report/ascii.h"
#include "simulator/report/memory_advice.h"
#include "simulator/report/number_text.h"
#include "simulator/report/origin.h"

namespace hlokit::tpu {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kListedArrays = 12;
constexpr size_t kListedGroups = 6;
constexpr size_t kListedInJson = 50;
constexpr size_t kListedCalleeOps = 2000;

template <typename NameOf>
std::vector<LiveBytesGroup> GroupLive(const Module& module, const MemoryPlan& memory, const NameOf& name_of) {
  std::map<std::string, LiveBytesGroup> groups;
  for (const LiveArray& array : memory.live) {
    std::string name(name_of(ProducerOf(module.instruction(array.value), array.leaf)));
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
         << FormatFixed(100 * Part(groups[k].bytes, whole), 1) << " %  "
         << Counted(groups[k].arrays, "array  ", "arrays  ")
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

// Returns the number of the largest array of a result, of which an operation has the scope in the tables of memory.
int64_t LargestLeaf(Shape shape) {
  if (!shape.IsTuple()) return 0;
  int64_t largest = 0, most = -1;
  for (int64_t k = 0; k < shape.tuple_size(); ++k) {
    const int64_t bytes = ByteSize(shape.element(k));
    if (bytes > most) std::tie(largest, most) = std::pair(k, bytes);
  }
  return largest;
}

Json OpJson(const ReportInput& input, const Origins& origins, const OpMemory& op) {
  const Instruction i = input.module.instruction(op.name);
  const Instruction named = ProducerOf(i, LargestLeaf(i.shape()));
  return {{"name", Ascii(i.name())},
          {"operation", Ascii(origins.InstructionOf(i))},
          {"scope", Ascii(ScopeOf(named))},
          {"source", Ascii(SourceOf(named))},
          {"allocation_bytes", op.allocation},
          {"size_increase_bytes", op.increase},
          {"self_bytes", op.self}};
}

// Returns the rows of the entry computation, then those of called computations that change memory.
Json OpsJson(const ReportInput& input, const Origins& origins) {
  const MemoryPlan& plan = input.memory;
  const std::vector<double>& vmem = input.simulation.vmem_timeline;
  Json ops = Json::array();
  for (size_t s = 0; s < plan.ops.size(); ++s) {
    Json row = OpJson(input, origins, plan.ops[s]);
    row["live_bytes"] = plan.timeline[s];
    row["vmem_bytes"] = s < vmem.size() ? vmem[s] : 0.0;
    ops.push_back(std::move(row));
  }
  size_t listed = 0;
  for (const CalleeMemory& callee : plan.callees) {
    for (const OpMemory& op : callee.ops) {
      if ((op.allocation == 0 && op.increase == 0) || listed == kListedCalleeOps) continue;
      Json row = OpJson(input, origins, op);
      row["computation"] = Ascii(input.module.instruction(op.name).parent().name());
      ops.push_back(std::move(row));
      ++listed;
    }
  }
  return ops;
}

}  // namespace

std::vector<LiveBytesGroup> LiveByScope(const Module& module, const MemoryPlan& memory) {
  return GroupLive(module, memory, OuterScope);
}

std::vector<LiveBytesGroup> LiveBySource(const Module& module, const MemoryPlan& memory) {
  return GroupLive(module, memory, [](Instruction i) { return SourceOf(i); });
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
  const Origins origins(input.source);
  *out << "live in HBM at the peak\n  largest arrays:\n";
  for (size_t k = 0; k < std::min(memory.live.size(), kListedArrays); ++k) {
    const LiveArray& array = memory.live[k];
    const Instruction i = input.module.instruction(array.value);
    *out << "    " << FormatBytes(static_cast<double>(array.bytes)) << "  " << ArrayText(i, array.leaf)
         << (array.parameter ? " (parameter)" : "") << "  " << ToString(LeafShape(i.shape(), array.leaf), false) << "  "
         << origins.Of(i, array.leaf) << "\n";
  }
  PrintGroups("scope", LiveByScope(input.module, memory), memory.peak_bytes, out);
  PrintGroups("source line", LiveBySource(input.module, memory), memory.peak_bytes, out);
  if (!memory.fits()) {
    const double excess = static_cast<double>(memory.peak_bytes) - memory.limit_bytes;
    *out << "  " << FormatBytes(excess) << " too much";
    if (static_cast<double>(memory.parameter_bytes) > memory.limit_bytes) *out << "; the parameters alone do not fit";
    *out << "\n";
  }
  if (!details) {
    *out << "  --memory simulates changes that make it fit\n";
    return;
  }
  const std::vector<MemoryAdvice> advices = MemoryAdvices(input);
  if (advices.empty() && memory.fits()) return;
  *out << (memory.fits() ? "lower peak, simulated\n" : "ways to fit, simulated\n");
  if (advices.empty())
    *out << "  none of: donation, rematerialization, smaller batch, bf16, partitions, other targets\n";
  for (const MemoryAdvice& advice : advices) {
    *out << "  " << advice.title << ": peak " << FormatBytes(static_cast<double>(advice.peak_bytes)) << " of "
         << FormatBytes(advice.limit_bytes) << (advice.fits() ? "" : ", does not fit") << ", device time "
         << FormatSeconds(advice.device_seconds) << "\n";
  }
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
  const Origins origins(input.source);
  Json live = Json::array();
  for (size_t k = 0; k < std::min(plan.live.size(), kListedInJson); ++k) {
    const LiveArray& array = plan.live[k];
    const Instruction i = input.module.instruction(array.value);
    const Instruction named = ProducerOf(i, array.leaf);
    live.push_back({{"name", Ascii(ArrayText(i, array.leaf))},
                    {"shape", Ascii(ToString(LeafShape(i.shape(), array.leaf), false))},
                    {"operation", Ascii(origins.InstructionOf(i))},
                    {"bytes", array.bytes},
                    {"unpadded_bytes", array.unpadded_bytes},
                    {"scope", Ascii(ScopeOf(named))},
                    {"source", Ascii(SourceOf(named))}});
  }
  memory["live_at_peak"] = std::move(live);
  memory["live_by_scope"] = GroupsJson(LiveByScope(input.module, plan));
  memory["live_by_source"] = GroupsJson(LiveBySource(input.module, plan));
  memory["ops"] = OpsJson(input, origins);
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

nlohmann::ordered_json WaysToFitJson(const ReportInput& input) {
  Json ways = Json::array();
  for (const MemoryAdvice& advice : MemoryAdvices(input)) {
    ways.push_back({{"title", Ascii(advice.title)},
                    {"evidence", Ascii(advice.evidence)},
                    {"action", Ascii(advice.action)},
                    {"simulated", Ascii(advice.changed)},
                    {"peak_bytes", advice.peak_bytes},
                    {"limit_bytes", advice.limit_bytes},
                    {"fits", advice.fits()},
                    {"device_time_us", ToMicroseconds(advice.device_seconds)}});
  }
  return ways;
}

}  // namespace hlokit::tpu
