// hlo-run --sweep: one program on several machines, as a table and a plot.
#ifndef HLOKIT_TOOLS_HLO_RUN_SWEEP_H_
#define HLOKIT_TOOLS_HLO_RUN_SWEEP_H_

#include <optional>
#include <string>

#include "interp/tpu/kernel_plan.h"
#include "ir/module.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/simulation.h"

namespace hlokit::run {

// The rows of --sweep, one simulation each; `module` is `original` compiled. Errors are shown.
std::optional<std::string> Sweep(const SimulationFlags& flags, const Module& original, const Module& module,
                                 const tpu::KernelPlan& plan, cli::Diagnostics* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_SWEEP_H_
