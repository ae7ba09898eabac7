// hlo-inspect cost.
#ifndef HLOKIT_TOOLS_CLI_INSPECT_COST_H_
#define HLOKIT_TOOLS_CLI_INSPECT_COST_H_

#include "tools/cli/inspect_command.h"

namespace hlokit::cli {

InspectCommand AddCostCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_INSPECT_COST_H_
