// SPDX-License-Identifier: Apache-2.0
// hlo-inspect why: what passes say of an instruction, or of two.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_WHY_H_
#define HLOKIT_TOOLS_HLO_INSPECT_WHY_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddWhyCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_WHY_H_
