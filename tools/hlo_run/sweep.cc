// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/sweep.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/processes/shared_items.h"
#include "ir/core/str_cat.h"
#include "passes/rewrite/type_conversion.h"
#include "simulator/report/sweep_table.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/device_selection.h"
#include "tools/cli/kept_messages.h"
#include "tools/hlo_run/device_options.h"

namespace hlokit::run {

namespace {

std::unique_ptr<Module> OfType(std::unique_ptr<Module> module, const std::string& type,
                               cli::DiagnosticReporter* diagnostics) {
  const std::optional<ElementType> to = ComputeTypeFromText(type);
  if (!to) {
    diagnostics->ShowError("--sweep", StrCat("expected dtype f32, bf16, f16 or f64, found `", type, "`"), cli::kUsage);
    return nullptr;
  }
  DiagnosticSink sink;
  if (ConvertComputeTypes(module.get(), *to, &sink)) return module;
  const auto first = std::find_if(sink.diagnostics().begin(), sink.diagnostics().end(),
                                  [](const Diagnostic& d) { return d.severity == Severity::kError; });
  diagnostics->ShowError("--sweep", StrCat("dtype=", type, ": the program depends on its types: ", first->message),
                         cli::kRejected);
  return nullptr;
}

// Prepares the module of a row: the value applies to the flags or to the program.
std::unique_ptr<Module> Prepare(const std::string& what, const std::string& value, const SweepPrograms& programs,
                                bool family, SimulationFlags* flags, cli::DiagnosticReporter* diagnostics) {
  std::unique_ptr<Module> module = programs(value);
  if (module == nullptr || family) return module;
  if (what == "device") {
    flags->device = value;
  } else if (what == "chips") {
    flags->device = StrCat(tpu::SplitDeviceName(flags->device).first, ":", value);
  } else if (what == "dtype") {
    return OfType(std::move(module), value, diagnostics);
  } else if (what == "batch" || what == "seq") {
    diagnostics->ShowError("--sweep",
                           StrCat("a program has one ", what,
                                  ": specify a program for each value, with {} in the name of the input, as in ",
                                  "step.{}.hlo; ir-dump --model=... --", what, "=N generates them"),
                           cli::kUsage);
    return nullptr;
  } else {
    flags->scale.push_back(StrCat(what, "=", value));
  }
  return module;
}

bool Simulate(const SimulationFlags& flags, const std::string& what, const std::string& value,
              const SweepPrograms& programs, bool family, cli::DiagnosticReporter* diagnostics, tpu::SweepRow* row) {
  SimulationFlags one = flags;
  const std::unique_ptr<Module> module = Prepare(what, value, programs, family, &one, diagnostics);
  if (module == nullptr) return false;
  const std::optional<tpu::SimulationOptions> options = OptionsFor(one, *module, diagnostics);
  if (!options) return false;
  if (!one.pipeline.empty() && tpu::IsCompiledForOtherDevice(*module)) {
    diagnostics->ShowWarning(StrCat(what, "=", value), tpu::kCompiledAgain);
  }
  if (!CompileFor(one, *options, module.get(), nullptr, diagnostics)) return false;
  *row = tpu::SimulateSweepRow(value, *options, *module);
  return true;
}

// Simulates a value. Returns false after an error.
using SimulateValue = std::function<bool(const std::string& value, tpu::SweepRow* row)>;

// What a process sends of a value, before its row and messages.
struct RowHeader {
  int32_t exit_code = cli::kOk;
  uint32_t row_bytes = 0;
};

// Sets rows of values. Prints messages up to the error of the first value that has one, in all processes alike. Returns
// false after an error.
bool SimulateInProcesses(const SimulateValue& simulate, absl::Span<const std::string> values,
                         interp::MpiSession* session, cli::DiagnosticReporter* diagnostics,
                         std::vector<tpu::SweepRow>* rows) {
  const auto work = [&](size_t i, std::string* sent) {
    tpu::SweepRow row;
    std::string messages;
    {
      const cli::KeptMessages kept(&messages);
      if (!simulate(values[i], &row)) diagnostics->Fail(cli::kRejected);
    }
    const std::string encoded = tpu::EncodeSweepRow(row);
    const RowHeader header = {diagnostics->exit_code(), static_cast<uint32_t>(encoded.size())};
    sent->append(reinterpret_cast<const char*>(&header), sizeof(header));
    StrAppend(sent, encoded, messages);
    return diagnostics->exit_code() == cli::kOk;
  };
  const absl::StatusOr<std::vector<std::string>> all = interp::ShareItems(session, values.size(), work);
  if (!all.ok()) {
    diagnostics->ShowError("", std::string(all.status().message()), cli::kInternal);
    return false;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    std::string_view rest = (*all)[i];
    RowHeader header;
    if (rest.size() < sizeof(header)) continue;  // a process had an error before
    std::memcpy(&header, rest.data(), sizeof(header));
    rest.remove_prefix(sizeof(header));
    tpu::DecodeSweepRow(rest.substr(0, header.row_bytes), &(*rows)[i]);
    rest.remove_prefix(std::min<size_t>(header.row_bytes, rest.size()));
    std::fwrite(rest.data(), 1, rest.size(), stderr);
    if (header.exit_code == cli::kOk) continue;
    diagnostics->Fail(static_cast<cli::ExitCode>(header.exit_code));
    return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> Sweep(const SimulationFlags& flags, const SweepPrograms& programs, bool family,
                                 cli::DiagnosticReporter* diagnostics, interp::MpiSession* session) {
  const absl::StatusOr<tpu::SweepValues> sweep = tpu::ParseSweep(flags.sweep, /*any=*/family);
  if (!sweep.ok()) {
    diagnostics->ShowError("--sweep", std::string(sweep.status().message()), cli::kUsage);
    return std::nullopt;
  }
  const std::vector<std::string>& values = sweep->values;
  const SimulateValue simulate = [&](const std::string& value, tpu::SweepRow* row) {
    return Simulate(flags, sweep->what, value, programs, family, diagnostics, row);
  };
  std::vector<tpu::SweepRow> rows(values.size());
  if (session != nullptr) {
    if (!SimulateInProcesses(simulate, values, session, diagnostics, &rows)) return std::nullopt;
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!simulate(values[i], &rows[i])) return std::nullopt;
    }
  }
  return flags.json ? tpu::SweepJson(sweep->what, rows) : tpu::SweepTable(sweep->what, rows);
}

}  // namespace hlokit::run
