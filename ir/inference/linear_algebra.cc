// SPDX-License-Identifier: Apache-2.0
// Shape rules of matmuls, factorizations, Fourier transforms and batch normalization.
#include <string>

#include "absl/algorithm/container.h"
#include "ir/inference/rules.h"

namespace hlokit::inference {
namespace {

// A matmul of arrays `lhs` and `rhs`, which are operands 0 and 1.
struct MatmulShape {
  MatmulShape(const InferenceContext& in)
      : lhs(in.operand(0)),
        rhs(in.operand(1)),
        dims(DotDims::Of(in.attrs)),  // NOLINT: a record
        lhs_bound(lhs.rank()),
        rhs_bound(rhs.rank()) {}

  Shape lhs;
  Shape rhs;
  DotDims dims;
  // Batch and contracting dimensions of each side.
  DimSet lhs_bound;
  DimSet rhs_bound;
};

absl::Status CheckPaired(const MatmulShape& p, absl::Span<const int64_t> lhs, absl::Span<const int64_t> rhs,
                         std::string_view kind) {
  if (lhs.size() != rhs.size()) {
    return Error("both sides must have the same number of ", kind, " dimensions, found ", Text(lhs), " and ",
                 Text(rhs));
  }
  for (size_t i = 0; i < lhs.size(); ++i) {
    if (SizesFit(p.lhs.dim(lhs[i]), p.rhs.dim(rhs[i]))) continue;
    return Error(kind, " dimensions ", lhs[i], " of operand 0 (", Text(p.lhs), ") and ", rhs[i], " of operand 1 (",
                 Text(p.rhs), ") have different sizes");
  }
  return absl::OkStatus();
}

absl::Status CheckMatmul(const InferenceContext& in, MatmulShape* p) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 1));
  HLOKIT_RETURN_IF_ERROR(p->lhs_bound.Take(p->dims.lhs_batch, "`lhs_batch_dims`"));
  HLOKIT_RETURN_IF_ERROR(p->lhs_bound.Take(p->dims.lhs_contracting, "`lhs_contracting_dims`"));
  HLOKIT_RETURN_IF_ERROR(p->rhs_bound.Take(p->dims.rhs_batch, "`rhs_batch_dims`"));
  HLOKIT_RETURN_IF_ERROR(p->rhs_bound.Take(p->dims.rhs_contracting, "`rhs_contracting_dims`"));
  HLOKIT_RETURN_IF_ERROR(CheckPaired(*p, p->dims.lhs_contracting, p->dims.rhs_contracting, "contracting"));
  HLOKIT_RETURN_IF_ERROR(CheckPaired(*p, p->dims.lhs_batch, p->dims.rhs_batch, "batch"));
  return absl::OkStatus();
}

// Returns the element type of a matmul, which the declared shape may choose: accumulation may use another type than the
// operands.
ElementType ProductType(const InferenceContext& in) {
  if (in.declared().valid() && in.declared().IsArray()) return in.declared().element_type();
  return HigherPrecision(in.operand(0).element_type(), in.operand(1).element_type());
}

// Adds batch dimensions, then the free ones of the left and of the right side.
void AddMatmulShape(const MatmulShape& p, InferredShape* out) {
  for (int64_t d : p.dims.lhs_batch) out->AddDimOf(p.lhs, d);
  for (int64_t d = 0; d < p.lhs.rank(); ++d) {
    if (!p.lhs_bound.Has(d)) out->AddDimOf(p.lhs, d);
  }
  for (int64_t d = 0; d < p.rhs.rank(); ++d) {
    if (!p.rhs_bound.Has(d)) out->AddDimOf(p.rhs, d);
  }
}

// Checks the scale of one operand of a scaled dot: a scalar, or an array with an element per block of the operand.
absl::Status CheckScale(const InferenceContext& in, int64_t factor) {
  const Shape scale = in.operand(factor + 2);
  const Shape scaled = in.operand(factor);
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, factor + 2));
  if (scale.rank() == 0) return absl::OkStatus();
  if (scale.rank() != scaled.rank()) {
    return Error("operand ", factor + 2, " (the scale of operand ", factor, ") must be a scalar or have the rank of ",
                 Text(scaled), ", found ", Text(scale));
  }
  for (int64_t i = 0; i < scale.rank(); ++i) {
    if (scale.is_unbounded(i) || scaled.is_unbounded(i) || scale.dim(i) == scaled.dim(i)) continue;
    if (scale.dim(i) > 0 && scaled.dim(i) % scale.dim(i) == 0) continue;
    return Error("dimension ", i, " of operand ", factor + 2, " (", Text(scale), ") must divide that of operand ",
                 factor, " (", Text(scaled), ")");
  }
  return absl::OkStatus();
}

