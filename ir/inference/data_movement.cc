// SPDX-License-Identifier: Apache-2.0
// Shape rules of data movement: broadcast, reshape, transpose, slices, padding and similar operations, and of
// operations that create or measure arrays.
#include <algorithm>
#include <limits>
#include <numeric>

#include "ir/inference/rules.h"

namespace hlokit::inference {
namespace {

// Returns true if two arrays whose element counts overflow int64 have equally many elements: divides each dimension of
// one by its common factors with those of the other until nothing is left. Requires: no dimension is 0 or unbounded.
bool SameLargeCount(Shape a, Shape b) {
  std::vector<int64_t> left(b.dims().begin(), b.dims().end());
  for (int64_t size : a.dims()) {
    for (int64_t& other : left) {
      const int64_t common = std::gcd(size, other);
      size /= common;
      other /= common;
    }
    if (size != 1) return false;
  }
  return std::all_of(left.begin(), left.end(), [](int64_t size) { return size == 1; });
}

bool SameElementCount(Shape a, Shape b) {
  if (a.has_unbounded_dims() || b.has_unbounded_dims()) return true;
  if (a.element_count() != b.element_count()) return false;
  return a.element_count() >= 0 || SameLargeCount(a, b);
}

// Checks the start indices of a dynamic slice of an array of `rank` dimensions: operands from `first` on, either `rank`
// integer scalars of one type or one vector of `rank` integers.
absl::Status CheckStartIndices(const InferenceContext& in, int64_t first, int64_t rank) {
  const int64_t count = in.operand_count() - first;
  if (count >= 1 && in.operand(first).rank() == 1) {
    const Shape indices = in.operand(first);
    if (count != 1) return Error("expected scalar start indices or one vector, found ", count, " operands");
    if (!IsInteger(indices.element_type())) {
      return Error("operand ", first, " (start indices) must have integer elements, found ", Text(indices));
    }
    if (!SizesFit(indices.dim(0), rank)) {
      return Error("operand ", first, " (start indices) must have ", rank, " elements, one for each dimension, found ",
                   Text(indices));
    }
    return absl::OkStatus();
  }
  if (count != rank) {
    return Error("expected ", Counted(rank, "start index", "start indices"), ", one for each dimension of operand 0 (",
                 Text(in.operand(0)), "), found ", count);
  }
  for (int64_t i = first; i < in.operand_count(); ++i) {
    const Shape index = in.operand(i);
    if (!index.IsScalar() || !IsInteger(index.element_type())) {
      return Error("operand ", i, " (a start index) must be an integer scalar, found ", Text(index));
    }
    if (index.element_type() != in.operand(first).element_type()) {
      return Error("start indices must be of one type, but operand ", first, " is ", Text(in.operand(first)),
                   " and operand ", i, " is ", Text(index));
    }
  }
  return absl::OkStatus();
}

// Returns the single dimension that `dimensions` names.
absl::Status OneDimension(const InferenceContext& in, Shape array, int64_t* dim) {
  const std::optional<int64_t> only = in.attrs.only(Attr::kDimensions);
  if (!only) return Error("expected one dimension in `dimensions`");
  if (*only < 0 || *only >= array.rank()) {
    return Error("dimension ", *only, " in `dimensions` is out of range for operand 0 (", Text(array), ")");
  }
  *dim = *only;
  return absl::OkStatus();
}

// Checks that the size, which is a 32-bit integer at run time, fits.
absl::Status CheckSizeFitsInt32(const InferenceContext& in, int64_t dim) {
  if (in.operand(0).dim(dim) <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return Error("dimension ", dim, " of operand 0 (", Text(in.operand(0)), ") is too large for s32");
}

// Adds dimension `dim` of a concatenation of operands 0 to n - 1, which agree on it unless they are concatenated along
// it.
absl::Status AddConcatenatedDim(const InferenceContext& in, int64_t dim, bool along, InferredShape* out) {
  int64_t size = along ? 0 : kUnboundedSize;
  bool dynamic = false;
  bool all_unbounded = true;
  for (int64_t i = 0; i < in.operand_count(); ++i) {
    const Shape shape = in.operand(i);
    const int64_t other = shape.dim(dim);
    dynamic |= shape.is_dynamic(dim) && !shape.is_unbounded(dim);
    if (along) {
      if (size == kUnboundedSize || other == kUnboundedSize) {
        size = kUnboundedSize;
      } else if (!Add(size, other, &size)) {
        return Error("dimension ", dim, " of the result overflows");
      }
      continue;
    }
    if (other == kUnboundedSize) continue;
    if (!all_unbounded && size != other) {
      return Error("operands differ in dimension ", dim, ", along which they are not concatenated: operand 0 is ",
                   Text(in.operand(0)), ", operand ", i, " is ", Text(shape));
    }
    size = other;
    all_unbounded = false;
  }
  out->AddDim(size, dynamic);
  return absl::OkStatus();
}

// Sets the dimensions of the result with the operand's element type.
void SetOfType(ElementType type, Shape result, InferredShape* out) {
  if (result.element_type() == type) {
    out->Set(result);
  } else {
    out->SetArray(type);
    out->AddDimsOf(result);
  }
}

}  // namespace

absl::Status InferFirstOperand(const InferenceContext& in, InferredShape* out) {
  if (in.opcode() == Opcode::kAddDependency) HLOKIT_RETURN_IF_ERROR(ExpectTokenOperand(in, 1));
  out->Set(in.operand(0));
  return absl::OkStatus();
}

absl::Status InferBroadcast(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  const absl::Span<const int64_t> dims = in.attrs.list_attr(Attr::kDimensions);
  if (static_cast<int64_t>(dims.size()) != a.rank()) {
    return Error("expected ", a.rank(), " entries in `dimensions`, one for each dimension of operand 0 (", Text(a),
                 "), found ", dims.size());
  }
  if (!in.declared().valid()) {
    // If the text omits the shape, XLA reads the list as sizes of new major dimensions. That is only consistent for
    // scalars, and otherwise by accident.
    out->SetArray(a.element_type());
    for (int64_t size : dims) {
      if (size < 0) return Error("negative size ", size, " in `dimensions`");
      out->AddDim(size);
    }
    out->AddDimsOf(a);
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] >= static_cast<int64_t>(out->dims().size()) ||
          out->dims()[dims[i]] != a.dim(static_cast<int64_t>(i))) {
        return Error("the result shape of a broadcast of ", Text(a), " must be specified");
      }
    }
    return absl::OkStatus();
  }
  const Shape result = in.declared();
  HLOKIT_RETURN_IF_ERROR(ExpectArray(result, "the result"));
  if (!SameElementTypeIgnoringFpPrecision(result, a)) {
    return Error("the result (", Text(result), ") must have the element type of operand 0 (", Text(a), ")");
  }
  DimSet taken(result.rank());
  HLOKIT_RETURN_IF_ERROR(taken.Take(dims, "`dimensions`"));
  for (int64_t i = 0; i < a.rank(); ++i) {
    if (SizesFit(a.dim(i), result.dim(dims[i]))) continue;
    return Error("dimension ", i, " of operand 0 (", Text(a), ") maps to dimension ", dims[i], " of the result (",
                 Text(result), "), but their sizes differ");
  }
  SetOfType(a.element_type(), result, out);
  return absl::OkStatus();
}

