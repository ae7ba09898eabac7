// SPDX-License-Identifier: Apache-2.0
// Layouts for all arrays of a module.
#ifndef HLOKIT_PASSES_LAYOUT_LAYOUT_ASSIGNMENT_H_
#define HLOKIT_PASSES_LAYOUT_LAYOUT_ASSIGNMENT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/target/tiling.h"

namespace hlokit {

struct LayoutCounts {
  int64_t shapes = 0;    // instructions whose layout changed
  int64_t bitcasts = 0;  // transposes that move nothing any more
  int64_t copies = 0;
};

// Without a tile: gives every array the layout with the last dimension minor, except
//   - the parameters and the result of the entry, whose order of dimensions is the caller's: where it is another one, a
//     copy changes it;
//   - transposes that only dots and convolutions read: their layout makes them bitcasts;
//   - operands of custom-calls with constrained layouts, and instructions in other memory spaces, which stay as they
//   are.
// With the tile of a TPU the orders are those of tpu_layout_preferences.h, and tiles are added, to the entry's layouts
// too: the tile, fewer rows where an array has few, with (2,1) or (4,1) more for types of 16 and 8 bits;
// one-dimensional arrays have tiles of as many elements, less if they fit. Parameters and results of the entry that
// have the default order, but whose tiles would take a fifth less with another, get an order of the program's choice,
// as the runtimes that call the compiler choose one. A module with a schedule is left alone, and so is one with tiles.
absl::StatusOr<LayoutCounts> AssignLayouts(Module& module, const std::optional<tpu::VectorTile>& tile);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_LAYOUT_LAYOUT_ASSIGNMENT_H_
