// SPDX-License-Identifier: Apache-2.0
// Shape rules of gather and scatter.
#include <algorithm>

#include "ir/inference/rules.h"

namespace hlokit::inference {
namespace {

// The array of indices of a gather or scatter, with the dimension that holds index vectors made explicit: indices of
// shape [a,b] with index_vector_dim 2 mean [a,b,1].
class Indices {
 public:
  static absl::Status Read(const InferenceContext& in, int64_t operand, int64_t vector_dim, Indices* out) {
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, operand));
    const Shape shape = in.operand(operand);
    if (!IsInteger(shape.element_type())) {
      return Error("operand ", operand, " (the indices) must have integer elements, found ", Text(shape));
    }
    if (vector_dim < 0 || vector_dim > shape.rank()) {
      return Error("`index_vector_dim` ", vector_dim, " is out of range for operand ", operand, " (the indices, ",
                   Text(shape), ")");
    }
    out->shape_ = shape;
    out->vector_dim_ = vector_dim;
    return absl::OkStatus();
  }

  // Includes the explicit dimension.
  int64_t rank() const { return std::max(shape_.rank(), vector_dim_ + 1); }
  int64_t dim(int64_t i) const { return i < shape_.rank() ? shape_.dim(i) : 1; }
  bool is_dynamic(int64_t i) const { return i < shape_.rank() && shape_.is_dynamic(i); }
  // Returns the number of components of an index.
  int64_t vector_size() const { return dim(vector_dim_); }
  // Number of dimensions other than the one of vectors; the i-th is batch_dim(i).
  int64_t batch_rank() const { return rank() - 1; }
  int64_t batch_dim(int64_t i) const { return i < vector_dim_ ? i : i + 1; }

 private:
  Shape shape_;
  int64_t vector_dim_ = 0;
};

absl::Status ExpectIncreasing(absl::Span<const int64_t> list, std::string_view what) {
  if (IsIncreasing(list)) return absl::OkStatus();
  return Error(what, " must be in increasing order, found ", Text(list));
}

// Checks batching dimensions, which pair dimensions of the operand with dimensions of the indices. As in XLA their
// sizes may differ.
absl::Status CheckBatching(absl::Span<const int64_t> of_operand, std::string_view operand_name,
                           absl::Span<const int64_t> of_indices, std::string_view indices_name, const Indices& indices,
                           int64_t vector_dim) {
  if (of_operand.empty() && of_indices.empty()) return absl::OkStatus();
  if (of_operand.size() != of_indices.size()) {
    return Error(operand_name, " and ", indices_name, " must have the same size, found ", Text(of_operand), " and ",
                 Text(of_indices));
  }
  DimSet taken(indices.rank());
  HLOKIT_RETURN_IF_ERROR(taken.Take(of_indices, indices_name));
  if (taken.Has(vector_dim))
    return Error(indices_name, " contains dimension ", vector_dim, ", which is `index_vector_dim`");
  return absl::OkStatus();
}

// Checks the dimensions of the operand that the components of an index refer to.
absl::Status CheckIndexMap(absl::Span<const int64_t> map, std::string_view name, Shape operand,
                           const Indices& indices) {
  if (!SizesFit(indices.vector_size(), static_cast<int64_t>(map.size()))) {
    return Error(name, " has ", map.size(), " entries, but an index vector has ",
                 DimensionSizeToString(indices.vector_size()), " components");
  }
  DimSet mapped(operand.rank());
  return mapped.Take(map, name);
}

}  // namespace

absl::Status InferGather(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  const GatherDims dims = GatherDims::Of(in.attrs);
  Indices indices;
  HLOKIT_RETURN_IF_ERROR(Indices::Read(in, 1, dims.index_vector_dim, &indices));

  HLOKIT_RETURN_IF_ERROR(ExpectIncreasing(dims.offset_dims, "`offset_dims`"));
  HLOKIT_RETURN_IF_ERROR(ExpectIncreasing(dims.collapsed_slice_dims, "`collapsed_slice_dims`"));
  HLOKIT_RETURN_IF_ERROR(ExpectIncreasing(dims.operand_batching_dims, "`operand_batching_dims`"));
  const auto offsets = static_cast<int64_t>(dims.offset_dims.size());
  const int64_t result_rank = offsets + indices.batch_rank();
  DimSet offset(result_rank);
  HLOKIT_RETURN_IF_ERROR(offset.Take(dims.offset_dims, "`offset_dims`"));
  DimSet batching(a.rank());
  HLOKIT_RETURN_IF_ERROR(batching.Take(dims.operand_batching_dims, "`operand_batching_dims`"));
  DimSet dropped = batching;
  HLOKIT_RETURN_IF_ERROR(dropped.Take(dims.collapsed_slice_dims, "`collapsed_slice_dims`"));
  HLOKIT_RETURN_IF_ERROR(CheckIndexMap(dims.start_index_map, "`start_index_map`", a, indices));
  HLOKIT_RETURN_IF_ERROR(CheckBatching(dims.operand_batching_dims, "`operand_batching_dims`",
                                       dims.start_indices_batching_dims, "`start_indices_batching_dims`", indices,
                                       dims.index_vector_dim));

  if (static_cast<int64_t>(dims.slice_sizes.size()) != a.rank()) {
    return Error("`slice_sizes` must have a size for each of the ", a.rank(), " dimensions of operand 0 (", Text(a),
                 "), but has ", dims.slice_sizes.size());
  }
  const auto not_offsets = static_cast<int64_t>(dims.collapsed_slice_dims.size() + dims.operand_batching_dims.size());
  if (offsets + not_offsets != a.rank()) {
    return Error("each dimension of operand 0 (", Text(a),
                 ") must be an offset dimension, collapsed or a batching "
                 "dimension, but `offset_dims` has ",
                 offsets, " and the others ", not_offsets);
  }
  for (int64_t i = 0; i < a.rank(); ++i) {
    const int64_t size = dims.slice_sizes[i];
    if (size < 0 || (!a.is_unbounded(i) && size > a.dim(i))) {
      return Error("size ", size, " of the slice in dimension ", i, " is out of range for operand 0 (", Text(a), ")");
    }
    if (size > 1 && dropped.Has(i)) {
      return Error("expected a slice of size at most 1 in dimension ", i, ", which is ",
                   batching.Has(i) ? "a batching dimension" : "collapsed", ", found ", size);
    }
  }

  out->SetArray(a.element_type());
  int64_t slice_dim = 0;
  int64_t batch = 0;
  for (int64_t i = 0; i < result_rank; ++i) {
    if (!offset.Has(i)) {
      const int64_t d = indices.batch_dim(batch++);
      out->AddDim(indices.dim(d), indices.is_dynamic(d));
      continue;
    }
    while (dropped.Has(slice_dim))
      ++slice_dim;  // terminates: as many dimensions are kept as there are offset dimensions
    // A full slice of a dynamic dimension is dynamic.
    out->AddDim(dims.slice_sizes[slice_dim],
                dims.slice_sizes[slice_dim] == a.dim(slice_dim) && a.is_dynamic(slice_dim));
    ++slice_dim;
  }
  return absl::OkStatus();
}

