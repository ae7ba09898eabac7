// SPDX-License-Identifier: Apache-2.0
// hlo-inspect memory.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_MEMORY_H_
#define HLOKIT_TOOLS_HLO_INSPECT_MEMORY_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddMemoryCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_MEMORY_H_
