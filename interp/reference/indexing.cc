// SPDX-License-Identifier: Apache-2.0
// Instructions with computed positions: dynamic slices, gather, scatter.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "interp/reference/ops.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::reference {
namespace {

// Returns the start of a dynamic slice of these sizes: the operands from `first` on, one for each dimension or one
// vector, clamped so that the slice is in bounds.
Index ClampedStart(const Op& op, size_t first, Dims array, Dims sizes) {
  const bool vector = op.operands.size() == first + 1 && op.in(first).rank() == 1;
  Index start(array.size(), 0);
  for (size_t d = 0; d < array.size(); ++d) {
    if (!vector && first + d >= op.operands.size()) break;
    const int64_t index = vector ? IndexAt(op.in(first), static_cast<int64_t>(d)) : IndexAt(op.in(first + d), 0);
    start[d] = std::clamp<int64_t>(index, 0, std::max<int64_t>(array[d] - sizes[d], 0));
  }
  return start;
}

// Dimension numbers of gather and scatter in common terms: `array` is gather's operand or scatter's input, `windows`
// gather's result or scatter's updates.
struct WindowNumbers {
  Dims window_dims;     // of `windows`, in the order of the array's dimensions that have windows
  Dims collapsed_dims;  // of the array: window size 1, absent from `windows`
  Dims index_map;       // array dimension of each component of an index vector
  Dims array_batching;  // of the array
  Dims index_batching;  // of the indices, in the same order
  int64_t index_vector_dim;
};

// For an element of `windows`, in each dimension of the array: the start of its window, the element's offset from it,
// and the window's size.
struct WindowPosition {
  Index start, offset, size;
};

// Returns the position of the element of `windows` at `index`; starts are not clamped.
WindowPosition WindowPositionOf(const WindowNumbers& n, Dims array, const Array& indices, Dims windows,
                                const Index& index) {
  WindowPosition position;
  position.start.assign(array.size(), 0);
  position.offset.assign(array.size(), 0);
  position.size.assign(array.size(), 1);
  size_t next = 0;
  for (size_t d = 0; d < array.size(); ++d) {
    const int64_t dim = static_cast<int64_t>(d);
    if (Contains(n.collapsed_dims, dim) || Contains(n.array_batching, dim) || next >= n.window_dims.size()) continue;
    const size_t w = static_cast<size_t>(n.window_dims[next++]);
    position.offset[d] = index[w];
    position.size[d] = windows[w];
  }
  // The other dimensions of `windows` correspond to those of the indices other than the index vector's.
  Index at(indices.dims().size(), 0);
  size_t dim = 0;
  for (size_t w = 0; w < windows.size(); ++w) {
    if (Contains(n.window_dims, static_cast<int64_t>(w))) continue;
    if (static_cast<int64_t>(dim) == n.index_vector_dim) ++dim;
    if (dim < at.size()) at[dim++] = index[w];
  }
  for (size_t c = 0; c < n.index_map.size(); ++c) {
    if (n.index_vector_dim < indices.rank()) at[static_cast<size_t>(n.index_vector_dim)] = static_cast<int64_t>(c);
    position.start[static_cast<size_t>(n.index_map[c])] = IndexAt(indices, PositionOf(at, indices.dims()));
  }
  for (size_t b = 0; b < n.array_batching.size(); ++b) {
    position.start[static_cast<size_t>(n.array_batching[b])] = at[static_cast<size_t>(n.index_batching[b])];
  }
  return position;
}

}  // namespace

