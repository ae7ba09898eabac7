// SPDX-License-Identifier: Apache-2.0
// hlo-inspect layouts: layouts of arrays, and where they change.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_LAYOUTS_H_
#define HLOKIT_TOOLS_HLO_INSPECT_LAYOUTS_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddLayoutsCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_LAYOUTS_H_
