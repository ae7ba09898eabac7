// SPDX-License-Identifier: Apache-2.0
// hlo-inspect find: instructions that match a pattern.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_FIND_H_
#define HLOKIT_TOOLS_HLO_INSPECT_FIND_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddFindCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_FIND_H_