absl::Status CheckMinorSquare(Shape a) {
  if (!IsFloat(a.element_type()) && !IsComplex(a.element_type())) {
    return Error("operand 0 must have floating point or complex elements, found ", Text(a));
  }
  const int64_t rank = a.rank();
  if (rank < 2) return Error("operand 0 must have at least two dimensions, found ", Text(a));
  if (!SizesFit(a.dim(rank - 2), a.dim(rank - 1))) {
    return Error("the last two dimensions of operand 0 must be equal, found ", Text(a));
  }
  return absl::OkStatus();
}

// ---- batch normalization ----

// Checks batch normalization: operand 0 is normalized along all but the feature dimension, and operands 1 to `last`
// hold a value per feature.
absl::Status CheckFeatures(const InferenceContext& in, int64_t last, int64_t* feature) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  if (!IsFloat(a.element_type())) return Error("operand 0 must have floating point elements, found ", Text(a));
  *feature = in.attrs.int_attr(Attr::kFeatureIndex);
  if (*feature < 0 || *feature >= a.rank()) {
    return Error("`feature_index` ", *feature, " is out of range for operand 0 (", Text(a), ")");
  }
  for (int64_t i = 1; i <= last; ++i) {
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, i));
    HLOKIT_RETURN_IF_ERROR(ExpectSameElementTypeIgnoringFpPrecision(in, 0, i));
    const Shape b = in.operand(i);
    if (b.rank() != 1 || !SizesFit(b.dim(0), a.dim(*feature))) {
      return Error("operand ", i, " must have one dimension of size ", DimensionSizeToString(a.dim(*feature)),
                   ", a value for each "
                   "feature of operand 0 (",
                   Text(a), "), found ", Text(b));
    }
  }
  return absl::OkStatus();
}

// Sets the result to (operand 0, a value per feature, another one).
void SetNormalized(Shape a, int64_t feature, InferredShape* out) {
  out->SetTuple();
  out->AddDimOf(a, feature);
  out->AddElement(a);
  out->AddArrayElement(a.element_type());
  out->AddArrayElement(a.element_type());
}

}  // namespace

absl::Status InferDot(const InferenceContext& in, InferredShape* out) {
  MatmulShape p(in);
  HLOKIT_RETURN_IF_ERROR(CheckMatmul(in, &p));
  out->SetArray(ProductType(in));
  AddMatmulShape(p, out);
  return absl::OkStatus();
}

absl::Status InferScaledDot(const InferenceContext& in, InferredShape* out) {
  MatmulShape p(in);
  HLOKIT_RETURN_IF_ERROR(CheckMatmul(in, &p));
  HLOKIT_RETURN_IF_ERROR(CheckScale(in, 0));
  HLOKIT_RETURN_IF_ERROR(CheckScale(in, 1));
  if (in.operand(2).rank() == 0 && in.operand(3).rank() == 0) {
    return Error("operand 2 or 3 (the scales) must not be a scalar, found ", Text(in.operand(2)), " and ",
                 Text(in.operand(3)));
  }
  out->SetArray(ProductType(in));
  AddMatmulShape(p, out);
  return absl::OkStatus();
}

