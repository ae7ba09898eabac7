// SPDX-License-Identifier: Apache-2.0
#include "interp/observers/profile_report.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

// Rows of each table of the text; the JSON has all.
constexpr size_t kMaxRows = 25;

using LoopMembers = std::map<uint32_t, std::vector<InstructionId>>;  // by the id of the last one

// Returns "loop of add.1, tanh.2" with the names of its instructions, abbreviated; empty if it is none of one.
std::string LoopText(const Module& module, const LoopMembers& loops, InstructionId last) {
  const auto at = loops.find(last.value);
  if (at == loops.end()) return "";
  constexpr size_t kMaxNames = 6;
  std::string text = "  loop of ";
  for (size_t i = 0; i < std::min(at->second.size(), kMaxNames); ++i) {
    StrAppend(&text, i == 0 ? "" : ", ", module.instruction(at->second[i]).name());
  }
  if (at->second.size() > kMaxNames) StrAppend(&text, " and ", at->second.size() - kMaxNames, " more");
  return text;
}

void PrintTable(std::string_view heading, const std::vector<InstructionProfiler::Entry>& entries, double total,
                const std::function<std::string(const InstructionProfiler::Entry&)>& note, TextWriter& out) {
  out << absl::StrFormat("%12s %7s %10s  %s\n", "ms", "%", "runs", heading);
  for (size_t i = 0; i < std::min(entries.size(), kMaxRows); ++i) {
    const InstructionProfiler::Entry& e = entries[i];
    out << absl::StrFormat("%12.3f %6.1f%% %10d  %s%s\n", e.milliseconds, total > 0 ? e.milliseconds / total * 100 : 0,
                           e.runs, e.name, note(e));
  }
  if (entries.size() > kMaxRows) out << StrCat("             (", entries.size() - kMaxRows, " more)\n");
}

void WriteEntries(JsonWriter& json, std::string_view key, const Module& module,
                  const std::vector<InstructionProfiler::Entry>& entries, bool by_opcode, const LoopMembers& loops) {
  json.Key(key).BeginArray();
  for (const InstructionProfiler::Entry& e : entries) {
    json.BeginObject();
    if (by_opcode) {
      json.Member("opcode", e.name).Member("instructions", e.instructions);
    } else {
      const Instruction instruction = module.instruction(e.instruction);
      json.Member("instruction", e.name)
          .Member("opcode", instruction.opcode_text())
          .Member("computation", instruction.parent().name())
          .Member("shape", std::string_view(ToString(instruction.shape(), /*with_layout=*/false)));
    }
    if (const auto loop = loops.find(e.instruction.value); !by_opcode && loop != loops.end()) {
      json.Key("loop").BeginArray();
      for (const InstructionId member : loop->second) json.Value(module.instruction(member).name());
      json.EndArray();
    }
    json.Member("runs", e.runs).Member("time_us", static_cast<int64_t>(e.milliseconds * 1e3)).EndObject();
  }
  json.EndArray();
}

}  // namespace

void PrintProfile(const ProfileReport& report, TextWriter* out) {
  const double total = report.profiler.total_milliseconds();
  *out << absl::StrFormat(
      "profile: %.3f ms, %d instructions executed, %d loop iterations, peak of %d bytes of values\n", total,
      report.statistics.steps, report.statistics.loop_iterations, report.statistics.peak_bytes);
  using Entry = InstructionProfiler::Entry;
  PrintTable(
      "opcode", report.profiler.ByOpcode(), total, [](const Entry&) { return std::string(); }, *out);
  PrintTable(
      "instruction", report.profiler.ByInstruction(), total,
      [&](const Entry& e) { return LoopText(report.module, report.loops, e.instruction); }, *out);
}

void WriteProfileJson(const ProfileReport& report, const RunTimes& times, TextWriter* out) {
  const RunStatistics& statistics = report.statistics;
  JsonWriter json(out);
  json.BeginObject()
      .Member("module", report.module.name())
      .Member("total_us", static_cast<int64_t>(report.profiler.total_milliseconds() * 1e3))
      .Member("instructions_run", statistics.steps)
      .Member("loop_iterations", statistics.loop_iterations)
      .Member("peak_bytes", statistics.peak_bytes)
      .Member("peak_live_bytes", statistics.peak_live_bytes)
      .Member("peak_held_bytes", statistics.peak_held_bytes)
      .Member("system_allocations", statistics.system_allocations)
      .Member("compile_seconds", times.compile_seconds)
      .Key("run_seconds")
      .BeginArray();
  for (double seconds : times.run_seconds) json.Value(seconds);
  json.EndArray();
  WriteEntries(json, "opcodes", report.module, report.profiler.ByOpcode(), /*by_opcode=*/true, report.loops);
  WriteEntries(json, "instructions", report.module, report.profiler.ByInstruction(), /*by_opcode=*/false, report.loops);
  json.EndObject();
}

}  // namespace hlokit::interp