absl::Status InferReshape(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  const Shape result = in.declared();
  if (!result.valid()) return Error("the result shape of a reshape must be specified");
  HLOKIT_RETURN_IF_ERROR(ExpectArray(result, "the result"));
  if (!SameElementTypeIgnoringFpPrecision(result, a)) {
    return Error("the result (", Text(result), ") must have the element type of operand 0 (", Text(a), ")");
  }
  if (!SameElementCount(a, result)) {
    return Error("operand 0 (", Text(a), ") and the result (", Text(result), ") have different numbers of elements");
  }
  SetOfType(a.element_type(), result, out);
  return absl::OkStatus();
}

absl::Status InferTranspose(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  const absl::Span<const int64_t> permutation = in.attrs.list_attr(Attr::kDimensions);
  DimSet seen(a.rank());
  if (static_cast<int64_t>(permutation.size()) != a.rank() || !seen.Take(permutation, "").ok()) {
    return Error("`dimensions` (", Text(permutation), ") must be a permutation of the dimensions of operand 0 (",
                 Text(a), ")");
  }
  out->SetArray(a.element_type());
  for (int64_t d : permutation) out->AddDimOf(a, d);
  if (!in.layouts || !a.has_layout()) return absl::OkStatus();
  // The layout that makes the transpose a bitcast.
  std::vector<int64_t> place(permutation.size());  // of each dimension of the operand in the result
  for (size_t i = 0; i < permutation.size(); ++i) place[permutation[i]] = static_cast<int64_t>(i);
  std::vector<int64_t> minor_to_major;
  for (int64_t d : a.layout()->minor_to_major) minor_to_major.push_back(place[d]);
  out->SetLayout(
      in.shapes().Layout(minor_to_major, a.layout()->extras == nullptr ? LayoutExtras() : *a.layout()->extras));
  return absl::OkStatus();
}