absl::Status InferScatter(const InferenceContext& in, InferredShape* out) {
  const int64_t n = in.operand_count() / 2;
  if (n == 0 || in.operand_count() != 2 * n + 1) {
    return Error("expected arrays, the indices and as many updates as arrays, found ", in.operand_count(), " operands");
  }
  const ScatterDims dims = ScatterDims::Of(in.attrs);
  Indices indices;
  HLOKIT_RETURN_IF_ERROR(Indices::Read(in, n, dims.index_vector_dim, &indices));
  HLOKIT_RETURN_IF_ERROR(ExpectIncreasing(dims.update_window_dims, "`update_window_dims`"));
  HLOKIT_RETURN_IF_ERROR(ExpectIncreasing(dims.inserted_window_dims, "`inserted_window_dims`"));
  HLOKIT_RETURN_IF_ERROR(ExpectIncreasing(dims.input_batching_dims, "`input_batching_dims`"));
  const auto window_rank = static_cast<int64_t>(dims.update_window_dims.size());
  const auto not_window = static_cast<int64_t>(dims.inserted_window_dims.size() + dims.input_batching_dims.size());
  for (int64_t k = 0; k < n; ++k) {
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, k));
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, n + 1 + k));
    const Shape a = in.operand(k);
    const Shape updates = in.operand(n + 1 + k);
    if (updates.rank() != indices.batch_rank() + window_rank) {
      return Error("operand ", n + 1 + k, " (updates) must have ", indices.batch_rank() + window_rank, " dimensions, ",
                   indices.batch_rank(), " of the indices and ", window_rank, " of the window, found ", Text(updates));
    }
    if (window_rank + not_window != a.rank()) {
      return Error("each dimension of operand ", k, " (", Text(a),
                   ") must be a window dimension, inserted or a batching "
                   "dimension, but `update_window_dims` has ",
                   window_rank, " and the others ", not_window);
    }
    DimSet window(updates.rank());
    HLOKIT_RETURN_IF_ERROR(window.Take(dims.update_window_dims, "`update_window_dims`"));
    DimSet batching(a.rank());
    HLOKIT_RETURN_IF_ERROR(batching.Take(dims.input_batching_dims, "`input_batching_dims`"));
    DimSet dropped = batching;
    HLOKIT_RETURN_IF_ERROR(dropped.Take(dims.inserted_window_dims, "`inserted_window_dims`"));
    HLOKIT_RETURN_IF_ERROR(
        CheckIndexMap(dims.scatter_dims_to_operand_dims, "`scatter_dims_to_operand_dims`", a, indices));
    HLOKIT_RETURN_IF_ERROR(CheckBatching(dims.input_batching_dims, "`input_batching_dims`",
                                         dims.scatter_indices_batching_dims, "`scatter_indices_batching_dims`", indices,
                                         dims.index_vector_dim));
    int64_t operand_dim = 0;
    int64_t batch = 0;
    for (int64_t i = 0; i < updates.rank(); ++i) {
      if (window.Has(i)) {
        while (dropped.Has(operand_dim))
          ++operand_dim;  // terminates: as many dimensions are kept as there are window dimensions
        if (!updates.is_unbounded(i) && !a.is_unbounded(operand_dim) && updates.dim(i) > a.dim(operand_dim)) {
          return Error("operand ", n + 1 + k, " (updates) is larger than operand ", k, " in window dimension ", i, ": ",
                       Text(updates), " and ", Text(a));
        }
        ++operand_dim;
        continue;
      }
      const int64_t d = indices.batch_dim(batch++);
      if (!SizesFit(updates.dim(i), indices.dim(d))) {
        return Error("operand ", n + 1 + k, " (updates) has size ", DimensionSizeToString(updates.dim(i)),
                     " in dimension ", i, ", but the indices have ", DimensionSizeToString(indices.dim(d)),
                     " in dimension ", d);
      }
    }
  }
  Signature reducer;
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kToApply, "the update computation", &reducer));
  HLOKIT_RETURN_IF_ERROR(
      CheckReducer(reducer, in.operands().subspan(n + 1), in.operands().first(n), /*init_elements=*/true));
  if (n == 1) {
    out->Set(in.operand(0));
    return absl::OkStatus();
  }
  out->SetTuple(in.operands().first(n));
  return absl::OkStatus();
}

}  // namespace hlokit::inference
