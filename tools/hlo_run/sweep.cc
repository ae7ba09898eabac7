// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/sweep.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/verify/verifier.h"
#include "passes/rewrite/type_conversion.h"
#include "simulator/memory/memory_plan.h"
#include "simulator/report/device_report.h"
#include "simulator/report/number_text.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/device_selection.h"
#include "simulator/timing/simulator.h"
#include "tools/cli/flags/device_flag.h"
#include "tools/cli/kept_messages.h"
#include "tools/hlo_run/device_options.h"

namespace hlokit::run {

namespace {

constexpr size_t kPlotWidth = 48;
constexpr ElementType kFloats[] = {ElementType::kF64, ElementType::kF32, ElementType::kF16, ElementType::kBF16};

struct Row {
  std::string value;
  double step_us = 0;
  double device_us = 0;
  double busy = 0;
  int64_t peak_bytes = 0;
  int64_t used_devices = 1;
  int64_t devices = 1;
  bool fits = true;
  std::string bound;
};

std::unique_ptr<Module> OfType(std::unique_ptr<Module> module, const std::string& type,
                               cli::DiagnosticReporter* diagnostics) {
  const std::optional<ElementType> to = ElementTypeFromText(type);
  if (!to || std::find(std::begin(kFloats), std::end(kFloats), *to) == std::end(kFloats)) {
    diagnostics->ShowError("--sweep", StrCat("expected dtype f32, bf16, f16 or f64, found `", type, "`"), cli::kUsage);
    return nullptr;
  }
  ConvertFloatTypes(module.get(), kFloats, *to);
  DiagnosticSink sink;
  VerifyModule(*module, VerifierOptions(), &sink);
  if (!sink.has_errors()) return module;
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
              const SweepPrograms& programs, bool family, cli::DiagnosticReporter* diagnostics, Row* row) {
  SimulationFlags one = flags;
  const std::unique_ptr<Module> module = Prepare(what, value, programs, family, &one, diagnostics);
  if (module == nullptr) return false;
  const std::optional<tpu::SimulationOptions> options = OptionsFor(one, *module, diagnostics);
  if (!options) return false;
  if (!one.pipeline.empty() && tpu::IsCompiledForOtherDevice(*module)) {
    diagnostics->ShowWarning(StrCat(what, "=", value), tpu::kCompiledAgain);
  }
  if (!CompileFor(one, *options, module.get(), nullptr, diagnostics)) return false;
  const tpu::KernelPlan plan(*module);
  const tpu::Simulation simulation = tpu::Simulate(*module, plan, *options);
  const tpu::MemoryPlan memory = tpu::PlanMemory(options->machine, *module, plan, simulation.implicit_partitions);
  const tpu::DeviceUse use = tpu::DeviceUseOf(*options, simulation);
  *row = {value,
          tpu::ToMicroseconds(simulation.step_seconds),
          tpu::ToMicroseconds(simulation.device_seconds),
          tpu::Share(simulation.core_busy, simulation.device_seconds),
          memory.peak_bytes,
          use.used_devices,
          use.devices,
          memory.fits(),
          std::string(tpu::ToString(simulation.bound))};
  return true;
}

// Simulates a value. Returns false after an error.
using SimulateValue = std::function<bool(const std::string& value, Row* row)>;

// What a process sends of a value, before the name of the bound and the messages.
struct RowMessage {
  int64_t index = 0;
  double step_us = 0;
  double device_us = 0;
  double busy = 0;
  int64_t peak_bytes = 0;
  int64_t used_devices = 1;
  int64_t devices = 1;
  int32_t fits = 0;
  int32_t exit_code = cli::kOk;
  uint64_t bound_bytes = 0;
  uint64_t text_bytes = 0;
};

// Simulates values from the queue of all processes, up to the first error of this one.
std::string SimulateFromQueue(const SimulateValue& simulate, absl::Span<const std::string> values,
                              interp::MpiSession* session, cli::DiagnosticReporter* diagnostics) {
  std::string sent;
  for (int64_t i = 0; diagnostics->exit_code() == cli::kOk;) {
    i = session->NextItem();
    if (i >= static_cast<int64_t>(values.size())) break;
    Row row;
    std::string text;
    {
      const cli::KeptMessages kept(&text);
      if (!simulate(values[static_cast<size_t>(i)], &row)) diagnostics->Fail(cli::kRejected);
    }
    const RowMessage message = {i,
                                row.step_us,
                                row.device_us,
                                row.busy,
                                row.peak_bytes,
                                row.used_devices,
                                row.devices,
                                row.fits ? 1 : 0,
                                diagnostics->exit_code(),
                                row.bound.size(),
                                text.size()};
    sent.append(reinterpret_cast<const char*>(&message), sizeof(message));
    StrAppend(&sent, row.bound, text);
  }
  return sent;
}

// Sets rows of values. Prints messages up to the error of the first value that has one, in all processes alike. Returns
// false after an error.
bool SimulateInProcesses(const SimulateValue& simulate, absl::Span<const std::string> values,
                         interp::MpiSession* session, cli::DiagnosticReporter* diagnostics, std::vector<Row>* rows) {
  session->EndSetup();
  const absl::StatusOr<std::vector<std::string>> all =
      session->AllGatherBytes(SimulateFromQueue(simulate, values, session, diagnostics));
  if (!all.ok()) {
    diagnostics->ShowError("", std::string(all.status().message()), cli::kInternal);
    return false;
  }
  std::vector<std::string> texts(values.size());
  std::vector<int32_t> exit_codes(values.size(), cli::kOk);
  for (std::string_view rest : *all) {
    while (rest.size() >= sizeof(RowMessage)) {
      RowMessage m;
      std::memcpy(&m, rest.data(), sizeof(m));
      rest.remove_prefix(sizeof(m));
      const auto i = static_cast<size_t>(m.index);
      if (i >= values.size() || m.bound_bytes > rest.size() || m.text_bytes > rest.size() - m.bound_bytes) break;
      (*rows)[i] = {values[i], m.step_us,    m.device_us,
                    m.busy,    m.peak_bytes, m.used_devices,
                    m.devices, m.fits != 0,  std::string(rest.substr(0, m.bound_bytes))};
      texts[i] = rest.substr(m.bound_bytes, m.text_bytes);
      exit_codes[i] = m.exit_code;
      rest.remove_prefix(m.bound_bytes + m.text_bytes);
    }
  }
  for (size_t i = 0; i < values.size(); ++i) {
    std::fwrite(texts[i].data(), 1, texts[i].size(), stderr);
    if (exit_codes[i] == cli::kOk) continue;
    diagnostics->Fail(static_cast<cli::ExitCode>(exit_codes[i]));
    return false;
  }
  return true;
}

std::string Table(const std::string& what, const std::vector<Row>& rows) {
  std::string out;
  TextWriter writer(&out);
  const bool each = what == "batch";
  for (std::string_view head : {"step", "device"}) tpu::PrintCell(head, 15, &writer);
  if (each) tpu::PrintCell("an example", 13, &writer);
  for (std::string_view head : {"busy %", "HBM GiB", "fits"}) tpu::PrintCell(head, 8, &writer);
  writer << "bound by        " << what << "\n";
  double longest = 0;
  for (const Row& row : rows) {
    longest = std::max(longest, row.step_us);
    tpu::PrintCell(tpu::FormatSeconds(row.step_us * 1e-6), 15, &writer);
    tpu::PrintCell(tpu::FormatSeconds(row.device_us * 1e-6), 15, &writer);
    if (each) {
      const double examples = std::strtod(row.value.c_str(), nullptr);
      tpu::PrintCell(examples > 0 ? tpu::FormatSeconds(row.step_us * 1e-6 / examples) : std::string("-"), 13, &writer);
    }
    tpu::PrintCell(FormatFixed(100 * row.busy, 1), 8, &writer);
    tpu::PrintCell(FormatFixed(static_cast<double>(row.peak_bytes) / (1 << 30), 2), 8, &writer);
    tpu::PrintCell(row.fits ? "yes" : "no", 8, &writer);
    std::string bound = row.bound;
    bound.resize(std::max<size_t>(bound.size(), 14), ' ');
    writer << bound << "  " << row.value;
    if (row.used_devices < row.devices) writer << "  (" << row.used_devices << " of " << row.devices << " devices)";
    writer << "\n";
  }
  if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.used_devices < row.devices; })) {
    writer << "Other devices are idle: the program is not for as many. Trace it again for each number of devices.\n";
  }
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.value.size());
  writer << "\nstep time\n";
  for (const Row& row : rows) {
    tpu::PrintCell(row.value, width, &writer);
    const double part = longest > 0 ? row.step_us / longest : 0;
    writer << "|" << std::string(static_cast<size_t>(std::lround(part * static_cast<double>(kPlotWidth))), '#') << " "
           << tpu::FormatSeconds(row.step_us * 1e-6) << (row.fits ? "" : "  does not fit") << "\n";
  }
  writer.Flush();
  return out;
}

