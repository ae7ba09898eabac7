// SPDX-License-Identifier: Apache-2.0
// hlo-inspect duplicates: instructions that compute the same, and what keeps each apart from the first.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_DUPLICATES_H_
#define HLOKIT_TOOLS_HLO_INSPECT_DUPLICATES_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddDuplicatesCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_DUPLICATES_H_
