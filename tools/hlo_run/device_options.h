// SPDX-License-Identifier: Apache-2.0
// Converts flags of hlo-run to a device description, its chips, performance variation, and the compiled program.
#ifndef HLOKIT_TOOLS_HLO_RUN_DEVICE_OPTIONS_H_
#define HLOKIT_TOOLS_HLO_RUN_DEVICE_OPTIONS_H_

#include <optional>

#include "ir/graph/module_fwd.h"
#include "simulator/timing/simulator.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/simulation.h"

namespace hlokit::run {

// Returns the options to simulate `module`. Prints errors.
std::optional<tpu::SimulationOptions> OptionsFor(const SimulationFlags& flags, const Module& module,
                                                 cli::DiagnosticReporter* diagnostics);

// Runs the passes of --pipeline over a module without a schedule, or with one for another device, which is removed;
// other scheduled modules are compiled already. Prints the module after the passes of --print-after. Returns false
// after an error, which is printed. `warnings`: gets those of the passes, and the error if the module cannot be
// partitioned; may be null.
bool CompileFor(const SimulationFlags& flags, const tpu::SimulationOptions& options, Module* module,
                DiagnosticSink* warnings, cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_DEVICE_OPTIONS_H_
