// SPDX-License-Identifier: Apache-2.0
// hlo-run --sweep: one program on several devices, or several programs on one, as a table and a plot.
#ifndef HLOKIT_TOOLS_HLO_RUN_SWEEP_H_
#define HLOKIT_TOOLS_HLO_RUN_SWEEP_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "interp/processes/mpi_session.h"
#include "ir/graph/module.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/simulation.h"

namespace hlokit::run {

// Placeholder for the value of the sweep in the name of the input.
inline constexpr std::string_view kSweepPlaceholder = "{}";

// Returns the program of a value: the same for all, or one of a family. Null after an error, which is printed.
using SweepPrograms = std::function<std::unique_ptr<Module>(const std::string& value)>;

// Returns the rows of --sweep, one simulation each, and a plot of their step times; as JSON if requested. `family`: the
// programs differ. Prints errors.
//
// With a session the processes take the values of the sweep from a queue, and all return all rows. An error is that of
// the first value that has one; `diagnostics`, which prints text, must have none before.
std::optional<std::string> Sweep(const SimulationFlags& flags, const SweepPrograms& programs, bool family,
                                 cli::DiagnosticReporter* diagnostics, interp::MpiSession* session = nullptr);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_SWEEP_H_