std::string Json(const std::string& what, const std::vector<Row>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    json.push_back({{what, row.value},
                    {"step_time_us", row.step_us},
                    {"device_time_us", row.device_us},
                    {"core_busy", row.busy},
                    {"peak_bytes", row.peak_bytes},
                    {"devices", row.devices},
                    {"used_devices", row.used_devices},
                    {"fits", row.fits},
                    {"bound_by", row.bound}});
  }
  return json.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

std::optional<std::string> Sweep(const SimulationFlags& flags, const SweepPrograms& programs, bool family,
                                 cli::DiagnosticReporter* diagnostics, interp::MpiSession* session) {
  const size_t equal = flags.sweep.find('=');
  const std::string what = flags.sweep.substr(0, equal);
  if (equal == std::string::npos || equal == 0 || equal + 1 == flags.sweep.size()) {
    diagnostics->ShowError("--sweep", StrCat("expected WHAT=VALUE,VALUE,..., found `", flags.sweep, "`"), cli::kUsage);
    return std::nullopt;
  }
  std::vector<std::string_view> names = {"device", "chips", "dtype", "batch", "seq"};
  for (std::string_view parameter : tpu::ScalableParameters()) names.push_back(parameter);
  if (!family && std::find(names.begin(), names.end(), what) == names.end()) {
    const std::string near = DidYouMeanSuffix(what, names);
    diagnostics->ShowError("--sweep",
                           StrCat("cannot sweep `", what, "`",
                                  near.empty() ? "; expected device, chips, dtype, batch, seq or a parameter of the "
                                                 "target as in --scale"
                                               : near),
                           cli::kUsage);
    return std::nullopt;
  }
  std::vector<std::string> values;
  for (size_t at = equal + 1; at <= flags.sweep.size(); at += values.back().size() + 1) {
    values.push_back(flags.sweep.substr(at, flags.sweep.find(',', at) - at));
  }
  if (std::find(values.begin(), values.end(), "") != values.end()) {
    diagnostics->ShowError("--sweep", StrCat("expected a value before and after each comma, found `", flags.sweep, "`"),
                           cli::kUsage);
    return std::nullopt;
  }
  const SimulateValue simulate = [&](const std::string& value, Row* row) {
    return Simulate(flags, what, value, programs, family, diagnostics, row);
  };
  std::vector<Row> rows(values.size());
  if (session != nullptr) {
    if (!SimulateInProcesses(simulate, values, session, diagnostics, &rows)) return std::nullopt;
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!simulate(values[i], &rows[i])) return std::nullopt;
    }
  }
  return flags.json ? Json(what, rows) : Table(what, rows);
}

}  // namespace hlokit::run
