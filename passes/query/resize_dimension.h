// SPDX-License-Identifier: Apache-2.0
// Changes the size of a dimension of a program, and with it those that follow from it (dimension_flow.h).
#ifndef HLOKIT_PASSES_QUERY_RESIZE_DIMENSION_H_
#define HLOKIT_PASSES_QUERY_RESIZE_DIMENSION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/query/dimension_flow.h"

namespace hlokit::query {

// Gives the marked dimensions their new sizes: shapes, limits of slices, sizes of dynamic slices and gathers, and the
// entry layout with them. Returns the number of instructions with another shape. Returns an error where a size does not
// fit; the module is left half changed then, and is to be dropped. Requires: the flow is of this module or of one that
// it is a copy of. The result is to be verified.
//
// A change that rounds is for programs whose values do not matter, and never an error: partial slices are moved and cut
// to fit, padding fills the difference, constants keep the elements that are left.
absl::StatusOr<int64_t> ResizeDimensions(const DimensionFlow& flow, const SizeChange& change, Module* module);

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_RESIZE_DIMENSION_H_
