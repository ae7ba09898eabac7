// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/programs/loop_layout.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/reshape_view.h"

namespace hlokit::interp::compiled {

MemoryOrder DeclaredOrder(size_t rank) {
  MemoryOrder order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

MemoryOrder ChooseOrder(absl::Span<const int64_t> dims, absl::Span<const View> views) {
  const MemoryOrder declared = DeclaredOrder(dims.size());
  std::vector<std::pair<MemoryOrder, int64_t>> votes = {{declared, 0}};
  for (const View& view : views) {
    const Dims strides = StridesOf(view);
    // Broadcasts have no order.
    bool whole = true;
    for (size_t d = 0; d < dims.size(); ++d) whole = whole && (dims[d] == 1 || strides[d] != 0);
    if (!whole) continue;
    MemoryOrder order = declared;
    // Dimensions of one element stay where they are.
    std::vector<size_t> places;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] != 1) places.push_back(d);
    }
    std::vector<size_t> sorted = places;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](size_t a, size_t b) { return std::abs(strides[a]) > std::abs(strides[b]); });
    for (size_t k = 0; k < places.size(); ++k) order[places[k]] = sorted[k];
    auto vote = std::find_if(votes.begin(), votes.end(), [&](const auto& v) { return v.first == order; });
    if (vote == votes.end()) vote = votes.insert(votes.end(), {order, 0});
    vote->second += BytesOf(view.type());
  }
  return std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

Dims Permuted(absl::Span<const int64_t> values, const MemoryOrder& order) {
  Dims permuted;
  for (size_t d : order) permuted.push_back(values[d]);
  return permuted;
}

View InMemoryOrder(CompiledComputationBuilder& b, const View& view, const MemoryOrder& order) {
  const Dims dims = Permuted(view.dims(), order);
  View permuted = view;
  permuted.shape = b.program_shapes().Array(view.type(), dims);
  permuted.strides = b.NewStrides(Permuted(StridesOf(view), order), dims);
  return permuted;
}

View Permuted(CompiledComputationBuilder& b, const View& view, absl::Span<const int64_t> order) {
  return InMemoryOrder(b, view, MemoryOrder(order.begin(), order.end()));
}

View PermutedBack(CompiledComputationBuilder& b, const View& view, absl::Span<const int64_t> order) {
  Dims back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return Permuted(b, view, back);
}

View InDeclaredOrder(CompiledComputationBuilder& b, const View& view, const MemoryOrder& order, Shape shape) {
  const Dims dense = DenseStrides(Permuted(shape.dims(), order));
  Dims strides(order.size(), 0);
  for (size_t k = 0; k < order.size(); ++k) strides[order[k]] = dense[k];
  View declared = view;
  declared.shape = shape;
  declared.strides = b.NewStrides(strides, shape.dims());
  return declared;
}

MemoryOrder WithoutDimensions(const MemoryOrder& order, const std::vector<bool>& removed) {
  std::vector<size_t> number(removed.size(), 0);
  size_t next = 0;
  for (size_t d = 0; d < removed.size(); ++d) {
    if (!removed[d]) number[d] = next++;
  }
  MemoryOrder rest;
  for (size_t d : order) {
    if (!removed[d]) rest.push_back(number[d]);
  }
  return rest;
}

View AlongDimension(CompiledComputationBuilder& b, const View& values, Shape shape, int64_t dimension, int64_t stride) {
  Dims strides(static_cast<size_t>(shape.rank()), 0);
  strides[static_cast<size_t>(dimension)] = stride;
  View view = values;
  view.shape = b.program_shapes().Array(values.type(), shape.dims());
  view.strides = b.NewStrides(strides, shape.dims());
  return view;
}

View InDims(CompiledComputationBuilder& b, const View& view, Shape loop_shape) {
  const Shape shape = b.program_shapes().Array(view.type(), loop_shape.dims());
  if (view.shape.rank() == 0 && loop_shape.rank() != 0) {
    View scalar = view;
    scalar.shape = shape;
    scalar.strides = b.NewStrides(Dims(static_cast<size_t>(shape.rank()), 0), shape.dims());
    return scalar;
  }
  if (view.dims() == loop_shape.dims()) return view;
  return ReshapeView(b, view, shape);
}

View Compact(CompiledComputationBuilder& b, const View& view) {
  const Dims strides = StridesOf(view);
  Dims dims, kept;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] == 0) continue;
    dims.push_back(view.dims()[d]);
    kept.push_back(strides[d]);
  }
  View small = view;
  small.shape = b.program_shapes().Array(view.type(), dims);
  small.strides = b.NewStrides(kept, dims);
  small = b.MakeDense(small);
  const Dims dense = DenseStrides(dims);
  Dims again;
  for (size_t d = 0, k = 0; d < strides.size(); ++d) again.push_back(strides[d] == 0 ? 0 : dense[k++]);
  small.shape = view.shape;
  small.strides = b.NewStrides(again, view.dims());
  return small;
}

}  // namespace hlokit::interp::compiled
