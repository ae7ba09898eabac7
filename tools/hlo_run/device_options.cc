// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/device_options.h"

#include <cstdio>
#include <string_view>

#include "interp/program/partitioned_program.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "passes/core/pipeline.h"
#include "passes/instrumentation/printing.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/device_selection.h"
#include "tools/cli/flags/device_flag.h"
#include "tools/cli/text/regex.h"

namespace hlokit::run {

std::optional<tpu::SimulationOptions> OptionsFor(const SimulationFlags& flags, const Module& module,
                                                 cli::DiagnosticReporter* diagnostics) {
  const auto [name, topology] = tpu::SplitDeviceName(flags.device);
  std::optional<tpu::DeviceDescription> machine = cli::LoadDeviceDescription(name, diagnostics);
  if (!machine) return std::nullopt;
  for (const std::string& scale : flags.scale) {
    if (const absl::Status s = tpu::ApplyScale(scale, &*machine); !s.ok()) {
      diagnostics->ShowError("--scale", std::string(s.message()), cli::kUsage);
      return std::nullopt;
    }
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
  if (absl::Status s = tpu::CheckStragglers(options); !s.ok()) {
    diagnostics->ShowError("--straggler", std::string(s.message()), cli::kUsage);
    return std::nullopt;
  }
  return options;
}

bool CompileFor(const SimulationFlags& flags, const tpu::SimulationOptions& options, Module* module,
                DiagnosticSink* warnings, cli::DiagnosticReporter* diagnostics) {
  if (flags.pipeline.empty()) return true;
  if (module->header().is_scheduled && !tpu::IsCompiledForOtherDevice(*module)) return true;
  if (const absl::Status s = Pipeline::Parse(flags.pipeline).status(); !s.ok()) {
    diagnostics->ShowError("--pipeline", std::string(s.message()), cli::kUsage);
    return false;
  }
  const auto shown = cli::CompileWholeRegex(flags.print_hlo);
  if (!shown.ok()) {
    diagnostics->ShowError("--print-after", std::string(shown.status().message()), cli::kUsage);
    return false;
  }
  PrintIr::Options printing;
  printing.after = *shown;
  PrintIr printer(printing, [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); });
  PassInstrumentation* const instruments[] = {&printer};
  const int64_t partitions = module->header().num_partitions;
  const bool whole = AwaitsPartitioning(*module);
  const absl::Status status = tpu::Compile(
      options, flags.pipeline, module,
      {absl::MakeConstSpan(instruments, flags.print_hlo.empty() ? 0 : 1), warnings, flags.remarks.collector()});
  if (status.ok()) return true;
  if (whole && warnings != nullptr && FirstUnpartitioned(*module).valid()) {
    interp::ReportPartitionError(*module, status,
                                 StrCat("the program is for ", partitions,
                                        " partitions, as --partitions or else num_partitions in its header says; ",
                                        "hlo-opt --passes=sharding-remover removes the shardings"),
                                 warnings);
    return false;
  }
  diagnostics->ShowError("--pipeline", std::string(status.message()), cli::kRejected);
  return false;
}

}  // namespace hlokit::run
