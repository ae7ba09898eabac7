// SPDX-License-Identifier: Apache-2.0
// Assigns layouts to all arrays of a module.
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
  int64_t bitcasts = 0;  // transposes that move no data after the assignment
  int64_t copies = 0;
};

// Without a tile: assigns descending layouts (last dimension minor), except to
//   - parameters and results of the entry, whose layouts belong to the caller: a copy converts others;
//   - transposes that only dots and convolutions read: their layout makes them bitcasts;
//   - operands of custom-calls with constrained layouts, and arrays in other memory spaces, which do not change.
// With the tile of a TPU, dimension orders follow tpu_layout_preferences.h and all layouts, those of the entry too, get
// tiles: the tile, fewer rows for arrays with few rows, with (2,1) or (4,1) added for types of 16 and 8 bits;
// one-dimensional arrays get tiles of as many elements, or fewer if they fit. Parameters and results of the entry with
// the default order get another one if it takes at least a fifth less with padding, as the runtimes that call the
// compiler choose one. Modules with a schedule or with tiles do not change.
absl::StatusOr<LayoutCounts> AssignLayouts(Module& module, const std::optional<tpu::VectorTile>& tile);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_LAYOUT_LAYOUT_ASSIGNMENT_H_
