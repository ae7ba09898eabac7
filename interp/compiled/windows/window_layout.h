// SPDX-License-Identifier: Apache-2.0
// Where the elements of a window lie in memory, and in which lines and columns the kernels of windows visit them. See
// window_kernels.h.
#ifndef HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_LAYOUT_H_
#define HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/compiled/programs/loop_layout.h"
#include "interp/compiled/windows/window_kernels.h"
#include "interp/exact/kernels/window_geometry.h"

namespace hlokit::interp::compiled {

struct WindowAxis {
  WindowDimension window;
  bool trivial = true;
  int64_t stride = 1;           // of the operand's elements in memory
  int64_t elements = 1;         // that a window covers, at most: neighbors but for the dilation of the window
  int64_t windows = 1;          // that cover an element, at most: neighbors too
  int64_t window_elements = 1;  // its size

  // Calls add(element, number) for each element that the window covers at a position.
  template <typename Add>
  void ForEachElement(int64_t position, const Add& add) const {
    if (trivial) return add(position, int64_t{0});
    for (int64_t k = 0; k < window.window.size; ++k) {
      const int64_t element = window.ElementAt(position, k);
      if (element >= 0) add(element, k);
    }
  }
  // Calls add(position, number) for each window that covers an element, positions ascending. Requires: no dilation of
  // the operand.
  template <typename Add>
  void ForEachWindow(int64_t element, const Add& add) const {
    if (trivial) return add(element, int64_t{0});
    const WindowDim& w = window.window;
    for (int64_t k = w.size; k-- > 0;) {
      const int64_t at = element + w.padding_low - k * w.window_dilation;
      if (at >= 0 && at % w.stride == 0 && at / w.stride < window.output) add(at / w.stride, k);
    }
  }
};

// Columns of the positions of a line.
struct LineTable {
  std::vector<int64_t> begin = {0};
  std::vector<WindowColumn> columns;

  bool one_each = true;

  void EndPosition() {
    begin.push_back(static_cast<int64_t>(columns.size()));
    one_each = one_each && begin.back() == static_cast<int64_t>(begin.size()) - 1;
  }
  WindowLine Line(int64_t features) const {
    return {static_cast<int64_t>(begin.size()) - 1, begin.data(), columns.data(), features, one_each};
  }
};

// A line of the operand, or of windows.
struct OuterLine {
  int64_t line = 0;
  int64_t slot = 0;
  int32_t number = 0;  // of the first element of the window's line within the window
};

// Lines of the operand that the windows at each position of the outer dimensions read, or lines of windows that cover
// each line of the operand, where only the last outer dimension has a window.
struct OuterTable {
  std::vector<int64_t> begin = {0};
  std::vector<OuterLine> lines;
};

// Arrays to which the elements of a line are deinterleaved, if the line is the minor dimension: element e is
// element (e + left) / arrays of array (e + left) % arrays.
struct DeinterleavedLine {
  int64_t arrays = 1;
  int64_t pitch = 0;  // elements of an array, whole vectors with room for one more
  int64_t left = 0;
};

// The same for results, each array of which has columns of its own: result r is element r / arrays of array r % arrays.
struct DeinterleavedResults {
  std::vector<LineTable> tables;
  int64_t features = 0;  // of a table: whole vectors
};

// The operand and the results of the window are dense.
struct WindowLayout {
  MemoryOrder order;
  std::vector<WindowAxis> outer;  // before the line, outermost first
  WindowAxis line;
  bool features_minor = false;
  int64_t features = 1;
  int64_t window = 1;         // elements
  int64_t result_lines = 1;   // lines of results
  int64_t operand_lines = 1;  // of the operand
  int64_t operand_slots = 1;  // lines of the operand that are in use at one time
  int64_t window_slots = 1;   // lines of windows that are, for the gradient

  // Of the last outer dimension, if no other one has a window and it is not large.
  std::optional<OuterTable> operand_table;
  std::optional<OuterTable> window_table;

  DeinterleavedLine operand;       // line minor
  LineTable columns;               // of elements: of each position if features are minor, else of all
  DeinterleavedResults results;    // line minor, with a dilated operand
  DeinterleavedLine choices;       // of windows, for the gradient
  LineTable window_columns;        // of windows, for the gradient, features minor
  DeinterleavedResults gradients;  // line minor
  std::vector<int64_t> edges;      // positions whose window is not all in the line, line minor

  int64_t positions() const { return line.window.output; }
  int64_t result_line() const { return positions() * features; }
  int64_t operand_line() const { return line.window.input * features; }
  bool dilated() const { return line.window.window.base_dilation != 1; }
};

// Returns the layout of a window; an error, with the reason, if it is none for the kernels here. `axes`: by dimension.
// The order of memory is `order` if dimensions with a window are in their declared order, else the declared one.
// `gradient`: of select-and-scatter. `min_elements`: of the operand.
absl::StatusOr<WindowLayout> LayoutOf(absl::Span<const WindowDimension> axes, MemoryOrder order, bool gradient,
                                      int64_t min_elements);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_LAYOUT_H_
