// SPDX-License-Identifier: Apache-2.0
// hlo-inspect ops.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_OPS_H_
#define HLOKIT_TOOLS_HLO_INSPECT_OPS_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddOpsCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_OPS_H_
