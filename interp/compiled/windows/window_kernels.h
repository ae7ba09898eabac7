// SPDX-License-Identifier: Apache-2.0
// Pooling and its gradients along one line, for each instruction set.
//
// A line is a row of positions along one dimension; the others have one position each. A position has `features`
// neighboring elements, which are computed together, each from the elements at the offsets
// rows[r].data + columns[c].offset. Where the line itself is the minor dimension in memory, its elements are
// deinterleaved into one array for each remainder by the stride of the window, so that neighboring positions have
// neighboring elements: they are then the features of a single position.
//
// Values are f32 here; those of narrower types are converted before and after.
#ifndef HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_KERNELS_H_
#define HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "interp/processor/instruction_set.h"

namespace hlokit::interp::compiled {

enum class PoolOp : uint8_t { kMaximum, kMinimum, kSum };

// The type of arrays in memory. Sums of a narrow type are rounded to it after each addition; those of f32 are
// accumulated in double.
enum class WindowType : uint8_t { kF32, kBF16, kF16 };

// An operation on each element, rounded to the type.
struct WindowScale {
  enum class Op : uint8_t { kNone, kMultiply, kDivide } op = Op::kNone;
  float by = 1;
};

struct WindowColumn {
  int64_t offset = 0;
  int32_t number = 0;  // of the element within the window's line
};

struct WindowLine {
  int64_t positions = 0;
  // The elements of position p are columns[begin[p]] to columns[begin[p + 1]].
  const int64_t* begin = nullptr;
  const WindowColumn* columns = nullptr;
  int64_t features = 1;
  bool one_each = false;  // each position has one element
};

struct PoolRow {
  const float* data = nullptr;
  int32_t number = 0;  // of the first element of the window's line within the window
};

// Choices and gradients of a line of windows.
struct ScatterRow {
  const uint8_t* chosen = nullptr;
  const float* source = nullptr;
  int32_t number = 0;
};

// Memory that is read soon.
struct WindowPrefetch {
  const std::byte* data = nullptr;
  int64_t bytes = 0;
};

constexpr uint8_t kNoneChosen = 255;

struct WindowKernels {
  // Maximum or minimum of one row. Returns false if it has a NaN; the results are then of no use.
  bool (*best)(PoolOp op, const float* row, const WindowLine& line, float initial, WindowPrefetch prefetch, float* out);
  // Of several rows of numbers, element by element.
  void (*combine)(PoolOp op, const float* const* rows, int64_t count, int64_t n, float* out);
  // `scale`: of sums.
  void (*pool)(PoolOp op, WindowType type, const PoolRow* rows, int64_t row_count, const WindowLine& line,
               float initial, WindowScale scale, WindowPrefetch prefetch, float* out);
  // Writes the number of the element that is chosen in each window, or kNoneChosen: the first one, unless a later one
  // is `greater` (or less). `equal`: an element that equals the chosen one does not replace it.
  void (*choose)(bool greater, bool equal, const PoolRow* rows, int64_t row_count, const WindowLine& line,
                 WindowPrefetch prefetch, uint8_t* chosen);
  // Adds the gradients of the windows that chose an element to `initial`, in the order of rows and columns.
  void (*scatter)(WindowType type, const ScatterRow* rows, int64_t row_count, const WindowLine& line, float initial,
                  WindowPrefetch prefetch, float* out);
  void (*load)(WindowType type, const std::byte* in, int64_t n, WindowScale scale, float* out);
  void (*store)(WindowType type, const float* in, int64_t n, WindowScale scale, std::byte* out);
  // even[i] = in[2 * i], odd[i] = in[2 * i + 1]; and back.
  void (*deinterleave)(const float* in, int64_t n, float* even, float* odd);
  void (*interleave)(const float* even, const float* odd, int64_t n, float* out);
};
const WindowKernels& WindowKernelsOf(InstructionSet set);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_KERNELS_H_
