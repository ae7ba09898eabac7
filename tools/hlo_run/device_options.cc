// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/device_options.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <vector>

#include "interp/program/partitioned_program.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/sharding/unpartitioned.h"
#include "passes/core/pipeline.h"
#include "passes/instrumentation/printing.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/device_selection.h"
#include "tools/cli/flags/device_flag.h"

namespace hlokit::run {

namespace {

bool ApplyScale(const std::string& text, tpu::DeviceDescription* machine, cli::DiagnosticReporter* diagnostics) {
  const size_t equal = std::min(text.find('='), text.size());
  double factor = 0;
  const char* const begin = text.data() + std::min(equal + 1, text.size());
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), factor);
  const bool valid = error == std::errc() && end == text.data() + text.size() && factor > 0;
  // An unknown name is the first thing to say.
  absl::Status status = tpu::ScaleParameter(std::string_view(text).substr(0, equal), valid ? factor : 1, machine);
  if (status.ok() && !valid) {
    status = absl::InvalidArgumentError(StrCat("expected PARAMETER=FACTOR with a positive factor, found `", text, "`"));
  }
  if (!status.ok()) diagnostics->ShowError("--scale", std::string(status.message()), cli::kUsage);
  return status.ok();
}

}  // namespace

std::optional<tpu::SimulationOptions> OptionsFor(const SimulationFlags& flags, const Module& module,
                                                 cli::DiagnosticReporter* diagnostics) {
  const auto [name, topology] = tpu::SplitDeviceName(flags.device);
  std::optional<tpu::DeviceDescription> machine = cli::LoadDeviceDescription(name, diagnostics);
  if (!machine) return std::nullopt;
  for (const std::string& scale : flags.scale) {
    if (!ApplyScale(scale, &*machine, diagnostics)) return std::nullopt;
  }
  tpu::SimulationOptions options;
  options.machine = *std::move(machine);
  options.default_trip_count = flags.default_trip_count;
  if (!flags.variation.Read(&options.variation, diagnostics)) return std::nullopt;
  options.dispatch = flags.dispatch_us < 0 ? -1 : flags.dispatch_us * 1e-6;
  absl::StatusOr<tpu::Topology> chips = tpu::TopologyFor(options.machine, topology, module, flags.device);
  if (!chips.ok()) {
    diagnostics->ShowError("--device", std::string(chips.status().message()),
                           absl::IsInvalidArgument(chips.status()) ? cli::kUsage : cli::kRejected);
    return std::nullopt;
  }
  options.topology = *std::move(chips);
  if (absl::Status s = cli::CheckStragglers(options); !s.ok()) {
    diagnostics->ShowError("--straggler", std::string(s.message()), cli::kUsage);
    return std::nullopt;
  }
  return options;
}

bool CompileFor(const SimulationFlags& flags, const tpu::SimulationOptions& options, Module* module,
                DiagnosticSink* warnings, cli::DiagnosticReporter* diagnostics) {
  if (flags.pipeline.empty()) return true;
  const bool again = tpu::IsCompiledForOtherDevice(*module);
  if (module->header().is_scheduled && !again) return true;
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(flags.pipeline);
  if (!pipeline.ok()) {
    diagnostics->ShowError("--pipeline", std::string(pipeline.status().message()), cli::kUsage);
    return false;
  }
  const re2::RE2 shown(flags.print_hlo, re2::RE2::Quiet);
  if (!shown.ok()) {
    diagnostics->ShowError("--print-after", StrCat("`", flags.print_hlo, "`: ", shown.error()), cli::kUsage);
    return false;
  }
  const auto matches = [&](std::string_view name) {
    return re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), shown);
  };
  PrintIr printer({.before = {}, .after = matches, .changes = PrintIr::Changes::kOff},
                  [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); });
  PassInstrumentation* const instruments[] = {&printer};
  if (again) {
    if (const absl::Status s = tpu::RemoveCompilation(module); !s.ok()) {
      diagnostics->ShowError(module->name(), std::string(s.message()), cli::kRejected);
      return false;
    }
  }
  PipelineOptions passes = {.context = tpu::PassContextFor(options, *module)};
  passes.context.diagnostics = warnings;
  const int64_t partitions = module->header().num_partitions;
  const bool whole = AwaitsPartitioning(*module);
  const absl::StatusOr<Pipeline::Result> result =
      pipeline->Run(*module, passes, absl::MakeConstSpan(instruments, flags.print_hlo.empty() ? 0 : 1));
  if (result.ok()) return true;
  if (whole && warnings != nullptr && FirstUnpartitioned(*module).valid()) {
    interp::ReportPartitionError(*module, result.status(),
                                 StrCat("the program is for ", partitions,
                                        " partitions, as --partitions or else num_partitions in its header says; ",
                                        "hlo-opt --passes=sharding-remover removes the shardings"),
                                 warnings);
    return false;
  }
  diagnostics->ShowError("--pipeline", std::string(result.status().message()), cli::kRejected);
  return false;
}

}  // namespace hlokit::run
