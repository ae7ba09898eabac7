// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/collectives.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module_statistics.h"
#include "passes/target/collective_table.h"
#include "tools/hlo_inspect/quantities.h"
#include "tools/hlo_inspect/query.h"
#include "tools/hlo_inspect/whole_program.h"

namespace hlokit::cli {
namespace {

void Write(const InspectFlags& flags, const InputPart& part, const Module& module,
           const std::vector<tpu::CollectiveRow>& rows, TextWriter* out, JsonWriter* json) {
  const TextLines lines(part.source->text());
  const std::map<std::string, tpu::CollectiveCount> totals = tpu::CountByKind(rows);
  if (flags.json) {
    BeginModule(part, module, json);
    WriteWholeProgramMember(module, json);
    json->Key("collectives").BeginArray();
    for (const tpu::CollectiveRow& row : rows) {
      json->BeginObject().Member("kind", row.kind).Member("groups", row.groups).Member("bytes", row.bytes);
      json->Member("result_bytes", row.result_bytes).Member("runs", row.runs);
      json->Member("async", row.async).Member("overlapped_instructions", row.overlapped_instructions);
      json->Member("overlapped_flops", row.overlapped_flops).Member("overlapped_bytes", row.overlapped_bytes);
      WriteMembers(lines, row.instruction, json);
      json->EndObject();
    }
    json->EndArray().Key("totals").BeginArray();
    for (const auto& [kind, total] : totals) {
      json->BeginObject().Member("kind", kind).Member("count", total.count).Member("runs", total.runs);
      json->Member("async", total.async);
      json->Member("overlapped", total.overlapped).Member("bytes", total.bytes).EndObject();
    }
    json->EndArray().EndObject();
    return;
  }
  for (const tpu::CollectiveRow& row : rows) {
    constexpr size_t kMaxGroups = 40;
    const std::string groups =
        row.groups.size() > kMaxGroups ? StrCat(row.groups.substr(0, kMaxGroups), "...") : row.groups;
    const std::string overlap = !row.async
                                    ? "blocks"
                                    : StrCat("beside ", row.overlapped_instructions,
                                             row.overlapped_instructions == 1 ? " instruction, " : " instructions, ",
                                             HumanCount(static_cast<double>(row.overlapped_flops)), " flops, ",
                                             HumanBytes(row.overlapped_bytes));
    *out << part.label() << ":" << lines.Of(row.instruction) << ": " << row.instruction.name() << "  " << row.kind
         << "  " << HumanBytes(row.bytes) << (row.runs == 1 ? "" : StrCat(" x ", row.runs)) << "  groups "
         << (groups.empty() ? "{}" : groups) << "  " << overlap << "\n";
  }
  WriteUnpartitionedNote(module, out);
  *out << absl::StrFormat("%7s %7s %7s %11s %12s  %s\n", "count", "runs", "async", "overlapped", "bytes", "kind");
  for (const auto& [kind, total] : totals) {
    *out << absl::StrFormat("%7d %7d %7d %11d %12s  %s\n", total.count, total.runs, total.async, total.overlapped,
                            HumanBytes(total.bytes), kind);
  }
}

int Run(const InspectFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      Write(flags, part, module, tpu::CollectiveTable(module), &out, &json);
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddCollectivesCommand(CLI::App* app) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command =
      app->add_subcommand("collectives", "list the communication among devices: kind, groups, bytes, overlap");
  flags->AddTo(command);
  command->footer(
      "Notes:\n"
      "  Bytes are those of the operands on one device; totals are those of one execution,\n"
      "  with loops counted as often as they run, or once if that is not known (x N: runs\n"
      "  of a collective), and all branches of conditionals. A collective overlaps what is\n"
      "  between its start and its end in the order of the text, which is the\n"
      "  schedule of a scheduled module. Collectives in fusions are listed with the\n"
      "  fusion: an all-reduce of which a device keeps its part as a reduce-scatter.\n\n"
      "Examples:\n"
      "  hlo-inspect collectives module.hlo\n"
      "  hlo-opt --passes=tpu module.hlo | hlo-inspect collectives\n"
      "  hlo-inspect collectives --json module.hlo | jq '.[0].totals'");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
