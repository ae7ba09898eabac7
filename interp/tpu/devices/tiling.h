// SPDX-License-Identifier: Apache-2.0
// What arrays take in a TPU's memory: the two minor dimensions in tiles of 8 sublanes by 128 lanes, narrow types
// packed.
#ifndef HLOKIT_INTERP_TPU_DEVICES_TILING_H_
#define HLOKIT_INTERP_TPU_DEVICES_TILING_H_

#include <cstdint>

#include "interp/tpu/devices/machine.h"
#include "ir/types/shape.h"

namespace hlokit::tpu {

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
Minor MinorOf(Shape array);

// Bytes of an array with its padding; the shape's own tiles if its layout has them, else T(8,128) with short
// second-minor dimensions compact (2, 4 or 8 rows) and vectors as rows of 128 lanes. Tuples: the sum over leaves. An
// unbounded dimension counts as 1, a bounded one with its bound. Saturates.
int64_t PaddedBytes(const Machine& machine, Shape shape);

// The layout has tiles: a compiler has chosen it.
inline bool HasTiles(Shape array) {
  return array.IsArray() && array.has_layout() && array.layout()->extras != nullptr &&
         !array.layout()->extras->tiles.empty();
}

// Elements of an array, unbounded dimensions as 1; saturates.
int64_t ElementsOf(Shape array);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_DEVICES_TILING_H_
