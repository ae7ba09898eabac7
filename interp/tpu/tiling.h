// What arrays take in a TPU's memory: the two minor dimensions in tiles of 8 sublanes by 128 lanes, narrow types
// packed.
#ifndef HLOKIT_INTERP_TPU_TILING_H_
#define HLOKIT_INTERP_TPU_TILING_H_

#include <cstdint>

#include "interp/tpu/machine.h"
#include "ir/shape.h"

namespace hlokit::tpu {

// The minor dimensions of an array as the vector unit sees them: `rows` by `columns`, `outer` times over. Dimensions of
// size 1 count as major, since a layout can place them there. Scalars and vectors have one row.
struct Minor {
  int64_t outer = 1;
  int64_t rows = 1;
  int64_t columns = 1;
};
Minor MinorOf(Shape array);

// Bytes of an array with its padding; the shape's own tiles if its layout has them, else T(8,128) with short
// second-minor dimensions compact (2, 4 or 8 rows) and vectors as rows of 128 lanes. Tuples: the sum over leaves. An
// unbounded dimension counts as 1, a bounded one with its bound. Saturates.
int64_t PaddedBytes(const Machine& machine, Shape shape);

// Elements of an array, unbounded dimensions as 1; saturates.
int64_t ElementsOf(Shape array);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_TILING_H_
