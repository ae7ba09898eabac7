// SPDX-License-Identifier: Apache-2.0
// Where in the user's program an instruction is from.
#ifndef HLOKIT_IR_GRAPH_SOURCE_LINE_H_
#define HLOKIT_IR_GRAPH_SOURCE_LINE_H_

#include <string>
#include <string_view>

#include "ir/graph/module_fwd.h"

namespace hlokit {

// Returns "model.py:12" from the metadata, or from the innermost stack frame; "" if neither is known.
std::string SourceLineOf(Instruction instruction);

// Returns the op_name of its metadata, the scope and the operation, such as "jit(f)/encoder/dot_general"; or "".
std::string_view OpNameOf(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_SOURCE_LINE_H_
