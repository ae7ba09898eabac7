// SPDX-License-Identifier: Apache-2.0
// Size of arrays in a TPU's memory: the two minor dimensions in tiles of the vector unit's registers (sublanes by lanes
// of 32 bits, e.g. 8 by 128), narrow types packed.
#ifndef HLOKIT_PASSES_TARGET_TILING_H_
#define HLOKIT_PASSES_TARGET_TILING_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "ir/types/shape.h"
#include "passes/target/device_description.h"

namespace hlokit {

// Returns the size or bound of dimension `d`; 1 if it is unbounded.
inline int64_t SizeOf(Shape array, int64_t d) { return array.is_unbounded(d) ? 1 : std::max<int64_t>(array.dim(d), 0); }

}  // namespace hlokit

namespace hlokit::tpu {

// Memory spaces of layouts, S(n).
inline constexpr int64_t kDefaultMemorySpace = 0;
inline constexpr int64_t kVectorMemorySpace = 1;
inline constexpr int64_t kCommonMemorySpace = 3;  // of chips that have one
inline constexpr int64_t kHostMemorySpace = 5;
// Returns the memory space of an array; that of all other shapes is the default one.
inline int64_t MemorySpaceOf(Shape array) {
  return array.IsArray() && array.has_layout() ? array.layout()->memory_space() : kDefaultMemorySpace;
}

// A register of the vector unit, in elements of 32 bits.
struct VectorTile {
  int64_t sublanes = 1;
  int64_t lanes = 1;
};
inline VectorTile TileOf(const DeviceDescription& machine) {
  return {static_cast<int64_t>(machine.sublanes), static_cast<int64_t>(machine.lanes)};
}
// Returns the number of tile rows for an array whose second-minor dimension has `rows`: the sublanes, halved while all
// rows still fit, at least 2.
int64_t TileRows(const VectorTile& tile, int64_t rows);

// The minor dimensions of an array on the vector unit: `rows` by `columns`, `outer` times. They follow the layout,
// ignoring dimensions of size 1, which a layout can put anywhere. If the layout has no tiles and would more than double
// the array, the compiler can choose another: the two dimensions with the least padding. Scalars and vectors have one
// row.
struct Minor {
  int64_t outer = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t column_dimension = -1;  // -1: none
};
Minor MinorOf(const VectorTile& tile, Shape array);

// Returns the elements, with padding, of a tiled array with this dimension order.
int64_t TiledElements(const VectorTile& tile, Shape array, absl::Span<const int64_t> minor_to_major);

// Returns `array` with the tiles of the target in its layout. Unchanged: scalars, arrays without a layout or in other
// memory spaces, and types wider than 32 bits.
Shape WithTiles(const VectorTile& tile, ShapeTable& shapes, Shape array);

// Returns the bytes of an array with padding: by the tiles of its layout, or else by those of the target with short
// second-minor dimensions compact (TileRows) and vectors as rows of lanes. For tuples, the sum over leaves. Unbounded
// dimensions count as 1, bounded ones as their bound. Saturates.
int64_t PaddedBytes(const VectorTile& tile, Shape shape);
inline int64_t PaddedBytes(const DeviceDescription& machine, Shape shape) {
  return PaddedBytes(TileOf(machine), shape);
}

// Returns true if the layout has tiles: a compiler has assigned it.
inline bool HasTiles(Shape array) {
  return array.IsArray() && array.has_layout() && array.layout()->extras != nullptr &&
         !array.layout()->extras->tiles.empty();
}

// Returns the bits per element in memory: from the layout, else from the type; 8 for pred.
int64_t StorageBits(Shape array);

// Returns the number of elements, unbounded dimensions as 1. Saturates.
int64_t ElementsOf(Shape array);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_TILING_H_
