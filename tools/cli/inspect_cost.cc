// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/inspect_cost.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/double_text.h"
#include "ir/core/json_writer.h"
#include "ir/graph/module_statistics.h"
#include "passes/analysis/cost.h"

namespace hlokit::cli {
namespace {

struct CostFlags : InspectFlags {
  CostKey by = CostKey::kOpcode;
  bool trip_counts = false;
  size_t top = 20;
};

const std::map<std::string, CostKey> kKeys = {{"instruction", CostKey::kInstruction},
                                              {"opcode", CostKey::kOpcode},
                                              {"computation", CostKey::kComputation},
                                              {"line", CostKey::kSourceLine},
                                              {"scope", CostKey::kScope}};

// Returns nine digits, which distinguish all floats.
std::string Digits(float value) { return FormatDouble(static_cast<double>(value), 9); }

void WriteMembers(const Cost& cost, JsonWriter* json) {
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
  json->Key("total").BeginObject();
  WriteMembers(costs.OfModule(), json);
  json->EndObject();
  const CostSums& sums = costs.SumsOf(module.entry());
  json->Key("as_xla_sums").BeginObject();
  json->Member("flops", Digits(sums.flops)).Member("transcendentals", Digits(sums.transcendentals));
  json->Member("bytes", Digits(sums.bytes)).EndObject();
  json->Member("by", KeyName(flags.by)).Member("trip_counts", flags.trip_counts);
  json->Key("rows").BeginArray();
  for (const CostRow& row : rows) {
    json->BeginObject().Member("key", row.key).Member("count", row.count);
    WriteMembers(row.cost, json);
    json->EndObject();
  }
  json->EndArray().EndObject();
}

void WriteText(const CostFlags& flags, const Module& module, const CostAnalysis& costs,
               const std::vector<CostRow>& rows, TextWriter* out) {
  const Cost& total = costs.OfModule();
  *out << "module " << module.name() << "\n";
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
  for (std::string_view head : {"bytes", "read", "written", "flops", "transcend."}) cell(head, 16);
  cell("count", 7);
  *out << KeyName(flags.by) << "\n";
  for (size_t k = 0; k < std::min(rows.size(), flags.top); ++k) {
    const CostRow& row = rows[k];
    for (int64_t n :
         {row.cost.bytes(), row.cost.bytes_read, row.cost.bytes_written, row.cost.flops, row.cost.transcendentals}) {
      cell(std::to_string(n), 16);
    }
    cell(std::to_string(row.count), 7);
    *out << row.key << "\n";
  }
  if (rows.size() > flags.top) *out << "... " << static_cast<int64_t>(rows.size() - flags.top) << " more\n";
}

int Run(const CostFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    bool first = true;
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      const CostAnalysis costs(module);
      const std::vector<CostRow> rows = CostTable(module, costs, {flags.by, flags.trip_counts});
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
  command->add_flag("--trip-counts", flags->trip_counts,
                    "multiply loop bodies by their trip counts in the rows, where these are known");
  command->add_option("--top", flags->top, "limit on the rows; the JSON has all")->default_str("20");
  command->footer(
      "Notes:\n"
      "  Totals are those of the entry computation: a loop counts one iteration, a\n"
      "  conditional its most expensive branch.\n\n"
      "Examples:\n"
      "  hlo-inspect cost module.hlo\n"
      "  hlo-inspect cost --by=scope --trip-counts module.hlo\n"
      "  hlo-inspect cost --by=instruction --json module.hlo | jq '.[0].rows[:10]'\n"
      "  hlo-opt --passes=default module.hlo | hlo-inspect cost");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
