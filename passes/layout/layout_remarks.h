// SPDX-License-Identifier: Apache-2.0
// Remarks on assigned layouts: copies, transposes and reshapes that move data, padding, constraints.
#ifndef HLOKIT_PASSES_LAYOUT_LAYOUT_REMARKS_H_
#define HLOKIT_PASSES_LAYOUT_LAYOUT_REMARKS_H_

#include <optional>

#include "ir/graph/module.h"
#include "passes/remarks/remark.h"
#include "passes/target/tiling.h"

namespace hlokit {

// Adds remarks on the instructions of a module with layouts. `tile`: of the target, if it has tiles.
void AddLayoutRemarks(const Module& module, const std::optional<tpu::VectorTile>& tile, RemarkCollector* collector);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_LAYOUT_LAYOUT_REMARKS_H_
