// SPDX-License-Identifier: Apache-2.0
// hlo-inspect shardings.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_SHARDINGS_H_
#define HLOKIT_TOOLS_HLO_INSPECT_SHARDINGS_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddShardingsCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_SHARDINGS_H_
