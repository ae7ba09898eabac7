// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/top.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module_statistics.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/execution_counts.h"
#include "passes/analysis/memory.h"
#include "simulator/report/device_report.h"
#include "simulator/report/instruction_times.h"
#include "simulator/report/number_text.h"
#include "simulator/report/origin.h"
#include "tools/cli/flags/device_flag.h"
#include "tools/hlo_inspect/quantities.h"
#include "tools/hlo_inspect/query.h"
#include "tools/hlo_inspect/whole_program.h"

namespace hlokit::cli {
namespace {

struct TopFlags : InspectFlags {
  std::string by = "bytes_accessed";
  std::string device;
  size_t count = 20;
};

struct Row {
  Instruction instruction;
  double amount = 0;
  double runs = 1;  // of the instruction in an execution of the module
};

struct Table {
  std::vector<Row> rows;  // the largest first
  double total = 0;
  std::vector<Instruction> uncounted;  // loops of which one iteration is counted
  std::unique_ptr<Module> compiled;    // for times: the module of the rows
  tpu::DeviceUse use;                  // for times
};

Table CostsOf(const Module& module, bool flops) {
  const CostAnalysis costs(module);
  CostTableOptions options;
  options.key = CostKey::kInstruction;
  options.trip_counts = true;
  options.sort = flops ? CostColumn::kFlops : CostColumn::kBytes;
  options.custom_call_cost = StatedCost;
  Table table;
  table.uncounted = CountExecutions(module, /*trip_counts=*/true).uncounted;
  for (const CostRow& row : CostTable(module, costs, options)) {
    const auto amount = static_cast<double>(flops ? row.cost.flops : row.cost.bytes());
    table.total += amount;
    if (amount > 0) table.rows.push_back({row.instruction, amount, static_cast<double>(row.count)});
  }
  return table;
}

absl::StatusOr<Table> MemoryOf(const Module& module) {
  const absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Create(module);
  if (!memory.ok()) return memory.status();
  Table table;
  for (const LiveBuffer& buffer : memory->LiveAtPeak(module)) {
    table.rows.push_back({module.instruction(buffer.defining_instruction), static_cast<double>(buffer.bytes), 1});
    table.total += static_cast<double>(buffer.bytes);
  }
  return table;
}

// Prints an error and returns nullopt if the module cannot be simulated.
std::optional<Table> TimesOf(const TopFlags& flags, const InputPart& part, const Module& module,
                             DiagnosticReporter* diagnostics) {
  std::optional<tpu::InstructionTimes> times = TimeOnDevice(flags.device, part.label(), module, diagnostics);
  if (!times) return std::nullopt;
  Table table;
  table.compiled = std::move(times->compiled);
  table.total = times->device_seconds;
  table.use = times->use;
  for (const tpu::InstructionTime& row : times->rows) table.rows.push_back({row.instruction, row.seconds, row.runs});
  return table;
}

std::string AmountText(const TopFlags& flags, double amount) {
  if (flags.by == "time") return tpu::FormatSeconds(amount);
  if (flags.by == "flops") return HumanCount(amount);
  return amount < 0x1p62 ? HumanBytes(static_cast<int64_t>(amount)) : absl::StrFormat("%.4g B", amount);
}

void Write(const TopFlags& flags, const InputPart& part, const Module& module, const Table& table, TextWriter* out,
           JsonWriter* json) {
  const TextLines lines(part.source->text());
  const tpu::Origins origins(&module);
  if (flags.json) {
    BeginModule(part, module, json);
    json->Member("by", flags.by);
    if (flags.by == "time") {
      json->Member("device", flags.device).Member("devices", table.use.devices);
      json->Member("used_devices", table.use.used_devices);
    } else {
      WriteWholeProgramMember(module, json);
      if (flags.by != "memory") WriteUncountedLoops(table.uncounted, json);
    }
    json->Member("total", table.total).Key("instructions").BeginArray();
    for (const Row& row : table.rows) {
      json->BeginObject().Member("amount", row.amount).Member("runs", row.runs);
      if (flags.by == "time") json->Member("origin", origins.Of(row.instruction, 0));
      WriteMembers(lines, row.instruction, json);
      json->EndObject();
    }
    json->EndArray().EndObject();
    return;
  }
  *out << part.label() << ": " << AmountText(flags, table.total)
       << (flags.by == "time"     ? StrCat(" on ", flags.device)
           : flags.by == "memory" ? " live at the peak"
           : flags.by == "flops"  ? " operations"
                                  : " read and written")
       << "\n";
  if (flags.by == "memory") {
    WriteMemoryNote(module, out);
  } else if (flags.by != "time") {
    WriteWholeProgramNote(module, out);
    WriteUncountedLoopsNote(table.uncounted, out);
  } else if (const std::string idle = tpu::IdleNote(table.use); !idle.empty()) {
    *out << "  " << idle << "\n";
  }
  for (size_t k = 0; k < std::min(flags.count, table.rows.size()); ++k) {
    const Row& row = table.rows[k];
    *out << absl::StrFormat("%14s %5.1f %%", AmountText(flags, row.amount),
                            table.total > 0 ? 100 * row.amount / table.total : 0.0);
    if (row.runs != 1) *out << absl::StrFormat("  %g times", row.runs);
    // The author of the module has never seen the names of compiled kernels.
    const bool made = flags.by == "time" && row.instruction.opcode() == Opcode::kFusion;
    *out << "  " << (made ? StrCat("[", origins.Of(row.instruction, 0), "] ") : std::string())
         << LineOf(lines, row.instruction) << "\n";
  }
  if (table.rows.size() > flags.count) {
    *out << "... " << static_cast<int64_t>(table.rows.size() - flags.count) << " more (--top)\n";
  }
}

int Run(TopFlags flags) {
  if (flags.by == "bytes") flags.by = "bytes_accessed";
  if ((flags.by == "time") == flags.device.empty()) {
    return UsageError("hlo-inspect",
                      flags.device.empty() ? "top: --by=time requires --device" : "top: --device requires --by=time");
  }
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      if (flags.by == "time") {
        const std::optional<Table> table = TimesOf(flags, part, module, &diagnostics);
        if (table) Write(flags, part, module, *table, &out, &json);
        return;
      }
      const absl::StatusOr<Table> table =
          flags.by == "memory" ? MemoryOf(module) : CostsOf(module, flags.by == "flops");
      if (!table.ok()) {
        diagnostics.ShowError(part.label(), std::string(table.status().message()), kRejected);
        return;
      }
      Write(flags, part, module, *table, &out, &json);
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddTopCommand(CLI::App* app) {
  auto flags = std::make_shared<TopFlags>();
  CLI::App* command = app->add_subcommand("top", "print the instructions that take most time, bytes, flops or memory");
  flags->AddTo(command);
  command
      ->add_option(
          "--by", flags->by,
          "what to rank by: bytes_accessed (read and written; or bytes), flops, memory (live at the peak), time (on "
          "--device)")
      ->check(CLI::IsMember({"bytes_accessed", "bytes", "flops", "memory", "time"}))
      ->capture_default_str();
  command->add_option("--device", flags->device, "a simulated TPU for --by=time, such as v5e or v5p:4x4x4")
      ->type_name("DEVICE");
  AddNumber(command, "--top", &flags->count, "limit on the rows; the JSON has all")->default_str("20");
  command->footer(
      "Notes:\n"
      "  Loops with a known trip count multiply what their bodies take. Times are of\n"
      "  the kernels of the module as `hlo-run --device` compiles and simulates it.\n\n"
      "Examples:\n"
      "  hlo-inspect top module.hlo\n"
      "  hlo-inspect top --by=time --device=v5e --top=20 module.hlo\n"
      "  hlo-inspect top --by=memory --json module.hlo");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
