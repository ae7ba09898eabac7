// From the flags of hlo-run to a machine, its chips, and how they differ.
#ifndef HLOKIT_TOOLS_HLO_RUN_DEVICE_OPTIONS_H_
#define HLOKIT_TOOLS_HLO_RUN_DEVICE_OPTIONS_H_

#include <optional>
#include <string>
#include <utility>

#include "interp/tpu/machine.h"
#include "interp/tpu/simulator.h"
#include "ir/module.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/simulation.h"

namespace hlokit::run {

// A machine by installed name or from a file.
std::optional<tpu::Machine> ReadMachine(const std::string& name, cli::Diagnostics* diagnostics);

// "v5p:4x4x4" -> "v5p", "4x4x4".
std::pair<std::string, std::string> SplitDevice(const std::string& device);

// What to simulate `module` with. Errors are shown.
std::optional<tpu::SimulationOptions> OptionsFor(const SimulationFlags& flags, const Module& module,
                                                 cli::Diagnostics* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_DEVICE_OPTIONS_H_