// Infers a ragged dot: one dimension of the left side is ragged, and operand 2 has the sizes of its groups. By the kind
// of that dimension:
//   free         [b,m,k], [g,b,k,n] -> [b,m,n]      each group of rows has a separate right side
//   contracting  [b,m,k], [b,k,n]   -> [g,b,m,n]    a matmul per group
//   batch        [b,m,k], [b,k,n]   -> [b,m,n]
// Operand 2 is [g], or has before g the sizes of the batch dimensions and of those of the same kind as the ragged one
// that precede it.
absl::Status InferRaggedDot(const InferenceContext& in, InferredShape* out) {
  MatmulShape p(in);
  HLOKIT_RETURN_IF_ERROR(CheckMatmul(in, &p));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 2));
  const Shape groups = in.operand(2);
  const std::optional<int64_t> ragged = in.attrs.only(Attr::kLhsRaggedDims);
  if (!ragged) return Error("expected one dimension in `lhs_ragged_dims`");
  if (*ragged < 0 || *ragged >= p.lhs.rank()) {
    return Error("dimension ", *ragged, " in `lhs_ragged_dims` is out of range for operand 0 (", Text(p.lhs), ")");
  }
  const bool is_batch = absl::c_linear_search(p.dims.lhs_batch, *ragged);
  const bool is_contracting = absl::c_linear_search(p.dims.lhs_contracting, *ragged);

  // Dimensions of the left side that operand 2 may have before the groups.
  absl::InlinedVector<int64_t, 8> prefix;
  const auto add_before_ragged = [&](absl::Span<const int64_t> dims) {
    for (int64_t d : dims) {
      if (d == *ragged) return;
      prefix.push_back(d);
    }
  };
  add_before_ragged(p.dims.lhs_batch);
  if (is_contracting) {
    add_before_ragged(p.dims.lhs_contracting);
  } else if (!is_batch) {
    for (int64_t d = 0; d < *ragged; ++d) {
      if (!p.lhs_bound.Has(d)) prefix.push_back(d);
    }
  }
  const auto full_rank = static_cast<int64_t>(prefix.size()) + 1;
  if (groups.rank() != 1 && groups.rank() != full_rank) {
    return Error("operand 2 (the group sizes) must have ", full_rank == 1 ? "" : StrCat(full_rank, " dimensions or "),
                 "one dimension, found ", Text(groups));
  }
  for (int64_t i = 0; groups.rank() != 1 && i + 1 < full_rank; ++i) {
    if (SizesFit(groups.dim(i), p.lhs.dim(prefix[i]))) continue;
    return Error("dimension ", i, " of operand 2 (the group sizes, ", Text(groups),
                 ") must have the size of dimension ", prefix[i], " of operand 0 (", Text(p.lhs), ")");
  }
  const int64_t group_dim = groups.rank() - 1;

  const absl::Span<const int64_t> rhs_groups = in.attrs.list_attr(Attr::kRhsGroupDims);
  if (rhs_groups.size() != (is_batch || is_contracting ? 0 : 1)) {
    return Error("expected ", is_batch || is_contracting ? "no dimension" : "one dimension",
                 " in `rhs_group_dims` when the ragged dimension of operand 0 is ",
                 is_batch ? "a batch" : (is_contracting ? "a contracting" : "neither a batch nor a contracting"),
                 " dimension, found ", Text(rhs_groups));
  }
  HLOKIT_RETURN_IF_ERROR(p.rhs_bound.Take(rhs_groups, "`rhs_group_dims`"));
  for (int64_t d : rhs_groups) {
    if (SizesFit(p.rhs.dim(d), groups.dim(group_dim))) continue;
    return Error("dimension ", d, " of operand 1 (", Text(p.rhs), ") must have size ",
                 DimensionSizeToString(groups.dim(group_dim)), ", the number of groups");
  }
  out->SetArray(ProductType(in));
  if (is_contracting) out->AddDimOf(groups, group_dim);
  AddMatmulShape(p, out);
  return absl::OkStatus();
}

