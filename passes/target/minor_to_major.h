// SPDX-License-Identifier: Apache-2.0
// Dimension orders of tiled arrays: their padding, and the reshapes and transposes that move no data.
#ifndef HLOKIT_PASSES_TARGET_MINOR_TO_MAJOR_H_
#define HLOKIT_PASSES_TARGET_MINOR_TO_MAJOR_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "passes/target/tiling.h"

namespace hlokit {

using MinorToMajor = std::vector<int64_t>;  // minor to major

MinorToMajor DefaultOrder(int64_t rank);
// Returns the order with `first` minor, then the other dimensions of size above 1 from last to first, then those of
// size 1.
MinorToMajor OrderWithMinor(Shape array, absl::Span<const int64_t> first);
// Returns the order with the least tile padding; the default order among equals.
MinorToMajor MinPaddingOrder(const tpu::VectorTile& tile, Shape array);

// Returns true if a reshape moves no data: elements keep their positions, and rows their length unless there is one
// row.
bool ReshapeIsBitcast(Shape from, absl::Span<const int64_t> from_order, Shape to, absl::Span<const int64_t> to_order);
// Returns true for a reshape, transpose or bitcast between tiled layouts that moves no data.
bool IsLayoutBitcast(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_TARGET_MINOR_TO_MAJOR_H_
