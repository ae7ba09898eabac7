// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_view/simulated_time.h"

#include <optional>

#include "simulator/program/kernel_plan.h"
#include "simulator/report/instruction_times.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/simulator.h"
#include "tools/cli/flags/device_flag.h"

namespace hlokit::view {

bool CompileAndTime(const std::string& device, Module* module, std::vector<double>* seconds,
                    cli::DiagnosticReporter* diagnostics) {
  const std::optional<tpu::SimulationOptions> options = cli::LoadDevice(device, *module, diagnostics);
  if (!options) return false;
  if (tpu::IsCompiledForOtherDevice(*module)) diagnostics->ShowWarning(module->name(), tpu::kCompiledAgain);
  if (const absl::Status s = tpu::Compile(*options, "tpu", module); !s.ok()) {
    diagnostics->ShowError(module->name(), std::string(s.message()), cli::kRejected);
    return false;
  }
  const tpu::KernelPlan plan(*module);
  *seconds = tpu::SecondsByInstruction(*module, tpu::Simulate(*module, plan, *options));
  return true;
}

}  // namespace hlokit::view
