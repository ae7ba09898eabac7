// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/movement/indexed_windows.h"

#include "absl/algorithm/container.h"

namespace hlokit::interp {
bool IndexedWindows::Init(const IndexedDims& dims, absl::Span<const int64_t> array_dims, const Dims& array_strides_in,
                          const View& indices, absl::Span<const int64_t> windows_dims,
                          absl::Span<const Dims> windows_strides_in) {
  const int64_t array_rank = static_cast<int64_t>(array_dims.size());
  const int64_t windows_rank = static_cast<int64_t>(windows_dims.size());
  const int64_t indices_rank = indices.shape.rank();
  index_type = indices.type();
  if (!IsInteger(index_type) || dims.index_vector_dim < 0 || dims.index_vector_dim > indices_rank) return false;
  const Dims index_strides = StridesOf(indices);

  // Window dimensions, in the order of the array's dimensions.
  windows_strides.resize(windows_strides_in.size());
  std::vector<int64_t> window_size_of(static_cast<size_t>(array_rank), 1);
  size_t next = 0;
  for (int64_t d = 0; d < array_rank; ++d) {
    if (absl::c_linear_search(dims.collapsed_dims, d) || absl::c_linear_search(dims.array_batching, d)) continue;
    if (next == dims.window_dims.size()) return false;
    const int64_t w = dims.window_dims[next++];
    if (w < 0 || w >= windows_rank || windows_dims[w] > array_dims[d]) return false;
    window_size_of[d] = windows_dims[w];
    window_sizes.push_back(windows_dims[w]);
    array_strides.push_back(array_strides_in[d]);
    for (size_t k = 0; k < windows_strides_in.size(); ++k) windows_strides[k].push_back(windows_strides_in[k][w]);
  }
  if (next != dims.window_dims.size()) return false;

  // Components of an index vector.
  const int64_t count = dims.index_vector_dim == indices_rank ? 1 : indices.shape.dim(dims.index_vector_dim);
  if (count != static_cast<int64_t>(dims.index_map.size())) return false;
  const int64_t component_stride = dims.index_vector_dim == indices_rank ? 0 : index_strides[dims.index_vector_dim];
  for (size_t i = 0; i < dims.index_map.size(); ++i) {
    const int64_t d = dims.index_map[i];
    if (d < 0 || d >= array_rank) return false;
    if (absl::c_linear_search(dims.array_batching, d)) continue;
    components.push_back({static_cast<int64_t>(i) * component_stride, array_strides_in[d],
                          array_dims[d] - window_size_of[d], window_size_of[d] == 1});
  }

  // The other dimensions of `windows` correspond to those of the indices, in order.
  Dims sizes;
  std::vector<Dims> strides(2 + windows_strides_in.size());
  std::vector<size_t> long_batch_dims;  // of `sizes`
  int64_t index_dim = 0;
  for (int64_t w = 0; w < windows_rank; ++w) {
    if (absl::c_linear_search(dims.window_dims, w)) continue;
    if (index_dim == dims.index_vector_dim) ++index_dim;
    if (index_dim >= indices_rank || indices.shape.dim(index_dim) != windows_dims[w]) return false;
    sizes.push_back(windows_dims[w]);
    strides[0].push_back(index_strides[index_dim]);
    int64_t array_stride = 0;
    for (size_t i = 0; i < dims.index_batching.size() && i < dims.array_batching.size(); ++i) {
      const int64_t d = dims.array_batching[i];
      if (dims.index_batching[i] != index_dim) continue;
      if (d < 0 || d >= array_rank) return false;
      if (windows_dims[w] <= array_dims[d]) {
        array_stride = array_strides_in[d];
        continue;
      }
      long_batches.push_back({array_strides_in[d], array_dims[d] - 1});
      long_batch_dims.push_back(sizes.size() - 1);
    }
    strides[1].push_back(array_stride);
    for (size_t k = 0; k < windows_strides_in.size(); ++k) strides[2 + k].push_back(windows_strides_in[k][w]);
    ++index_dim;
  }
  for (size_t dim : long_batch_dims) {
    strides.emplace_back(sizes.size(), 0);
    strides.back()[dim] = 1;
  }
  // A collapsed dimension of size 0 that no component of the indices chooses has no limit to be checked against.
  const bool nowhere = ElementCount(array_dims) == 0;
  empty = nowhere || ElementCount(sizes) == 0 || ElementCount(window_sizes) == 0;
  if (!empty) outer = LoopNest(sizes, strides);
  return true;
}

}  // namespace hlokit::interp
