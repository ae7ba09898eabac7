// SPDX-License-Identifier: Apache-2.0
// hlo-inspect shardings.
#ifndef HLOKIT_TOOLS_CLI_INSPECT_SHARDINGS_H_
#define HLOKIT_TOOLS_CLI_INSPECT_SHARDINGS_H_

#include "tools/cli/inspect_command.h"

namespace hlokit::cli {

InspectCommand AddShardingsCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_INSPECT_SHARDINGS_H_