absl::Status InferFft(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  const absl::Span<const int64_t> length = in.attrs.list_attr(Attr::kFftLength);
  const auto fft_rank = static_cast<int64_t>(length.size());
  if (fft_rank < 1 || fft_rank > 3) return Error("`fft_length` must have 1 to 3 entries, found ", Text(length));
  for (int64_t n : length) {
    if (n < 0) return Error("negative length ", n, " in `fft_length`");
  }
  if (a.rank() < fft_rank) {
    return Error("`fft_length` has ", fft_rank, " entries, more than operand 0 (", Text(a), ") has dimensions");
  }
  const FftType type = in.attrs.enum_attr(Attr::kFftType, FftType::kFft);
  const bool from_real = type == FftType::kRfft;
  if (from_real ? a.element_type() != ElementType::kF32 && a.element_type() != ElementType::kF64
                : !IsComplex(a.element_type())) {
    return Error("operand 0 must have ", from_real ? "f32 or f64" : "complex", " elements, found ", Text(a));
  }
  if (type == FftType::kFft || type == FftType::kIfft) {
    out->Set(a);
    return absl::OkStatus();
  }
  // The real side of the last dimension has fft_length elements, the complex side half of them and one.
  const int64_t last = a.rank() - 1;
  const int64_t real_size = length[fft_rank - 1];
  const int64_t complex_size = real_size / 2 + 1;
  for (int64_t i = 0; i < fft_rank; ++i) {
    const int64_t d = a.rank() - fft_rank + i;
    const int64_t wanted = d == last && !from_real ? complex_size : length[i];
    if (SizesFit(a.dim(d), wanted)) continue;
    if (d == last && !from_real && a.dim(d) == 0 && real_size == 0) continue;  // empty stays empty
    return Error("dimension ", d, " of operand 0 (", Text(a), ") must be ", wanted, " for an fft_length of ",
                 Text(length));
  }
  if (from_real) {
    out->SetArray(a.element_type() == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128);
  } else {
    out->SetArray(ComponentType(a.element_type()));
  }
  for (int64_t i = 0; i < last; ++i) out->AddDimOf(a, i);
  const int64_t size = from_real ? (real_size == 0 ? a.dim(last) : complex_size) : real_size;
  out->AddDim(size, a.is_dynamic(last) && !a.is_unbounded(last));
  out->SetLayout(a.layout());
  return absl::OkStatus();
}

absl::Status InferCholesky(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  HLOKIT_RETURN_IF_ERROR(CheckMinorSquare(in.operand(0)));
  out->Set(in.operand(0));
  return absl::OkStatus();
}

absl::Status InferTriangularSolve(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 1));
  const Shape a = in.operand(0);
  const Shape b = in.operand(1);
  HLOKIT_RETURN_IF_ERROR(CheckMinorSquare(a));
  if (a.element_type() != b.element_type()) {
    return Error("operands must have the same element type, found ", Text(a), " and ", Text(b));
  }
  const int64_t rank = a.rank();
  if (b.rank() != rank) return Error("operands must have the same rank, found ", Text(a), " and ", Text(b));
  const int64_t shared = in.attrs.bool_attr(Attr::kLeftSide) ? rank - 2 : rank - 1;
  if (!SizesFit(a.dim(rank - 1), b.dim(shared))) {
    return Error("dimension ", shared, " of operand 1 (", Text(b),
                 ") must have the size of the matrices of operand 0 (", Text(a), ")");
  }
  for (int64_t i = 0; i < rank - 2; ++i) {
    if (SizesFit(a.dim(i), b.dim(i))) continue;
    return Error("operands differ in dimension ", i, ", a batch dimension: ", Text(a), " and ", Text(b));
  }
  if (in.attrs.enum_attr(Attr::kTransposeA, TriangularTranspose::kInvalid) == TriangularTranspose::kInvalid) {
    return Error("`transpose_a` must be NO_TRANSPOSE, TRANSPOSE or ADJOINT");
  }
  out->Set(b);
  return absl::OkStatus();
}

absl::Status InferBatchNormTraining(const InferenceContext& in, InferredShape* out) {
  int64_t feature;
  HLOKIT_RETURN_IF_ERROR(CheckFeatures(in, 2, &feature));
  SetNormalized(in.operand(0), feature, out);
  return absl::OkStatus();
}

absl::Status InferBatchNormInference(const InferenceContext& in, InferredShape* out) {
  int64_t feature;
  HLOKIT_RETURN_IF_ERROR(CheckFeatures(in, 4, &feature));
  out->Set(in.operand(0));
  return absl::OkStatus();
}

absl::Status InferBatchNormGrad(const InferenceContext& in, InferredShape* out) {
  int64_t feature;
  HLOKIT_RETURN_IF_ERROR(CheckFeatures(in, 3, &feature));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 4));
  HLOKIT_RETURN_IF_ERROR(ExpectSameElementTypeIgnoringFpPrecision(in, 0, 4));
  if (!SameDims(in.operand(0), in.operand(4))) {
    return Error("operand 4 (the gradient of the result) must have the dimensions of operand 0, found ",
                 Text(in.operand(4)), " and ", Text(in.operand(0)));
  }
  SetNormalized(in.operand(0), feature, out);
  return absl::OkStatus();
}

}  // namespace hlokit::inference
