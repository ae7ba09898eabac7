// SPDX-License-Identifier: Apache-2.0
#include "tracer/views/strided_place.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tracer/graph/op.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {
namespace {

int64_t NumberOf(const ViewInfo& view, size_t i, int64_t none = 0) {
  const Scalar* const number = i < view.args.size() ? view.args[i].get<Scalar>() : nullptr;
  return number == nullptr ? none : number->ToInt();
}

int64_t Elements(Dims sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

size_t WrappedDim(int64_t dim, size_t rank) {
  const auto n = static_cast<int64_t>(std::max<size_t>(rank, 1));
  return static_cast<size_t>((dim + n) % n);
}

void Select(StridedPlace* place, size_t dim, int64_t index) {
  place->offset += index * place->strides[dim];
  place->sizes.erase(place->sizes.begin() + static_cast<int64_t>(dim));
  place->strides.erase(place->strides.begin() + static_cast<int64_t>(dim));
}

void Swap(StridedPlace* place, size_t a, size_t b) {
  if (place->sizes.empty()) return;
  std::swap(place->sizes[a], place->sizes[b]);
  std::swap(place->strides[a], place->strides[b]);
}

// Gives the elements, in the same order, other sizes: as PyTorch finds strides for view().
bool Reshape(Dims sizes, StridedPlace* place) {
  if (Elements(sizes) == 0) {
    place->strides = PlaceOfAll(sizes).strides;
    place->sizes.assign(sizes.begin(), sizes.end());
    return true;
  }
  IntList strides(sizes.size(), 1);
  int64_t to = static_cast<int64_t>(sizes.size()) - 1;
  int64_t step = place->strides.empty() ? 1 : place->strides.back();
  int64_t from_count = 1, to_count = 1;
  for (int64_t d = static_cast<int64_t>(place->sizes.size()) - 1; d >= 0; --d) {
    from_count *= place->sizes[d];
    if (d > 0 && (place->sizes[d - 1] == 1 || place->strides[d - 1] == from_count * step)) continue;
    while (to >= 0 && (to_count < from_count || sizes[to] == 1)) {
      strides[to] = to_count * step;
      to_count *= sizes[to--];
    }
    if (to_count != from_count) return false;
    if (d > 0) {
      step = place->strides[d - 1];
      from_count = to_count = 1;
    }
  }
  while (to >= 0 && sizes[to] == 1) --to;
  place->sizes.assign(sizes.begin(), sizes.end());
  place->strides = std::move(strides);
  return to == -1;
}

void Diagonal(const ViewInfo& view, StridedPlace* place) {
  const size_t rank = place->sizes.size();
  const int64_t shift = NumberOf(view, 1);
  const size_t row = WrappedDim(NumberOf(view, 2, 0), rank), column = WrappedDim(NumberOf(view, 3, 1), rank);
  const int64_t rows = place->sizes[row] + std::min<int64_t>(shift, 0);
  const int64_t columns = place->sizes[column] - std::max<int64_t>(shift, 0);
  const int64_t length = std::max<int64_t>(std::min(rows, columns), 0);
  const int64_t step = place->strides[row] + place->strides[column];
  if (length > 0) place->offset += shift >= 0 ? shift * place->strides[column] : -shift * place->strides[row];
  for (const size_t dim : {std::max(row, column), std::min(row, column)}) {
    place->sizes.erase(place->sizes.begin() + static_cast<int64_t>(dim));
    place->strides.erase(place->strides.begin() + static_cast<int64_t>(dim));
  }
  place->sizes.push_back(length);
  place->strides.push_back(step);
}

void Expand(Dims sizes, StridedPlace* place) {
  IntList strides(sizes.size(), 0);
  const size_t added = sizes.size() - place->sizes.size();
  for (size_t d = added; d < sizes.size(); ++d) {
    if (place->sizes[d - added] == sizes[d]) strides[d] = place->strides[d - added];
  }
  place->sizes.assign(sizes.begin(), sizes.end());
  place->strides = std::move(strides);
}

// A part of a dimension that begins at `start`, every `step`-th element.
void Slice(StridedPlace* place, size_t dim, int64_t start, int64_t step, Dims sizes) {
  if (sizes[dim] > 0) place->offset += start * place->strides[dim];
  place->strides[dim] *= step;
  place->sizes.assign(sizes.begin(), sizes.end());
}

void Unfold(const ViewInfo& view, Dims sizes, StridedPlace* place) {
  if (!place->sizes.empty()) {
    const size_t dim = WrappedDim(NumberOf(view, 1), place->sizes.size());
    const int64_t step = place->strides[dim];
    place->strides[dim] *= NumberOf(view, 3, 1);
    place->strides.push_back(step);
  } else {
    place->strides.push_back(1);
  }
  place->sizes.assign(sizes.begin(), sizes.end());
}

bool HasGaps(StridedPlace place) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t d = 0; d < place.sizes.size(); ++d) {
    if (place.sizes[d] == 0) return true;
    if (place.sizes[d] > 1) dims.emplace_back(place.strides[d], place.sizes[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t last = 0;  // of the smaller dimensions
  for (const auto& [stride, size] : dims) {
    if (stride <= last) return false;
    last += stride * (size - 1);
  }
  return true;
}

}  // namespace

StridedPlace PlaceOfAll(Dims sizes) {
  StridedPlace place;
  place.sizes.assign(sizes.begin(), sizes.end());
  place.strides.assign(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) place.strides[d - 1] = place.strides[d] * std::max<int64_t>(sizes[d], 1);
  return place;
}

bool FollowView(const ViewInfo& view, Dims sizes, StridedPlace* place) {
  const size_t rank = place->sizes.size();
  const auto dim = [&](size_t i) { return WrappedDim(NumberOf(view, i), rank); };
  const auto part_dim = [&] { return dim(2); };  // of splits
  switch (view.op) {
    case Op::real:
    case Op::imag:
    case Op::view_as_real:
    case Op::view_as_complex:
    case Op::view_dtype:
      return false;
    case Op::select_int: {
      const int64_t index = NumberOf(view, 2);
      Select(place, dim(1), index < 0 ? index + place->sizes[dim(1)] : index);
      return true;
    }
    case Op::unbind_int:
      Select(place, dim(1), view.output);
      return true;
    case Op::slice_Tensor: {
      const int64_t size = place->sizes[dim(1)], start = NumberOf(view, 2);
      Slice(place, dim(1), std::clamp<int64_t>(start < 0 ? start + size : start, 0, size), NumberOf(view, 4, 1), sizes);
      return true;
    }
    case Op::split_Tensor:
      Slice(place, part_dim(), NumberOf(view, 1) * view.output, 1, sizes);
      return true;
    case Op::split_with_sizes: {
      int64_t start = 0;
      for (int k = 0; k < view.output; ++k) start += (*view.args[1].get<IntList>())[k];
      Slice(place, part_dim(), start, 1, sizes);
      return true;
    }
    case Op::diagonal:
      Diagonal(view, place);
      return true;
    case Op::as_strided: {
      // Counts in the elements of its parent: they must be one after another.
      const StridedPlace all = PlaceOfAll(place->sizes);
      if (place->strides != all.strides) return false;
      place->sizes = *view.args[1].get<IntList>();
      place->strides = *view.args[2].get<IntList>();
      place->offset += NumberOf(view, 3);
      return true;
    }
    case Op::transpose_int:
      Swap(place, dim(1), dim(2));
      return true;
    case Op::t:
      if (rank == 2) Swap(place, 0, 1);
      return true;
    case Op::permute: {
      const StridedPlace before = *place;
      const IntList& dims = *view.args[1].get<IntList>();
      for (size_t d = 0; d < rank; ++d) {
        place->sizes[d] = before.sizes[WrappedDim(dims[d], rank)];
        place->strides[d] = before.strides[WrappedDim(dims[d], rank)];
      }
      return true;
    }
    case Op::unfold:
      Unfold(view, sizes, place);
      return true;
    case Op::expand:
      Expand(sizes, place);
      return true;
    default:
      // All other views keep the elements in order.
      return Elements(sizes) == Elements(place->sizes) && Reshape(sizes, place);
  }
}

bool MayOverlap(const ViewInfo& view, Dims sizes) {
  switch (view.op) {
    case Op::unfold:
      return NumberOf(view, 3, 1) < NumberOf(view, 2);
    case Op::expand:
      return Elements(sizes) != view.parent.numel();
    case Op::as_strided: {
      StridedPlace place;
      place.sizes = *view.args[1].get<IntList>();
      place.strides = *view.args[2].get<IntList>();
      return !HasGaps(std::move(place));
    }
    default:
      return false;
  }
}

}  // namespace hlokit::lazy
