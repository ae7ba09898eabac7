// SPDX-License-Identifier: Apache-2.0
// Flags of hlo-run without effect beside others: an estimate writes no results, so it cannot compare them.
#ifndef HLOKIT_TOOLS_HLO_RUN_FLAG_CONFLICTS_H_
#define HLOKIT_TOOLS_HLO_RUN_FLAG_CONFLICTS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "tools/hlo_run/flags.h"

namespace hlokit::run {

// Returns the usage error of the first flag that another one makes useless, or that lacks one; "" if there is none.
std::string FindFlagConflict(const CLI::App& app, const Flags& flags);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_FLAG_CONFLICTS_H_
