// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/cost.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/double_text.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module_statistics.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/cost_key.h"
#include "passes/analysis/execution_counts.h"
#include "tools/hlo_inspect/quantities.h"
#include "tools/hlo_inspect/whole_program.h"

namespace hlokit::cli {
namespace {

struct CostFlags : InspectFlags {
  CostKey by = CostKey::kOpcode;
  bool trip_counts = true;
  CostColumn sort = CostColumn::kBytes;
  size_t top = 20;
};

const std::map<std::string, CostKey> kKeys = {{"instruction", CostKey::kInstruction},
                                              {"opcode", CostKey::kOpcode},
                                              {"computation", CostKey::kComputation},
                                              {"line", CostKey::kSourceLine},
                                              {"scope", CostKey::kScope}};

const std::map<std::string, CostColumn> kColumns = {{"bytes", CostColumn::kBytes},
                                                    {"bytes_read", CostColumn::kBytesRead},
                                                    {"read", CostColumn::kBytesRead},
                                                    {"bytes_written", CostColumn::kBytesWritten},
                                                    {"written", CostColumn::kBytesWritten},
                                                    {"flops", CostColumn::kFlops},
                                                    {"transcendentals", CostColumn::kTranscendentals},
                                                    {"count", CostColumn::kCount},
                                                    {"key", CostColumn::kKey},
                                                    {"opcode", CostColumn::kOpcode},
                                                    {"computation", CostColumn::kComputation}};

Cost SumOf(const std::vector<CostRow>& rows) {
  Cost sum;
  for (const CostRow& row : rows) sum.Add(row.cost);
  return sum;
}

// Returns nine digits, which distinguish all floats.
std::string Digits(float value) { return FormatDouble(static_cast<double>(value), 9); }

void WriteCostMembers(const Cost& cost, JsonWriter* json) {
  json->Member("flops", cost.flops).Member("transcendentals", cost.transcendentals);
  json->Member("bytes_read", cost.bytes_read).Member("bytes_written", cost.bytes_written);
  json->Member("bytes", cost.bytes());
}

void WriteJson(const CostFlags& flags, const InputPart& part, const Module& module, const CostAnalysis& costs,
               const std::vector<CostRow>& rows, JsonWriter* json) {
  json->BeginObject();
  json->Member("file", part.source->name());
  if (part.count > 1) json->Member("group", part.index + 1);
  json->Member("module", module.name());
  WriteWholeProgramMember(module, json);
  if (flags.trip_counts) WriteUncountedLoops(CountExecutions(module, true).uncounted, json);
  WriteCustomCalls(module, json);
  json->Key("total").BeginObject();
  WriteCostMembers(SumOf(rows), json);
  json->EndObject();
  const CostSums& sums = costs.SumsOf(module.entry());
  json->Key("as_xla_sums").BeginObject();
  json->Member("flops", Digits(sums.flops)).Member("transcendentals", Digits(sums.transcendentals));
  json->Member("bytes", Digits(sums.bytes)).EndObject();
  json->Member("by", KeyName(flags.by)).Member("trip_counts", flags.trip_counts);
  json->Key("rows").BeginArray();
  for (const CostRow& row : rows) {
    json->BeginObject().Member("key", row.key).Member("count", row.count);
    if (const Instruction i = row.instruction; i.valid()) {
      json->Member("computation", i.parent().name()).Member("opcode", i.opcode_text());
      json->Member("shape", ToString(i.shape())).Member("line", KeyOf(i, CostKey::kSourceLine));
    }
    WriteCostMembers(row.cost, json);
    json->EndObject();
  }
  json->EndArray().EndObject();
}

std::string Padded(std::string_view text, size_t width) {
  return StrCat(text, std::string(width - std::min(width, text.size()), ' '));
}

// Returns the shape of the instruction without layouts; of a long tuple the beginning.
std::string ShapeText(Instruction i) {
  constexpr size_t kMaxSize = 32;
  std::string text = ToString(i.shape(), /*with_layout=*/false);
  if (text.size() > kMaxSize) text.replace(kMaxSize - 3, std::string::npos, "...");
  return text;
}

void WriteText(const CostFlags& flags, const Module& module, const CostAnalysis& costs,
               const std::vector<CostRow>& rows, TextWriter* out) {
  const Cost total = SumOf(rows);
  *out << "module " << module.name() << "\n";
  WriteWholeProgramNote(module, out);
  if (flags.trip_counts) WriteUncountedLoopsNote(CountExecutions(module, true).uncounted, out);
  WriteCustomCallsNote(module, out);
  *out << "  flops            " << total.flops << "\n";
  *out << "  transcendentals  " << total.transcendentals << "\n";
  *out << "  bytes            " << total.bytes() << "  (" << HumanBytes(total.bytes_read) << " read, "
       << HumanBytes(total.bytes_written) << " written)\n";
  const CostSums& sums = costs.SumsOf(module.entry());
  *out << "  as XLA sums it   flops=" << Digits(sums.flops) << " transcendentals=" << Digits(sums.transcendentals)
       << " bytes=" << Digits(sums.bytes) << "\n\n";
  const auto cell = [out](std::string_view text, size_t width) {
    for (size_t n = text.size(); n < width; ++n) *out << ' ';
    *out << text << "  ";
  };
  for (std::string_view head : {"bytes", "read", "written"}) cell(head, 11);
  for (std::string_view head : {"flops", "transcend."}) cell(head, 10);
  cell("count", 7);
  *out << KeyName(flags.by);
  size_t widths[3] = {11, 6, 5};  // of name, opcode and shape, with their heads
  const size_t shown = std::min(rows.size(), flags.top);
  if (flags.by == CostKey::kInstruction) {
    for (size_t k = 0; k < shown; ++k) {
      const Instruction i = rows[k].instruction;
      widths[0] = std::max(widths[0], i.name().size());
      widths[1] = std::max(widths[1], i.opcode_text().size());
      widths[2] = std::max(widths[2], ShapeText(i).size());
    }
    *out << std::string(widths[0] - 11, ' ') << "  " << Padded("opcode", widths[1]) << "  "
         << Padded("shape", widths[2]) << "  line, computation";
  }
  *out << "\n";
  for (size_t k = 0; k < shown; ++k) {
    const CostRow& row = rows[k];
    for (int64_t n : {row.cost.bytes(), row.cost.bytes_read, row.cost.bytes_written}) cell(HumanBytes(n), 11);
    for (int64_t n : {row.cost.flops, row.cost.transcendentals}) cell(HumanCount(static_cast<double>(n)), 10);
    cell(std::to_string(row.count), 7);
    if (const Instruction i = row.instruction; i.valid()) {
      *out << Padded(i.name(), widths[0]) << "  " << Padded(i.opcode_text(), widths[1]) << "  "
           << Padded(ShapeText(i), widths[2]) << "  " << KeyOf(i, CostKey::kSourceLine) << ", " << i.parent().name()
           << "\n";
    } else {
      *out << row.key << "\n";
    }
  }
  if (rows.size() > flags.top) *out << "... " << static_cast<int64_t>(rows.size() - flags.top) << " more\n";
}

int Run(const CostFlags& flags) {
  if (flags.by != CostKey::kInstruction &&
      (flags.sort == CostColumn::kOpcode || flags.sort == CostColumn::kComputation)) {
    return UsageError("hlo-inspect", StrCat("--sort=", flags.sort == CostColumn::kOpcode ? "opcode" : "computation",
                                            " requires --by=instruction"));
  }
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    bool first = true;
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      const CostAnalysis costs(module);
      const std::vector<CostRow> rows = CostTable(module, costs, {flags.by, flags.trip_counts, flags.sort, StatedCost});
      if (flags.json) {
        WriteJson(flags, part, module, costs, rows, &json);
      } else {
        out << (std::exchange(first, false) ? "" : "\n");
        WriteText(flags, module, costs, rows, &out);
      }
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

std::string_view KeyName(CostKey key) {
  for (const auto& [name, value] : kKeys) {
    if (value == key) return name;
  }
  return "";
}

void AddCostKey(CLI::App* command, CostKey* key, const std::string& what, const std::string& absent) {
  std::vector<std::string> names;
  for (const auto& named : kKeys) names.push_back(named.first);
  command
      ->add_option_function<std::string>(
          "--by", [key](const std::string& name) { *key = kKeys.at(name); },
          what + ": instruction, opcode, computation, line (of the source), scope")
      ->check(CLI::IsMember(names))
      ->default_str(absent);
}

InspectCommand AddCostCommand(CLI::App* app) {
  auto flags = std::make_shared<CostFlags>();
  CLI::App* command = app->add_subcommand(
      "cost", "count operations, transcendental functions and bytes read and written, as XLA's cost analysis does");
  flags->AddTo(command);
  AddCostKey(command, &flags->by, "what to group rows by", "opcode");
  std::vector<std::string> columns;
  for (const auto& named : kColumns) columns.push_back(named.first);
  command
      ->add_option_function<std::string>(
          "--sort", [flags](const std::string& name) { flags->sort = kColumns.at(name); },
          "column to sort rows by, largest first, under its name in the JSON; key: by name; of instructions also "
          "opcode, computation: by name, then by bytes")
      ->check(CLI::IsMember(columns))
      ->default_str("bytes");
  command->add_flag("--trip-counts,!--no-trip-counts", flags->trip_counts,
                    "multiply loop bodies by their trip counts, where these are known (default on)");
  AddNumber(command, "--top", &flags->top, "limit on the rows; the JSON has all")->default_str("20");
  command->footer(
      "Notes:\n"
      "  Totals are the sums of the rows: each iteration of a loop with a known trip\n"
      "  count, else one, and all branches of a conditional. XLA's sums count one\n"
      "  iteration and the most expensive branch.\n\n"
      "Examples:\n"
      "  hlo-inspect cost module.hlo\n"
      "  hlo-inspect cost --by=scope --sort=flops module.hlo\n"
      "  hlo-inspect cost --by=instruction --json module.hlo | jq '.[0].rows[:10]'\n"
      "  hlo-opt --passes=default module.hlo | hlo-inspect cost");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
