// SPDX-License-Identifier: Apache-2.0
// The page with the graph of a module.
#ifndef HLOKIT_TOOLS_CLI_GRAPH_PAGE_H_
#define HLOKIT_TOOLS_CLI_GRAPH_PAGE_H_

#include <string>
#include <vector>

#include "interp/tpu/timing/simulator.h"
#include "ir/graph/module.h"
#include "passes/view/graph_document.h"
#include "tools/cli/cli.h"

namespace hlokit::cli {

// Returns the data of the page: an array of one graph.
std::string GraphJson(const Module& module, const GraphDocumentOptions& options);

// Returns the simulated seconds of each instruction over one execution, by InstructionId. Loops and calls have none of
// their own.
std::vector<double> SecondsByInstruction(const Module& module, const tpu::Simulation& simulation);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_GRAPH_PAGE_H_
