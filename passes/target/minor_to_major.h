// SPDX-License-Identifier: Apache-2.0
// Orders of the dimensions of arrays that lie in tiles, as in a TPU's memory: what they pad, what they move.
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
// `first` minor, then the others of more than one element from the last to the first, then those of one.
MinorToMajor OrderWithMinor(Shape array, absl::Span<const int64_t> first);
// The order in which tiles pad least; the default one among equals.
MinorToMajor MinPaddingOrder(const tpu::VectorTile& tile, Shape array);

// A reshape that moves nothing: elements keep their places, and rows their length or there is but one.
bool ReshapeIsBitcast(Shape from, absl::Span<const int64_t> from_order, Shape to, absl::Span<const int64_t> to_order);
// A reshape, transpose or bitcast between tiled layouts after which all elements are where they were.
bool IsLayoutBitcast(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_TARGET_MINOR_TO_MAJOR_H_
