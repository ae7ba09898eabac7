// SPDX-License-Identifier: Apache-2.0
// What arrays take in a TPU's memory: the two minor dimensions in tiles of the vector unit's registers (sublanes by
// lanes of 32 bits, e.g. 8 by 128), narrow types packed.
#ifndef HLOKIT_PASSES_TARGET_TILING_H_
#define HLOKIT_PASSES_TARGET_TILING_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "ir/types/shape.h"
#include "passes/target/device_description.h"

namespace hlokit {

// Of dimension `d`; 1 if it has no bound.
inline int64_t SizeOf(Shape array, int64_t d) { return array.is_unbounded(d) ? 1 : std::max<int64_t>(array.dim(d), 0); }

}  // namespace hlokit

namespace hlokit::tpu {

// A register of the vector unit, in elements of 32 bits.
struct VectorTile {
  int64_t sublanes = 1;
  int64_t lanes = 1;
};
inline VectorTile TileOf(const DeviceDescription& machine) {
  return {static_cast<int64_t>(machine.sublanes), static_cast<int64_t>(machine.lanes)};
}
// Rows of the tiles of an array whose second-minor dimension has `rows`: those of the register, or half as often as all
// fit, at least 2.
int64_t TileRows(const VectorTile& tile, int64_t rows);

// The minor dimensions of an array as the vector unit sees them: `rows` by `columns`, `outer` times over. They are
// those of the layout, dimensions of size 1 left out, since a layout can place them anywhere. Where the layout has no
// tiles and would more than double the array, the compiler is free to choose another: the two dimensions that pad
// least. Scalars and vectors have one row.
struct Minor {
  int64_t outer = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t column_dimension = -1;  // -1: none
};
Minor MinorOf(const VectorTile& tile, Shape array);

// Elements of an array whose dimensions lie in this order, in tiles.
int64_t TiledElements(const VectorTile& tile, Shape array, absl::Span<const int64_t> minor_to_major);

// The array with the tiles of the target in its layout. As it is: scalars, arrays without a layout or in other memory
// spaces, and types wider than 32 bits.
Shape WithTiles(const VectorTile& tile, ShapeTable& shapes, Shape array);

// Bytes of an array with its padding; the shape's own tiles if its layout has them, else those of the target with short
// second-minor dimensions compact (TileRows) and vectors as rows of lanes. Tuples: the sum over leaves. An
// unbounded dimension counts as 1, a bounded one with its bound. Saturates.
int64_t PaddedBytes(const VectorTile& tile, Shape shape);
inline int64_t PaddedBytes(const DeviceDescription& machine, Shape shape) {
  return PaddedBytes(TileOf(machine), shape);
}

// The layout has tiles: a compiler has chosen it.
inline bool HasTiles(Shape array) {
  return array.IsArray() && array.has_layout() && array.layout()->extras != nullptr &&
         !array.layout()->extras->tiles.empty();
}

// Bits that an element takes in memory: those of the layout, else of the type, 8 for pred.
int64_t StorageBits(Shape array);

// Elements of an array, unbounded dimensions as 1; saturates.
int64_t ElementsOf(Shape array);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_TILING_H_
