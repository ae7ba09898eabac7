// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_TOOLS_HLO_VIEW_SIMULATED_TIME_H_
#define HLOKIT_TOOLS_HLO_VIEW_SIMULATED_TIME_H_

#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "tools/cli/cli.h"

namespace hlokit::view {

// Compiles the module for the device ("v5p:2x2x1") as hlo-run does, unless it has a schedule, and simulates it. Sets
// the seconds of each instruction by InstructionId, over one execution of the module; loops and calls have none of
// their own. Prints errors and returns false after them.
bool CompileAndTime(const std::string& device, Module* module, std::vector<double>* seconds,
                    cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::view

#endif  // HLOKIT_TOOLS_HLO_VIEW_SIMULATED_TIME_H_
