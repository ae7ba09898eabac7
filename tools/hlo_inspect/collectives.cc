// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/collectives.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module_statistics.h"
#include "passes/analysis/cost_key.h"
#include "passes/analysis/execution_counts.h"
#include "passes/target/collective_table.h"
#include "simulator/report/instruction_times.h"
#include "simulator/report/number_text.h"
#include "tools/cli/flags/device_flag.h"
#include "tools/hlo_inspect/quantities.h"
#include "tools/hlo_inspect/query.h"
#include "tools/hlo_inspect/whole_program.h"

namespace hlokit::cli {
namespace {

const std::vector<std::string> kGroupColumns = {"kind", "shape",       "groups",     "scope",
                                                "line", "computation", "instruction"};

struct CollectivesFlags : InspectFlags {
  std::vector<std::string> by = {"kind", "shape", "groups"};
  std::string device;
  size_t top = 20;
};

// A collective, and what an execution of the module makes of it.
struct Collective {
  tpu::CollectiveRow row;
  double seconds = 0;  // of all runs; with --device
  double exposed = 0;
};

// Collectives with equal keys.
struct CollectiveGroup {
  std::vector<std::string> key;
  int64_t count = 0;  // of instructions
  int64_t runs = 0;
  int64_t async = 0, overlapped = 0;
  int64_t bytes = 0;  // of all runs
  double seconds = 0, exposed = 0;
  const Collective* last = nullptr;  // that was added
};

struct CollectiveReport {
  std::vector<Collective> collectives;
  std::vector<CollectiveGroup> groups;  // the most bytes first; with --device the most exposed time
  CollectiveGroup total;
  std::vector<Instruction> uncounted;  // loops
};

std::string ColumnText(const tpu::CollectiveRow& row, const std::string& column) {
  if (column == "kind") return row.kind;
  if (column == "shape") return ToString(row.instruction.shape(), /*with_layout=*/false);
  if (column == "groups") return row.groups.empty() ? "{}" : row.groups;
  if (column == "scope") return KeyOf(row.instruction, CostKey::kScope);
  if (column == "line") return KeyOf(row.instruction, CostKey::kSourceLine);
  if (column == "computation") return std::string(row.instruction.parent().name());
  return std::string(row.instruction.name());
}

void AddTo(const Collective& collective, CollectiveGroup* group) {
  ++group->count;
  group->runs = SaturatingAdd(group->runs, collective.row.runs);
  group->async += collective.row.async;
  group->overlapped += collective.row.overlapped_instructions > 0;
  group->bytes = SaturatingAdd(group->bytes, SaturatingMultiply(collective.row.bytes, collective.row.runs));
  group->seconds += collective.seconds;
  group->exposed += collective.exposed;
}

// Returns what overlaps a collective.
std::string OverlapText(const tpu::CollectiveRow& row) {
  if (!row.async) return "blocks";
  return StrCat("beside ", Counted(row.overlapped_instructions, "instruction"), ", ",
                HumanCount(static_cast<double>(row.overlapped_flops)), " flops, ", HumanBytes(row.overlapped_bytes));
}

// `times`: of the module, or null.
CollectiveReport ReportOn(const CollectivesFlags& flags, const Module& module, const tpu::InstructionTimes* times) {
  CollectiveReport report;
  ExecutionCounts runs = CountExecutions(module, /*trip_counts=*/true);
  report.uncounted = std::move(runs.uncounted);
  std::map<uint32_t, std::pair<double, double>> seconds;  // by instruction: time, and exposed
  if (times != nullptr) {
    for (const tpu::InstructionTime& time : times->rows) {
      auto& [spent, exposed] = seconds[time.instruction.id().value];
      spent += time.seconds;
      exposed = std::max(exposed, time.exposed);
    }
  }
  std::map<std::vector<std::string>, CollectiveGroup> groups;
  for (tpu::CollectiveRow& row : tpu::CollectiveTable(module)) {
    Collective collective{std::move(row)};
    if (const auto found = seconds.find(collective.row.instruction.id().value); found != seconds.end()) {
      std::tie(collective.seconds, collective.exposed) = found->second;
    }
    report.collectives.push_back(std::move(collective));
  }
  for (const Collective& collective : report.collectives) {
    std::vector<std::string> key;
    for (const std::string& column : flags.by) key.push_back(ColumnText(collective.row, column));
    AddTo(collective, &groups[key]);
    groups[key].last = &collective;
    AddTo(collective, &report.total);
  }
  for (auto& [key, group] : groups) {
    group.key = key;
    report.groups.push_back(std::move(group));
  }
  std::stable_sort(report.groups.begin(), report.groups.end(), [](const CollectiveGroup& a, const CollectiveGroup& b) {
    if (a.exposed != b.exposed) return a.exposed > b.exposed;
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.runs > b.runs;
  });
  return report;
}

void WriteGroupMembers(const CollectivesFlags& flags, const CollectiveGroup& group, JsonWriter* json) {
  json->Member("count", group.count).Member("runs", group.runs).Member("async", group.async);
  json->Member("overlapped", group.overlapped).Member("bytes", group.bytes);
  if (flags.device.empty()) return;
  json->Key("time_us").Rounded(1e6 * group.seconds, 6).Key("exposed_us").Rounded(1e6 * group.exposed, 6);
}

void WriteJson(const CollectivesFlags& flags, const InputPart& part, const Module& module,
               const CollectiveReport& report, JsonWriter* json) {
  const TextLines lines(part.source->text());
  BeginModule(part, module, json);
  WriteWholeProgramMember(module, json);
  if (!flags.device.empty()) json->Member("device", flags.device);
  json->Key("collectives").BeginArray();
  for (const Collective& c : report.collectives) {
    const tpu::CollectiveRow& row = c.row;
    json->BeginObject().Member("kind", row.kind).Member("groups", row.groups).Member("bytes", row.bytes);
    json->Member("result_bytes", row.result_bytes);
    json->Member("runs", row.runs).Member("async", row.async);
    json->Member("overlapped_instructions", row.overlapped_instructions);
    json->Member("overlapped_flops", row.overlapped_flops).Member("overlapped_bytes", row.overlapped_bytes);
    if (!flags.device.empty()) {
      json->Key("time_us").Rounded(1e6 * c.seconds, 6).Key("exposed_us").Rounded(1e6 * c.exposed, 6);
    }
    WriteMembers(lines, row.instruction, json);
    json->EndObject();
  }
  json->EndArray().Key("by").BeginArray();
  for (const std::string& column : flags.by) json->Value(column);
  json->EndArray().Key("rows").BeginArray();
  for (const CollectiveGroup& group : report.groups) {
    json->BeginObject();
    for (size_t k = 0; k < flags.by.size(); ++k) json->Member(flags.by[k], group.key[k]);
    WriteGroupMembers(flags, group, json);
    json->EndObject();
  }
  json->EndArray().Key("totals").BeginArray();
  std::map<std::string, CollectiveGroup> totals;
  for (const Collective& c : report.collectives) AddTo(c, &totals[c.row.kind]);
  for (const auto& [kind, total] : totals) {
    json->BeginObject().Member("kind", kind);
    WriteGroupMembers(flags, total, json);
    json->EndObject();
  }
  json->EndArray();
  WriteUncountedLoops(report.uncounted, json);
  json->EndObject();
}

std::string Shortened(const std::string& text) {
  constexpr size_t kMaxSize = 48;
  return text.size() > kMaxSize ? StrCat(text.substr(0, kMaxSize - 3), "...") : text;
}

void WriteNumbers(const CollectivesFlags& flags, const CollectiveGroup& group, TextWriter* out) {
  *out << absl::StrFormat("%7d %7d %7d %11d %12s", group.count, group.runs, group.async, group.overlapped,
                          HumanBytes(group.bytes));
  if (flags.device.empty()) return;
  *out << absl::StrFormat(" %10s %10s", tpu::FormatSeconds(group.seconds), tpu::FormatSeconds(group.exposed));
}

void WriteText(const CollectivesFlags& flags, const InputPart& part, const Module& module,
               const CollectiveReport& report, TextWriter* out) {
  const TextLines lines(part.source->text());
  const bool each = absl::c_linear_search(flags.by, "instruction");
  *out << part.label() << ": " << Counted(report.total.count, "collective");
  if (!flags.device.empty()) *out << ", as compiled for " << flags.device;
  *out << "\n";
  WriteUnpartitionedNote(module, out);
  WriteUncountedLoopsNote(report.uncounted, out);
  const size_t shown = std::min(flags.top, report.groups.size());
  // The last column has no width, and instructions come with what overlaps them.
  std::vector<size_t> widths;
  for (size_t k = 0; k < flags.by.size(); ++k) {
    widths.push_back(flags.by[k].size());
    for (size_t g = 0; g < shown; ++g) widths[k] = std::max(widths[k], Shortened(report.groups[g].key[k]).size());
  }
  const auto write_key = [&](const auto& text_of) {
    for (size_t k = 0; k < widths.size(); ++k) {
      std::string text = text_of(k);
      if (k + 1 < widths.size() || each) text.resize(std::max(widths[k], text.size()), ' ');
      *out << "  " << text;
    }
  };
  *out << absl::StrFormat("%7s %7s %7s %11s %12s", "count", "runs", "async", "overlapped", "bytes");
  if (!flags.device.empty()) *out << absl::StrFormat(" %10s %10s", "time", "exposed");
  write_key([&](size_t k) { return flags.by[k]; });
  *out << (each ? "  line  overlap\n" : "\n");
  for (size_t g = 0; g < shown; ++g) {
    WriteNumbers(flags, report.groups[g], out);
    write_key([&](size_t k) { return Shortened(report.groups[g].key[k]); });
    if (each) {
      const tpu::CollectiveRow& row = report.groups[g].last->row;
      *out << absl::StrFormat("  %4d  ", lines.Of(row.instruction)) << OverlapText(row);
    }
    *out << "\n";
  }
  if (report.groups.size() > shown)
    *out << "... " << static_cast<int64_t>(report.groups.size() - shown) << " more (--top)\n";
  if (report.groups.size() > 1) {
    WriteNumbers(flags, report.total, out);
    *out << "  in all\n";
  }
}

// Writes the report on a module. Returns false after an error, which is printed.
bool Write(const CollectivesFlags& flags, const InputPart& part, const Module& module, TextWriter* out,
           JsonWriter* json, DiagnosticReporter* diagnostics) {
  std::optional<tpu::InstructionTimes> times;
  if (!flags.device.empty()) {
    times = TimeOnDevice(flags.device, part.label(), module, diagnostics);
    if (!times) return false;
  }
  const Module& shown = times ? *times->compiled : module;
  const CollectiveReport report = ReportOn(flags, shown, times ? &*times : nullptr);
  if (flags.json) {
    WriteJson(flags, part, shown, report, json);
  } else {
    WriteText(flags, part, shown, report, out);
  }
  return true;
}

int Run(const CollectivesFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      Write(flags, part, module, &out, &json, &diagnostics);
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddCollectivesCommand(CLI::App* app) {
  auto flags = std::make_shared<CollectivesFlags>();
  CLI::App* command =
      app->add_subcommand("collectives", "print the communication among devices: kind, groups, bytes, overlap");
  flags->AddTo(command);
  command
      ->add_option("--by", flags->by,
                   "what to group by, separated by commas: kind, shape, groups, scope, line (of the source), "
                   "computation, instruction")
      ->delimiter(',')
      ->check(CLI::IsMember(kGroupColumns))
      ->allow_extra_args(false)
      ->default_str("kind,shape,groups");
  command
      ->add_option(
          "--device", flags->device,
          "compile and simulate on this TPU, such as v5e:2x4, and print the time of each group and how much of "
          "it the core waits")
      ->type_name("DEVICE");
  AddNumber(command, "--top", &flags->top, "limit on the rows; the JSON has all")->default_str("20");
  command->footer(
      "Notes:\n"
      "  Bytes are those of the operands on one device, times the runs: loops with a\n"
      "  known trip count multiply what is in them, others count one iteration and are\n"
      "  named. A collective overlaps what is between its start and its end in the\n"
      "  order of the text, which is the schedule of a scheduled module. Collectives in\n"
      "  fusions count with the fusion: an all-reduce of which a device keeps its part\n"
      "  as a reduce-scatter.\n\n"
      "Examples:\n"
      "  hlo-inspect collectives module.hlo\n"
      "  hlo-inspect collectives --by=scope,kind --top=10 module.hlo\n"
      "  hlo-inspect collectives --by=instruction --device=v5e:2x4 module.hlo\n"
      "  hlo-opt --passes=tpu module.hlo | hlo-inspect collectives\n"
      "  hlo-inspect collectives --json module.hlo | jq '.[0].totals'");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
