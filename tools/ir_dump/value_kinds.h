// SPDX-License-Identifier: Apache-2.0
// Completion of values that only ir-dump has.
#ifndef HLOKIT_TOOLS_IR_DUMP_VALUE_KINDS_H_
#define HLOKIT_TOOLS_IR_DUMP_VALUE_KINDS_H_

#include <vector>

#include "tools/cli/completion.h"

namespace hlokit {

std::vector<cli::ValueKind> ValueKinds();

}  // namespace hlokit

#endif  // HLOKIT_TOOLS_IR_DUMP_VALUE_KINDS_H_
