// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_view/simulated_time.h"

#include <optional>

#include "simulator/program/kernel_plan.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/device_selection.h"
#include "simulator/timing/simulator.h"
#include "tools/cli/flags/device_flag.h"
#include "tools/cli/pages/graph_page.h"

namespace hlokit::view {

bool CompileAndTime(const std::string& device, Module* module, std::vector<double>* seconds,
                    cli::DiagnosticReporter* diagnostics) {
  const auto [machine_name, topology_text] = tpu::SplitDeviceName(device);
  const std::optional<tpu::DeviceDescription> machine = cli::LoadDeviceDescription(machine_name, diagnostics);
  if (!machine) return false;
  const absl::StatusOr<tpu::Topology> topology = tpu::TopologyFor(*machine, topology_text, *module, device);
  if (!topology.ok()) {
    diagnostics->ShowError("--device", std::string(topology.status().message()), cli::kUsage);
    return false;
  }
  tpu::SimulationOptions options;
  options.machine = *machine;
  options.topology = *topology;
  if (tpu::IsCompiledForOtherDevice(*module)) diagnostics->ShowWarning(module->name(), tpu::kCompiledAgain);
  if (const absl::Status s = tpu::Compile(options, "tpu", module); !s.ok()) {
    diagnostics->ShowError(module->name(), std::string(s.message()), cli::kRejected);
    return false;
  }
  const tpu::KernelPlan plan(*module);
  *seconds = cli::SecondsByInstruction(*module, tpu::Simulate(*module, plan, options));
  return true;
}

}  // namespace hlokit::view
