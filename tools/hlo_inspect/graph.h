// SPDX-License-Identifier: Apache-2.0
// hlo-inspect users, operands, path and extract: the neighborhood of named instructions.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_GRAPH_H_
#define HLOKIT_TOOLS_HLO_INSPECT_GRAPH_H_

#include <vector>

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

std::vector<InspectCommand> AddGraphCommands(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_GRAPH_H_