absl::Status InferReverse(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  DimSet seen(in.operand(0).rank());
  HLOKIT_RETURN_IF_ERROR(seen.Take(in.attrs.list_attr(Attr::kDimensions), "`dimensions`"));
  out->Set(in.operand(0));
  return absl::OkStatus();
}

absl::Status InferSlice(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  const SliceView slice = SliceView::Of(in.attrs);
  if (!slice.ok() || slice.rank() != a.rank()) {
    return Error("`slice` must have a range for each of the ", a.rank(), " dimensions of operand 0 (", Text(a),
                 "), but has ", slice.rank());
  }
  out->SetArray(a.element_type());
  for (int64_t i = 0; i < a.rank(); ++i) {
    const int64_t start = slice.start(i);
    const int64_t limit = slice.limit(i);
    const int64_t stride = slice.stride(i);
    if (start < 0) return Error("negative start ", start, " of the slice of dimension ", i);
    if (!a.is_unbounded(i) && limit > a.dim(i)) {
      return Error("limit ", limit, " of the slice of dimension ", i, " is out of range for operand 0 (", Text(a), ")");
    }
    if (start > limit)
      return Error("start ", start, " of the slice of dimension ", i, " is greater than its limit ", limit);
    if (stride <= 0) return Error("the stride of the slice of dimension ", i, " is ", stride, ", not positive");
    const int64_t size = CeilOfRatio(limit - start, stride);
    // A slice of size one of a dynamic dimension is static.
    out->AddDim(size, size != 1 && a.is_dynamic(i) && !a.is_unbounded(i));
  }
  return absl::OkStatus();
}

absl::Status InferDynamicSlice(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  HLOKIT_RETURN_IF_ERROR(CheckStartIndices(in, 1, a.rank()));
  const absl::Span<const int64_t> sizes = in.attrs.list_attr(Attr::kDynamicSliceSizes);
  if (static_cast<int64_t>(sizes.size()) != a.rank()) {
    return Error("`dynamic_slice_sizes` must have a size for each of the ", a.rank(), " dimensions of operand 0 (",
                 Text(a), "), but has ", sizes.size());
  }
  out->SetArray(a.element_type());
  for (int64_t i = 0; i < a.rank(); ++i) {
    if (sizes[i] < 0) return Error("negative size ", sizes[i], " of the slice of dimension ", i);
    if (!a.is_unbounded(i) && sizes[i] > a.dim(i)) {
      return Error("size ", sizes[i], " of the slice of dimension ", i, " is out of range for operand 0 (", Text(a),
                   ")");
    }
    out->AddDim(sizes[i], a.is_dynamic(i) && sizes[i] > 1 && sizes[i] == a.dim(i));
  }
  return absl::OkStatus();
}

absl::Status InferDynamicUpdateSlice(const InferenceContext& in, InferredShape* out) {
  // Buffers are updated in place.
  const bool buffer = in.operand(0).IsBuffer();
  const Shape a = buffer ? in.operand(0).element(0) : in.operand(0);
  HLOKIT_RETURN_IF_ERROR(ExpectArray(a, "operand 0"));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 1));
  const Shape update = in.operand(1);
  HLOKIT_RETURN_IF_ERROR(CheckStartIndices(in, 2, a.rank()));
  if (update.rank() != a.rank()) {
    return Error("operand 1 (the update) must have the rank of operand 0: ", Text(update), " and ", Text(a));
  }
  if (!TypesMatch(a.element_type(), update.element_type(), TypeMatch::kIgnoreFpPrecision)) {
    return Error("operand 1 (the update) must have the element type of operand 0: ", Text(update), " and ", Text(a));
  }
  bool becomes_dynamic = false;
  for (int64_t i = 0; i < a.rank(); ++i) {
    if (!a.is_unbounded(i) && !update.is_unbounded(i) && update.dim(i) > a.dim(i)) {
      return Error("operand 1 (the update) is larger than operand 0 in dimension ", i, ": ", Text(update), " and ",
                   Text(a));
    }
    becomes_dynamic |= update.is_dynamic(i) && !a.is_dynamic(i) && update.dim(i) == a.dim(i);
  }
  out->Set(in.operand(0));
  if (!becomes_dynamic || buffer || !in.layouts) return absl::OkStatus();
  // An update of a whole dimension determines its dynamism.
  absl::InlinedVector<uint8_t, 8> dynamic;
  for (int64_t i = 0; i < a.rank(); ++i) {
    dynamic.push_back(a.is_dynamic(i) || (update.is_dynamic(i) && update.dim(i) == a.dim(i)));
  }
  out->Set(in.shapes().Array(a.element_type(), a.dims(), dynamic, a.layout()));
  return absl::OkStatus();
}

