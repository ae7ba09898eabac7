// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/windows/window_layout.h"

#include <algorithm>
#include <utility>

namespace hlokit::interp::compiled {
namespace {

constexpr int64_t kMaxWindow = 1024;    // elements
constexpr int64_t kMaxTable = 1 << 18;  // columns of a line
constexpr int64_t kMaxSlots = 1 << 16;  // lines that are in use at one time
constexpr int64_t kMinFeatures = 8;
constexpr int64_t kMaxLanes = 16;

int64_t WholeVectors(int64_t n) { return (n + kMaxLanes - 1) / kMaxLanes * kMaxLanes; }

bool IsTrivial(const WindowDimension& axis) {
  return axis.window.size == 1 && axis.window.stride == 1 && axis.window.padding_low == 0 &&
         axis.window.base_dilation == 1 && axis.output == axis.input;
}

WindowAxis AxisOf(const WindowDimension& window, int64_t stride) {
  WindowAxis axis;
  axis.window = window;
  axis.stride = stride;
  axis.trivial = IsTrivial(window);
  if (axis.trivial) return axis;
  const WindowDim& w = window.window;
  const int64_t extent = (w.size - 1) * w.window_dilation;
  // Not more than there are, whatever the dilation of the window.
  axis.elements = std::min(extent / w.base_dilation + 1, window.input);
  axis.windows = std::min(extent / w.stride + 1, window.output);
  axis.window_elements = w.size;
  return axis;
}

// An element of an array of results, and the distance to the element of the deinterleaved line that it is computed
// from, by offset of the window.
struct Shift {
  int64_t by;
  int32_t number;
};

// Makes the tables of `arrays` arrays of results and the deinterleaved line that they read, with `count` elements.
// `shifts`: of each array, in the order of computation.
void DeinterleaveResults(const std::vector<std::vector<Shift>>& shifts, int64_t results, int64_t count,
                         DeinterleavedLine* from, DeinterleavedResults* deinterleaved) {
  const int64_t arrays = static_cast<int64_t>(shifts.size());
  deinterleaved->features = WholeVectors((results + arrays - 1) / arrays);
  int64_t min_shift = 0, max_shift = 0;
  for (const std::vector<Shift>& of_array : shifts) {
    for (const Shift& shift : of_array) {
      min_shift = std::min(min_shift, shift.by);
      max_shift = std::max(max_shift, shift.by);
    }
  }
  from->arrays = 1;
  from->left = -min_shift;
  from->pitch =
      WholeVectors(from->left + std::max(deinterleaved->features + max_shift, WholeVectors(count))) + kMaxLanes;
  for (const std::vector<Shift>& of_array : shifts) {
    LineTable table;
    for (const Shift& shift : of_array) table.columns.push_back({from->left + shift.by, shift.number});
    table.EndPosition();
    deinterleaved->tables.push_back(std::move(table));
  }
}

// Where the line is minor.
void DeinterleaveLine(bool gradient, WindowLayout* g) {
  const WindowDim& w = g->line.window.window;
  const int64_t positions = g->positions();
  if (w.base_dilation != 1) {
    std::vector<std::vector<Shift>> shifts(static_cast<size_t>(w.base_dilation));
    for (int64_t a = 0; a < w.base_dilation; ++a) {
      for (int64_t k = 0; k < w.size; ++k) {
        const int64_t at = a + k * w.window_dilation - w.padding_low;
        if (at % w.base_dilation != 0) continue;
        shifts[static_cast<size_t>(a)].push_back({at / w.base_dilation, static_cast<int32_t>(k)});
      }
    }
    DeinterleaveResults(shifts, positions, g->line.window.input, &g->operand, &g->results);
    return;
  }
  const int64_t reach = (w.size - 1) * w.window_dilation;
  g->operand.arrays = w.stride;
  g->operand.left = w.padding_low;
  g->operand.pitch = WholeVectors(WholeVectors(positions) + reach / w.stride + 1) + kMaxLanes;
  for (int64_t k = 0; k < w.size; ++k) {
    const int64_t at = k * w.window_dilation;
    g->columns.columns.push_back({at % w.stride * g->operand.pitch + at / w.stride, static_cast<int32_t>(k)});
  }
  g->columns.EndPosition();
  if (!gradient) return;
  for (int64_t p = 0; p < positions; ++p) {
    const int64_t first = p * w.stride - w.padding_low;
    if (first < 0 || first + reach >= g->line.window.input) g->edges.push_back(p);
  }
  std::vector<std::vector<Shift>> shifts(static_cast<size_t>(w.stride));
  for (int64_t a = 0; a < w.stride; ++a) {
    for (int64_t k = w.size; k-- > 0;) {
      const int64_t at = a + w.padding_low - k * w.window_dilation;
      if (at % w.stride != 0) continue;
      shifts[static_cast<size_t>(a)].push_back({at / w.stride, static_cast<int32_t>(k)});
    }
  }
  DeinterleaveResults(shifts, g->line.window.input, positions, &g->choices, &g->gradients);
}

// Sets the tables of the last outer dimension.
void MakeOuterTables(bool gradient, WindowLayout* g) {
  if (g->outer.empty()) return;
  const WindowAxis& axis = g->outer.back();
  for (size_t d = 0; d + 1 < g->outer.size(); ++d) {
    if (!g->outer[d].trivial) return;
  }
  if (std::max(axis.window.input, axis.window.output) * axis.window_elements > kMaxTable) return;
  const auto add = [&](OuterTable& table, int64_t line, int64_t slots, int64_t k) {
    table.lines.push_back({line, line % slots, static_cast<int32_t>(k * g->line.window_elements)});
  };
  g->operand_table.emplace();
  for (int64_t p = 0; p < axis.window.output; ++p) {
    axis.ForEachElement(p, [&](int64_t e, int64_t k) { add(*g->operand_table, e, axis.elements, k); });
    g->operand_table->begin.push_back(static_cast<int64_t>(g->operand_table->lines.size()));
  }
  if (!gradient) return;
  g->window_table.emplace();
  for (int64_t e = 0; e < axis.window.input; ++e) {
    axis.ForEachWindow(e, [&](int64_t p, int64_t k) { add(*g->window_table, p, axis.windows, k); });
    g->window_table->begin.push_back(static_cast<int64_t>(g->window_table->lines.size()));
  }
}

}  // namespace

absl::StatusOr<WindowLayout> LayoutOf(absl::Span<const WindowDimension> axes, MemoryOrder order, bool gradient,
                                      int64_t min_elements) {
  const auto unsupported = [](const char* reason) { return absl::UnimplementedError(reason); };
  const size_t rank = axes.size();
  WindowLayout g;
  int64_t elements = 1, results = 1;
  for (const WindowDimension& axis : axes) {
    if (!axis.Valid() || (gradient && axis.window.base_dilation != 1)) return unsupported("a dilated operand");
    if (axis.window.size > kMaxWindow) return unsupported("a large window");
    g.window *= axis.window.size;
    if (g.window > kMaxWindow || g.window == 0) return unsupported("a large window");
    if (axis.window.stride > kMaxWindow || axis.window.base_dilation > kMaxWindow ||
        axis.window.window_dilation > kMaxWindow || std::abs(axis.window.padding_low) > kMaxTable) {
      return unsupported("a large window");
    }
    elements *= axis.input;
    results *= axis.output;
  }
  if (gradient && g.window >= kNoneChosen) return unsupported("a large window");
  if (elements < min_elements || elements == 0 || results == 0) return unsupported("small");
  size_t last = 0;
  bool any = false, in_order = true;
  for (size_t d : order) {
    if (IsTrivial(axes[d])) continue;
    in_order = in_order && (!any || d > last);
    last = d;
    any = true;
  }
  if (!any) return unsupported("no window");
  if (!in_order) order = DeclaredOrder(rank);
  g.order = order;
  std::vector<int64_t> strides(rank, 1);
  for (size_t k = rank - 1; k-- > 0;) strides[k] = strides[k + 1] * axes[order[k + 1]].input;
  size_t end = rank;
  while (IsTrivial(axes[order[end - 1]])) g.features *= axes[order[--end]].input;
  g.features_minor = g.features >= kMinFeatures;
  if (!g.features_minor && g.features != 1) return unsupported("few features");
  g.line = AxisOf(axes[order[end - 1]], strides[end - 1]);
  for (size_t k = 0; k + 1 < end; ++k) {
    g.outer.push_back(AxisOf(axes[order[k]], strides[k]));
    const WindowAxis& axis = g.outer.back();
    g.result_lines *= axis.window.output;
    g.operand_lines *= axis.window.input;
    g.operand_slots *= axis.elements;
    g.window_slots *= axis.windows;
    if (std::max(g.operand_slots, g.window_slots) > kMaxSlots) return unsupported("a large window");
  }
  MakeOuterTables(gradient, &g);
  const WindowDim& w = g.line.window.window;
  const int64_t columns = std::max(g.line.window.output, gradient ? g.line.window.input : 0) * w.size;
  if (g.features_minor ? columns > kMaxTable : columns > int64_t{kMaxTable} * 64) return unsupported("a large window");
  if (!g.features_minor) {
    if (w.base_dilation != 1 && w.stride != 1) return unsupported("a dilated operand");
    DeinterleaveLine(gradient, &g);
    return g;
  }
  for (int64_t p = 0; p < g.positions(); ++p) {
    g.line.ForEachElement(p, [&](int64_t element, int64_t k) {
      g.columns.columns.push_back({element * g.features, static_cast<int32_t>(k)});
    });
    g.columns.EndPosition();
  }
  for (int64_t e = 0; gradient && e < g.line.window.input; ++e) {
    g.line.ForEachWindow(e, [&](int64_t position, int64_t k) {
      g.window_columns.columns.push_back({position * g.features, static_cast<int32_t>(k)});
    });
    g.window_columns.EndPosition();
  }
  return g;
}

}  // namespace hlokit::interp::compiled
