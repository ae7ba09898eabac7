// SPDX-License-Identifier: Apache-2.0
// hlo-inspect cost.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_COST_H_
#define HLOKIT_TOOLS_HLO_INSPECT_COST_H_

#include <string>
#include <string_view>

#include "passes/analysis/cost.h"
#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

InspectCommand AddCostCommand(CLI::App* app);

// Returns the spelling of --by.
std::string_view KeyName(CostKey key);
// Adds the flag --by. `what`: the rows, for --help; `absent`: the spelling of the initial `key`.
void AddCostKey(CLI::App* command, CostKey* key, const std::string& what, const std::string& absent);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_COST_H_
