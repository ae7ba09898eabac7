// SPDX-License-Identifier: Apache-2.0
// Pooling of f32 along one line of window positions, for each instruction set.
//
// A line is a row of positions along one dimension; the others have one position each. Elements at offsets
// rows[r] + columns[c] of the line's begin are in the window of a position. Where features are the minor dimension in
// memory, each position has `features` neighboring elements, computed together; where the line itself is minor, its
// positions are computed together.
#ifndef HLOKIT_INTERP_COMPILED_WINDOW_KERNELS_H_
#define HLOKIT_INTERP_COMPILED_WINDOW_KERNELS_H_

#include <cstdint>

#include "interp/exact/processor/instruction_set.h"

namespace hlokit::interp::compiled {

enum class PoolOp : uint8_t { kMaximum, kMinimum, kSum };

// Positions [first, end) have an element at `element` + i * `step`, i = 0, 1, ...
struct LineRange {
  int64_t first = 0;
  int64_t end = 0;
  int64_t element = 0;
  int64_t step = 1;
};

struct WindowLine {
  const int64_t* rows = nullptr;  // offsets of the window in the other dimensions
  int64_t row_count = 0;
  int64_t positions = 0;
  // Features minor: the elements of position p are column_offsets[column_begin[p]] to
  // column_offsets[column_begin[p + 1]].
  const int64_t* column_begin = nullptr;
  const int64_t* column_offsets = nullptr;
  int64_t features = 1;
  // Line minor: by offset of the window.
  const LineRange* ranges = nullptr;
  int64_t range_count = 0;  // offsets of the window along the line
};

struct WindowKernels {
  // out: the results of the line. `sums`: memory for `positions` doubles where the line is minor.
  void (*pool_features)(PoolOp op, const WindowLine& line, const float* in, float initial, float* out);
  void (*pool_line)(PoolOp op, const WindowLine& line, const float* in, float initial, float* out, double* sums);
  // Adds each source to the element that is chosen in its window: the first one, unless a later one is `greater` (or
  // less). `equal`: an element that equals the chosen one does not replace it.
  void (*scatter_features)(bool greater, bool equal, const WindowLine& line, const float* in, const float* source,
                           float* out);
  // `best`, `chosen`: memory for `positions` elements.
  void (*scatter_line)(bool greater, bool equal, const WindowLine& line, const float* in, const float* source,
                       float* out, float* best, int32_t* chosen);
};
const WindowKernels& WindowKernelsOf(InstructionSet set);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_WINDOW_KERNELS_H_