absl::Status InferConcatenate(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectAnyOperand(in));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape first = in.operand(0);
  int64_t along;
  HLOKIT_RETURN_IF_ERROR(OneDimension(in, first, &along));
  ElementType type = first.element_type();
  for (int64_t i = 1; i < in.operand_count(); ++i) {
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, i));
    if (in.operand(i).rank() != first.rank()) {
      return Error("operands have different ranks: operand 0 is ", Text(first), ", operand ", i, " is ",
                   Text(in.operand(i)));
    }
    HLOKIT_RETURN_IF_ERROR(ExpectSameElementTypeIgnoringFpPrecision(in, 0, i));
    // As in XLA the last operand determines the type, by comparison with the first.
    type = HigherPrecision(in.operand(i).element_type(), first.element_type());
  }
  out->SetArray(type);
  for (int64_t d = 0; d < first.rank(); ++d) HLOKIT_RETURN_IF_ERROR(AddConcatenatedDim(in, d, d == along, out));
  return absl::OkStatus();
}

absl::Status InferPad(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  const PaddingView padding = PaddingView::Of(in.attrs);
  if (!in.operand(1).IsScalar()) {
    return Error("operand 1 (the padding value) must be a scalar, found ", Text(in.operand(1)));
  }
  HLOKIT_RETURN_IF_ERROR(ExpectSameElementTypeIgnoringFpPrecision(in, 0, 1));
  if (!padding.ok() || padding.rank() != a.rank()) {
    return Error("`padding` must have an entry for each of the ", a.rank(), " dimensions of operand 0 (", Text(a),
                 "), but has ", padding.rank());
  }
  out->SetArray(HigherPrecision(a.element_type(), in.operand(1).element_type()));
  for (int64_t i = 0; i < a.rank(); ++i) {
    if (padding.interior(i) < 0) {
      return Error("the interior padding of dimension ", i, " is ", padding.interior(i),
                   ", which must not be negative");
    }
    if (a.is_unbounded(i)) {
      out->AddDim(kUnboundedSize, true);
      continue;
    }
    int64_t size;
    if (!Multiply(std::max<int64_t>(a.dim(i) - 1, 0), padding.interior(i), &size) || !Add(size, a.dim(i), &size) ||
        // The negative one first, with which the other may fit.
        !Add(size, std::min(padding.low(i), padding.high(i)), &size) ||
        !Add(size, std::max(padding.low(i), padding.high(i)), &size)) {
      return Error("padding overflows dimension ", i);
    }
    if (size < 0) return Error("negative size of dimension ", i, " of operand 0 (", Text(a), ") after padding: ", size);
    out->AddDim(size, a.is_dynamic(i));
  }
  return absl::OkStatus();
}

absl::Status InferIota(const InferenceContext& in, InferredShape* out) {
  const Shape result = in.declared();
  if (!result.valid()) return Error("the result shape of an iota must be specified");
  HLOKIT_RETURN_IF_ERROR(ExpectArray(result, "the result"));
  if (result.rank() == 0)
    return Error("expected at least one dimension in the result of an iota, found ", Text(result));
  const int64_t dim = in.attrs.int_attr(Attr::kIotaDimension);
  if (dim < 0 || dim >= result.rank()) {
    return Error("`iota_dimension` ", dim, " is out of range for the result ", Text(result));
  }
  if (result.element_type() == ElementType::kPred) {
    return Error("expected integer, floating point or complex elements in the result of an iota, found ", Text(result));
  }
  out->Set(result);
  return absl::OkStatus();
}

absl::Status InferGetDimensionSize(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  int64_t dim;
  HLOKIT_RETURN_IF_ERROR(OneDimension(in, in.operand(0), &dim));
  HLOKIT_RETURN_IF_ERROR(CheckSizeFitsInt32(in, dim));
  out->SetArray(ElementType::kS32);
  return absl::OkStatus();
}

absl::Status InferSetDimensionSize(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  int64_t dim;
  HLOKIT_RETURN_IF_ERROR(OneDimension(in, a, &dim));
  if (!IsScalarOf(in.operand(1), ElementType::kS32)) {
    return Error("operand 1 (the size) must be s32[], found ", Text(in.operand(1)));
  }
  HLOKIT_RETURN_IF_ERROR(CheckSizeFitsInt32(in, dim));
  out->SetArray(a.element_type());
  out->AddDimsOf(a);
  out->dynamic()[dim] = 1;
  out->SetLayout(a.layout());
  return absl::OkStatus();
}

}  // namespace hlokit::inference
