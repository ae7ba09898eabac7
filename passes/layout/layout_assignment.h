// SPDX-License-Identifier: Apache-2.0
// Layouts for all arrays of a module.
#ifndef HLOKIT_PASSES_LAYOUT_LAYOUT_ASSIGNMENT_H_
#define HLOKIT_PASSES_LAYOUT_LAYOUT_ASSIGNMENT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit {

enum class LayoutTarget : uint8_t {
  kPlain,  // dimensions in an order, nothing else
  kTpu,    // tiles of 8 by 128 elements of 32 bits, narrower types packed
};

struct LayoutCounts {
  int64_t shapes = 0;    // instructions whose layout changed
  int64_t bitcasts = 0;  // transposes that move nothing any more
  int64_t copies = 0;
};

// Plain: gives every array the layout with the last dimension minor, except
//   - the parameters and the result of the entry, whose order of dimensions is the caller's: where it is another one, a
//     copy changes it;
//   - transposes that only dots and convolutions read: their layout makes them bitcasts;
//   - operands of custom-calls with constrained layouts, and instructions in other memory spaces, which stay as they
//   are.
// For TPU the orders are those of tpu_orders.h, and tiles are added, to the entry's layouts too: (8,128), fewer rows
// where an array has at most 4, with (2,1) or (4,1) more for types of 16 and 8 bits; one-dimensional arrays have tiles
// of 1024, less if they fit. Parameters and results of the entry that have the default order, but whose tiles would
// take a fifth less with another, get an order of the program's choice, as the runtimes that call the compiler choose
// one. A module with a schedule is left alone, and so is one with tiles.
absl::StatusOr<LayoutCounts> AssignLayouts(Module& module, LayoutTarget target);

// Bytes of an array with the padding of its layout's tiles; without, where it has none. Unbounded dimensions count
// as 1.
int64_t TiledBytes(Shape array);

// The tiling of an array on a TPU; the layout as it is for scalars and types wider than 32 bits.
Shape WithTpuTiles(ShapeTable& shapes, Shape array);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_LAYOUT_LAYOUT_ASSIGNMENT_H_
