// SPDX-License-Identifier: Apache-2.0
// From the flags of hlo-run to a machine, its chips, how they differ, and the program that they run.
#ifndef HLOKIT_TOOLS_HLO_RUN_DEVICE_OPTIONS_H_
#define HLOKIT_TOOLS_HLO_RUN_DEVICE_OPTIONS_H_

#include <optional>
#include <string_view>
#include <vector>

#include "interp/tpu/timing/simulator.h"
#include "ir/graph/module.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/simulation.h"

namespace hlokit::run {

// Names that --scale takes.
std::vector<std::string_view> ScalableFigures();

// What to simulate `module` with. Errors are shown.
std::optional<tpu::SimulationOptions> OptionsFor(const SimulationFlags& flags, const Module& module,
                                                 cli::DiagnosticReporter* diagnostics);

// Runs the passes of --pipeline over a module without a schedule; one with a schedule has been compiled. Shows the
// module after passes as --print-after asks. False after an error, which is shown.
bool CompileFor(const SimulationFlags& flags, const tpu::SimulationOptions& options, Module* module,
                cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_DEVICE_OPTIONS_H_
