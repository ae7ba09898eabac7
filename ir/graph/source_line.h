// SPDX-License-Identifier: Apache-2.0
// The line of the user's program that an instruction is from.
#ifndef HLOKIT_IR_GRAPH_SOURCE_LINE_H_
#define HLOKIT_IR_GRAPH_SOURCE_LINE_H_

#include <string>

#include "ir/graph/module_fwd.h"

namespace hlokit {

// Returns "model.py:12" from the metadata, or from the innermost stack frame; "" if neither is known.
std::string SourceLineOf(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_SOURCE_LINE_H_
