// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/memory.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ir/core/json_writer.h"
#include "ir/graph/module_statistics.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/memory.h"
#include "passes/analysis/memory_table.h"
#include "tools/hlo_inspect/assignment.h"
#include "tools/hlo_inspect/cost.h"
#include "tools/hlo_inspect/whole_program.h"

namespace hlokit::cli {
namespace {

struct MemoryFlags : InspectFlags {
  CostKey by = CostKey::kInstruction;
  size_t top = 20;
  bool timeline = false;
  bool assignment = false;
};

std::string_view PeakName(const Module& module, const MemoryUse& use) {
  const Instruction peak = PeakInstruction(module, use);
  return peak.valid() ? peak.name() : "";
}

void WriteJson(const MemoryFlags& flags, const InputPart& part, const Module& module, const MemoryAnalysis& memory,
               const std::optional<dump::AssignmentSummary>& assignment, JsonWriter* json) {
  const MemoryUse& use = memory.OfModule();
  json->BeginObject();
  json->Member("file", part.source->name());
  if (part.count > 1) json->Member("group", part.index + 1);
  json->Member("module", module.name()).Member("scheduled", module.header().is_scheduled);
  WriteWholeProgramMember(module, json);
  json->Member("peak_bytes", use.peak_bytes).Member("peak_instruction", PeakName(module, use));
  json->Member("argument_bytes", use.argument_bytes).Member("result_bytes", use.result_bytes);
  json->Member("constant_bytes", use.constant_bytes);
  json->Key("computations").BeginArray();
  for (Computation c : module.computations()) {
    const MemoryUse& own = memory.Of(c);
    if (own.order.empty()) continue;
    json->BeginObject().Member("name", c.name()).Member("temp_bytes", own.peak_bytes_beyond_arguments);
    json->Member("peak_instruction", PeakName(module, own)).EndObject();
  }
  json->EndArray();
  json->Key("live_at_peak").BeginArray();
  for (const LiveBuffer& buffer : memory.LiveAtPeak(module)) {
    json->BeginObject().Member("instruction", module.instruction(buffer.defining_instruction).name());
    json->Member("shape_index", buffer.leaf).Member("bytes", buffer.bytes).Member("kind", ToString(buffer.kind));
    json->Member("live_from", buffer.begin).Member("live_to", buffer.end).EndObject();
  }
  json->EndArray();
  if (flags.by != CostKey::kInstruction) {
    json->Member("by", KeyName(flags.by)).Key("rows").BeginArray();
    for (const MemoryRow& row : LiveAtPeakBy(module, memory, flags.by)) {
      json->BeginObject().Member("key", row.key).Member("bytes", row.bytes).Member("buffers", row.buffers).EndObject();
    }
    json->EndArray();
  }
  if (flags.timeline) {
    json->Key("timeline").BeginArray();
    for (size_t place = 0; place < use.order.size(); ++place) {
      json->BeginObject().Member("instruction", module.instruction(use.order[place]).name());
      json->Member("bytes", use.live_bytes[place]).EndObject();
    }
    json->EndArray();
  }
  if (assignment) WriteAssignmentJson(*assignment, json);
  json->EndObject();
}

void WriteCell(std::string_view text, size_t width, TextWriter* out) {
  for (size_t n = text.size(); n < width; ++n) *out << ' ';
  *out << text << "  ";
}

void WriteMore(size_t all, size_t shown, TextWriter* out) {
  if (all > shown) *out << "... " << static_cast<int64_t>(all - shown) << " more\n";
}

void WriteBuffers(const MemoryFlags& flags, const Module& module, const MemoryAnalysis& memory, TextWriter* out) {
  for (std::string_view head : {"live at peak", "kind"}) WriteCell(head, 14, out);
  *out << "instruction\n";
  const std::vector<LiveBuffer> buffers = memory.LiveAtPeak(module);
  for (size_t k = 0; k < std::min(buffers.size(), flags.top); ++k) {
    WriteCell(HumanBytes(buffers[k].bytes), 14, out);
    WriteCell(ToString(buffers[k].kind), 14, out);
    const Instruction producer = module.instruction(buffers[k].defining_instruction);
    *out << producer.name();
    if (producer.shape().IsTuple()) *out << "  leaf " << buffers[k].leaf;
    if (!producer.parent().is_entry()) *out << "  in " << producer.parent().name();
    *out << "\n";
  }
  WriteMore(buffers.size(), flags.top, out);
}

void WriteRows(const MemoryFlags& flags, const Module& module, const MemoryAnalysis& memory, TextWriter* out) {
  WriteCell("live at peak", 14, out);
  WriteCell("buffers", 7, out);
  *out << KeyName(flags.by) << "\n";
  const std::vector<MemoryRow> rows = LiveAtPeakBy(module, memory, flags.by);
  for (size_t k = 0; k < std::min(rows.size(), flags.top); ++k) {
    WriteCell(HumanBytes(rows[k].bytes), 14, out);
    WriteCell(std::to_string(rows[k].buffers), 7, out);
    *out << rows[k].key << "\n";
  }
  WriteMore(rows.size(), flags.top, out);
}

void WriteText(const MemoryFlags& flags, const Module& module, const MemoryAnalysis& memory, TextWriter* out) {
  const MemoryUse& use = memory.OfModule();
  const auto line = [out](std::string_view what, int64_t bytes, std::string_view more = "") {
    *out << "  " << what;
    for (size_t n = what.size(); n < 11; ++n) *out << ' ';
    *out << HumanBytes(bytes) << more << "\n";
  };
  *out << "module " << module.name() << (module.header().is_scheduled ? "" : "  (not scheduled: in post-order)")
       << "\n";
  WriteMemoryNote(module, out);
  line("peak", use.peak_bytes, "  at " + std::string(PeakName(module, use)));
  line("arguments", use.argument_bytes);
  line("results", use.result_bytes, "  beyond those in the memory of arguments");
  line("constants", use.constant_bytes, "  not in the peak");
  *out << "\n";
  if (flags.by == CostKey::kInstruction) {
    WriteBuffers(flags, module, memory, out);
  } else {
    WriteRows(flags, module, memory, out);
  }
  if (!flags.timeline) return;
  *out << "\n";
  WriteCell("live", 14, out);
  *out << "at\n";
  for (size_t place = 0; place < use.order.size(); ++place) {
    WriteCell(HumanBytes(use.live_bytes[place]), 14, out);
    *out << module.instruction(use.order[place]).name() << "\n";
  }
}

// Prints an error if the input has none.
std::optional<dump::AssignmentSummary> ReadAssignment(const InputPart& part, const Module& module,
                                                      const MemoryAnalysis& memory, DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  std::optional<dump::AssignmentSummary> assignment =
      dump::ReadAssignment(*part.source, part.text, module, memory, &sink);
  diagnostics->Show(sink, *part.source);
  if (!assignment && !sink.has_errors()) {
    diagnostics->ShowError(part.label(),
                           "no buffer assignment: an HloProto of a dump after optimization has one "
                           "(--xla_dump_hlo_as_proto)",
                           kRejected);
  }
  return assignment;
}

int Run(const MemoryFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    bool first = true;
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      const absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Create(module);
      if (!memory.ok()) {
        diagnostics.ShowError(part.label(), std::string(memory.status().message()), kRejected);
        return;
      }
      std::optional<dump::AssignmentSummary> assignment;
      if (flags.assignment) {
        assignment = ReadAssignment(part, module, *memory, &diagnostics);
        if (!assignment) return;
      }
      if (flags.json) {
        WriteJson(flags, part, module, *memory, assignment, &json);
      } else {
        out << (std::exchange(first, false) ? "" : "\n");
        WriteText(flags, module, *memory, &out);
        if (assignment) WriteAssignmentText(*assignment, memory->OfModule(), flags.top, &out);
      }
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddMemoryCommand(CLI::App* app) {
  auto flags = std::make_shared<MemoryFlags>();
  CLI::App* command = app->add_subcommand(
      "memory", "estimate the memory of buffers in the order of the instructions, and the live buffers at the peak");
  flags->AddTo(command);
  AddCostKey(command, &flags->by, "what to group live buffers at the peak by", "instruction");
  AddNumber(command, "--top", &flags->top, "limit on the rows; the JSON has all")->default_str("20");
  command->add_flag("--timeline", flags->timeline,
                    "print the live bytes at each instruction of the entry computation too");
  command->add_flag("--assignment", flags->assignment,
                    "show the buffer assignment of the dump, an HloProto, beside the estimate");
  command->footer(
      "Notes:\n"
      "  The order is that of the text of a scheduled module, otherwise post-order.\n"
      "  Bytes exclude padding.\n\n"
      "Examples:\n"
      "  hlo-inspect memory module.hlo\n"
      "  hlo-inspect memory --by=scope module.hlo\n"
      "  hlo-inspect memory --assignment module_0001.jit_f.hlo.pb\n"
      "  hlo-opt --passes=default,schedule module.hlo | hlo-inspect memory\n"
      "  hlo-inspect memory --json --timeline module.hlo | jq '.[0].timeline[].bytes'");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
