// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/program_simulation.h"

#include <memory>
#include <string_view>

#include "ir/core/text_writer.h"
#include "passes/target/tiling.h"
#include "simulator/export/report_document.h"
#include "simulator/report/report.h"
#include "simulator/report/simulated_module.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/device_selection.h"

namespace hlokit::pjrt {
namespace {

constexpr std::string_view kPipeline = "tpu";

}  // namespace

absl::StatusOr<ProgramSimulation> SimulateProgram(const std::string& device, const Module& original,
                                                  SimulationDocument document) {
  const absl::StatusOr<tpu::SimulationOptions> options = tpu::OptionsForDevice(device, original);
  if (!options.ok()) return options.status();
  Module module = original.Clone();
  if (absl::Status status = tpu::Compile(*options, kPipeline, &module); !status.ok()) return status;
  const tpu::SimulatedModule simulated(module, *options);
  const tpu::ReportInput input = simulated.Input(&original, kPipeline);
  ProgramSimulation result;
  constexpr size_t kMaxRows = 20;
  {
    TextWriter writer(&result.text);
    tpu::PrintReport(input, kMaxRows, /*memory_details=*/false, &writer);
  }
  result.json = tpu::ReportJson(input);
  result.step_seconds = input.simulation.step_seconds;
  if (document == SimulationDocument::kWith) {
    const absl::StatusOr<tpu::HostModel> host =
        tpu::ParseHostModel("", options->machine.queued_dispatch_latency, options->machine.host_rate);
    if (!host.ok()) return host.status();
    tpu::ReportDocumentOptions document_options;
    document_options.tool = "hlokit.jax.estimate";
    result.document = tpu::ReportDocument(input, simulated.plan, *host, document_options);
  }
  return result;
}

absl::StatusOr<SimulatedCosts> SimulateCosts(const std::string& device, const Module& original) {
  const absl::StatusOr<tpu::SimulationOptions> options = tpu::OptionsForDevice(device, original);
  if (!options.ok()) return options.status();
  SimulatedCosts costs;
  costs.compiled = std::make_unique<Module>(original.Clone());
  if (absl::Status status = tpu::Compile(*options, kPipeline, costs.compiled.get()); !status.ok()) return status;
  const tpu::SimulatedModule simulated(*costs.compiled, *options);
  costs.step_seconds = simulated.simulation.step_seconds;
  const Computation entry = original.entry();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    for (const Shape leaf : Leaves(entry.parameter(i).shape())) {
      if (leaf.IsArray()) costs.argument_bytes += tpu::PaddedBytes(options->machine, leaf);
    }
  }
  for (const tpu::AliasedResult& result : simulated.memory.aliased) costs.aliased_bytes += result.bytes;
  costs.result_bytes = simulated.memory.result_bytes + costs.aliased_bytes;
  costs.peak_bytes = simulated.memory.peak_bytes;
  return costs;
}

}  // namespace hlokit::pjrt
