// SPDX-License-Identifier: Apache-2.0
// hlo-inspect collectives: the communication among devices.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_COLLECTIVES_H_
#define HLOKIT_TOOLS_HLO_INSPECT_COLLECTIVES_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddCollectivesCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_COLLECTIVES_H_
