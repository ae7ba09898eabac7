// SPDX-License-Identifier: Apache-2.0
// hlo-inspect top: the instructions that take most.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_TOP_H_
#define HLOKIT_TOOLS_HLO_INSPECT_TOP_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddTopCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_TOP_H_
