// SPDX-License-Identifier: Apache-2.0
// Completion of values that only hlo-run has.
#ifndef HLOKIT_TOOLS_HLO_RUN_VALUE_KINDS_H_
#define HLOKIT_TOOLS_HLO_RUN_VALUE_KINDS_H_

#include <vector>

#include "tools/cli/completion.h"

namespace hlokit::run {

std::vector<cli::ValueKind> ValueKinds();

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_VALUE_KINDS_H_
