// SPDX-License-Identifier: Apache-2.0
// hlo-inspect memory.
#ifndef HLOKIT_TOOLS_CLI_INSPECT_MEMORY_H_
#define HLOKIT_TOOLS_CLI_INSPECT_MEMORY_H_

#include "tools/cli/inspect_command.h"

namespace hlokit::cli {

InspectCommand AddMemoryCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_INSPECT_MEMORY_H_
