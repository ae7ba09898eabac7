// SPDX-License-Identifier: Apache-2.0
// Remarks of passes by the instructions of the module that they left.
#ifndef HLOKIT_PASSES_VIEW_REMARK_LINES_H_
#define HLOKIT_PASSES_VIEW_REMARK_LINES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "passes/remarks/remark.h"

namespace hlokit {

// Returns lines by InstructionId: the remarks on the instruction of this name, and those that name it; of a fusion what
// was missed of its members. Empty for instructions without any. At most a few for each.
std::vector<std::string> RemarkLinesOf(const Module& module, absl::Span<const Remark> remarks);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_VIEW_REMARK_LINES_H_