namespace fill_ops {

// `dynamic-slice`
void DynamicSlice(Op& op) {
  const Array& from = op.in(0);
  const Index start = ClampedStart(op, 1, from.dims(), op.shape.dims());
  int64_t to = 0;
  op.ForEachIndex(op.shape.dims(), [&](const Index& index) {
    Index source = index;
    for (size_t d = 0; d < source.size(); ++d) source[d] += start[d];
    op.out().CopyElement(to++, from, PositionOf(source, from.dims()));
  });
}

// `dynamic-update-slice`
void DynamicUpdateSlice(Op& op) {
  const Array& update = op.in(1);
  const Index start = ClampedStart(op, 2, op.shape.dims(), update.dims());
  op.out().CopyBytes(op.in(0));
  int64_t from = 0;
  op.ForEachIndex(update.dims(), [&](const Index& index) {
    Index to = index;
    for (size_t d = 0; d < to.size(); ++d) to[d] += start[d];
    op.out().CopyElement(PositionOf(to, op.shape.dims()), update, from++);
  });
}

// `gather`: clamps windows to lie in bounds.
void Gather(Op& op) {
  const GatherDims dims = GatherDims::Of(op.instruction);
  const WindowNumbers numbers = {dims.offset_dims,           dims.collapsed_slice_dims,        dims.start_index_map,
                                 dims.operand_batching_dims, dims.start_indices_batching_dims, dims.index_vector_dim};
  const Array &from = op.in(0), &indices = op.in(1);
  if (from.count() == 0) return;  // windows of size 0 in a collapsed dimension: the result is zeros
  int64_t to = 0;
  op.ForEachIndex(op.shape.dims(), [&](const Index& index) {
    const WindowPosition position = WindowPositionOf(numbers, from.dims(), indices, op.shape.dims(), index);
    Index source(position.start.size());
    for (size_t d = 0; d < source.size(); ++d) {
      const int64_t limit = std::max<int64_t>(from.dims()[d] - position.size[d], 0);
      source[d] = std::clamp<int64_t>(position.start[d], 0, limit) + position.offset[d];
    }
    op.out().CopyElement(to++, from, PositionOf(source, from.dims()));
  });
}

// `scatter`: index by index in row-major order, each element of its window in row-major order. Skips windows that are
// partly out of bounds.
void Scatter(Op& op) {
  const ScatterDims dims = ScatterDims::Of(op.instruction);
  const WindowNumbers numbers = {
      dims.update_window_dims,  dims.inserted_window_dims,          dims.scatter_dims_to_operand_dims,
      dims.input_batching_dims, dims.scatter_indices_batching_dims, dims.index_vector_dim};
  const size_t count = op.operands.size() / 2;
  const Array& indices = op.in(count);
  const Dims input = op.in(0).dims(), updates = op.in(count + 1).dims();
  const Computation function = op.instruction.computation_attr(Attr::kToApply);
  for (size_t k = 0; k < count; ++k) op.out(k).CopyBytes(op.in(k));

  // Dimensions of an update: those of the indices, then those of the window.
  std::vector<int64_t> order;
  for (int64_t d = 0; d < static_cast<int64_t>(updates.size()); ++d) {
    if (!Contains(dims.update_window_dims, d)) order.push_back(d);
  }
  order.insert(order.end(), dims.update_window_dims.begin(), dims.update_window_dims.end());
  Index sizes;
  for (int64_t d : order) sizes.push_back(updates[static_cast<size_t>(d)]);
  op.ForEachIndex(sizes, [&](const Index& ordered) {
    Index index(ordered.size());
    for (size_t d = 0; d < order.size(); ++d) index[static_cast<size_t>(order[d])] = ordered[d];
    const WindowPosition position = WindowPositionOf(numbers, input, indices, updates, index);
    Index at(input.size());
    for (size_t d = 0; d < at.size(); ++d) {
      if (position.start[d] < 0 || position.start[d] > input[d] - position.size[d]) return;
      at[d] = position.start[d] + position.offset[d];
    }
    const int64_t to = PositionOf(at, input), from = PositionOf(index, updates);
    SlotValue arguments;
    for (size_t k = 0; k < 2 * count; ++k) {
      arguments.push_back(k < count ? op.run.ElementOf(op.out(k), to) : op.run.ElementOf(op.in(k + 1), from));
    }
    const std::optional<SlotValue> combined = op.run.Apply(function, std::move(arguments));
    for (size_t k = 0; combined && k < count && k < combined->size(); ++k) {
      const Leaf value = Converted(op.run, (*combined)[k], op.out(k).type());
      if (value != nullptr) op.out(k).CopyElement(to, *value, 0);
    }
  });
}

}  // namespace fill_ops
}  // namespace hlokit::reference
