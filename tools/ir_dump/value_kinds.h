// SPDX-License-Identifier: Apache-2.0
// How the values that only ir-dump takes are completed.
#ifndef HLOKIT_TOOLS_IR_DUMP_VALUE_KINDS_H_
#define HLOKIT_TOOLS_IR_DUMP_VALUE_KINDS_H_

#include <vector>

#include "tools/cli/completion.h"

namespace hlokit {

std::vector<cli::ValueKind> ValueKinds();

}  // namespace hlokit

#endif  // HLOKIT_TOOLS_IR_DUMP_VALUE_KINDS_H_
