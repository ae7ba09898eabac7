// SPDX-License-Identifier: Apache-2.0
// hlo-inspect grep: the matches of a pattern in many files, with totals.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_GREP_H_
#define HLOKIT_TOOLS_HLO_INSPECT_GREP_H_

#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddGrepCommand(CLI::App* app);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_GREP_H_
