// SPDX-License-Identifier: Apache-2.0
// Shape rules of collectives. The number of participating devices is unknown here, so sizes that depend on it are taken
// from the declared shape and checked for consistency; the verifier compares them with the replica groups.
#include <optional>
#include <vector>

#include "ir/inference/rules.h"

namespace hlokit::inference {
namespace {

absl::Status ExpectArrayOperands(const InferenceContext& in, int64_t count) {
  HLOKIT_RETURN_IF_ERROR(ExpectAnyOperand(in));
  for (int64_t i = 0; i < count; ++i) HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, i));
  return absl::OkStatus();
}

// Sets the result to the first `count` operands: a single one alone, several as a tuple.
void SetOperands(const InferenceContext& in, int64_t count, InferredShape* out) {
  if (count == 1) {
    out->Set(in.operand(0));
  } else {
    out->SetTuple(in.operands().first(count));
  }
}

// Returns the shape that SetOperands describes.
Shape OperandsShape(const InferenceContext& in) {
  return in.operand_count() == 1 ? in.operand(0) : in.shapes().Tuple(in.operands());
}

// Finds the declared shape of the result element of operand `i`. `result` is an array for one operand and a tuple of
// arrays for several.
absl::Status DeclaredPart(const InferenceContext& in, Shape result, int64_t i, Shape* part) {
  if (!result.valid()) return Error("the result shape of ", ToString(in.opcode()), " must be specified");
  if (in.operand_count() == 1) {
    *part = result;
  } else {
    if (!result.IsTuple() || result.tuple_size() != in.operand_count()) {
      return Error("the result must be a tuple with an array for each of the ", in.operand_count(), " operands, found ",
                   Text(result));
    }
    *part = result.element(i);
  }
  if (!part->IsArray() || part->rank() != in.operand(i).rank()) {
    return Error("the result for operand ", i, " (", Text(in.operand(i)), ") must be an array of the same rank, found ",
                 Text(*part));
  }
  return absl::OkStatus();
}

absl::Status OneDimension(const InferenceContext& in, int64_t* dim) {
  const std::optional<int64_t> only = in.attrs.only(Attr::kDimensions);
  if (!only) return Error("expected one dimension in `dimensions`");
  for (int64_t i = 0; i < in.operand_count(); ++i) {
    if (*only >= 0 && *only < in.operand(i).rank()) continue;
    return Error("dimension ", *only, " in `dimensions` is out of range for operand ", i, " (", Text(in.operand(i)),
                 ")");
  }
  *dim = *only;
  return absl::OkStatus();
}

// Returns `array` with another size of dimension `dim`.
Shape Resized(const InferenceContext& in, Shape array, int64_t dim, int64_t size) {
  absl::InlinedVector<int64_t, 8> dims(array.dims().begin(), array.dims().end());
  absl::InlinedVector<uint8_t, 8> dynamic;
  for (int64_t i = 0; i < array.rank(); ++i) dynamic.push_back(array.is_dynamic(i));
  dims[dim] = size;
  dynamic[dim] = size == kUnboundedSize;
  return in.shapes().Array(array.element_type(), dims, dynamic, array.layout());
}

// Computes the result of an all-gather (`grow`) or reduce-scatter for operand `i`: dimension `dim` is multiplied or
// divided by `shards`, which operand 0 determines.
absl::Status ScaledPart(const InferenceContext& in, Shape result, int64_t i, int64_t dim, bool grow, int64_t* shards,
                        Shape* part) {
  Shape declared;
  HLOKIT_RETURN_IF_ERROR(DeclaredPart(in, result, i, &declared));
  const Shape a = in.operand(i);
  const int64_t from = a.dim(dim);
  const int64_t to = declared.dim(dim);
  if (from == kUnboundedSize || to == kUnboundedSize) {
    *part = Resized(in, a, dim, kUnboundedSize);
    return absl::OkStatus();
  }
  const int64_t small = grow ? from : to;
  const int64_t large = grow ? to : from;
  if (*shards == 0 && small > 0) *shards = CeilOfRatio(large, small);
  int64_t expected = 0;
  if (grow) {
    if (!Multiply(from, *shards, &expected)) return Error("dimension ", dim, " of the result overflows");
  } else {
    if (*shards != 0 && from % *shards != 0) {
      return Error("dimension ", dim, " of operand ", i, " (", Text(a), ") cannot be divided into ", *shards,
                   " shards, as the result ", Text(declared), " requires");
    }
    expected = *shards == 0 ? from : from / *shards;
  }
  // Usually the declared shape is the expected one, and nothing is interned.
  bool as_declared = to == expected && !in.layouts && declared.element_type() == a.element_type();
  for (int64_t d = 0; as_declared && d < a.rank(); ++d) as_declared = d == dim || SizesFit(a.dim(d), declared.dim(d));
  *part = as_declared ? declared : Resized(in, a, dim, expected);
  return absl::OkStatus();
}

absl::Status InferScaled(const InferenceContext& in, Shape result, bool grow, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperands(in, in.operand_count()));
  int64_t dim;
  HLOKIT_RETURN_IF_ERROR(OneDimension(in, &dim));
  int64_t shards = 0;
  if (in.operand_count() > 1) out->SetTuple();
  for (int64_t i = 0; i < in.operand_count(); ++i) {
    Shape part;
    HLOKIT_RETURN_IF_ERROR(ScaledPart(in, result, i, dim, grow, &shards, &part));
    if (in.operand_count() > 1) {
      out->AddElement(part);
    } else {
      out->Set(part);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InferAllGather(const InferenceContext& in, InferredShape* out) {
  return InferScaled(in, in.declared(), /*grow=*/true, out);
}

absl::Status InferReduceScatter(const InferenceContext& in, InferredShape* out) {
  return InferScaled(in, in.declared(), /*grow=*/false, out);
}

// (operands, result of the all-gather)
absl::Status InferAllGatherStart(const InferenceContext& in, InferredShape* out) {
  const Shape declared = in.declared();
  if (!declared.valid()) return Error("the result shape of ", ToString(in.opcode()), " must be specified");
  if (!declared.IsTuple() || declared.tuple_size() != 2) {
    return Error("the result must be a pair of operands and results, found ", Text(declared));
  }
  InferredShape gathered;
  HLOKIT_RETURN_IF_ERROR(InferScaled(in, declared.element(1), /*grow=*/true, &gathered));
  out->SetTuple();
  out->AddElement(OperandsShape(in));
  out->AddElement(gathered.Make(in.shapes()));
  return absl::OkStatus();
}

absl::Status InferAllReduce(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperands(in, in.operand_count()));
  SetOperands(in, in.operand_count(), out);
  return absl::OkStatus();
}

absl::Status InferAllToAll(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectAnyOperand(in));
  if (in.attrs.has(Attr::kDimensions)) {
    // Split and concatenated along the same dimension.
    HLOKIT_RETURN_IF_ERROR(ExpectOperandCount(in, 1));
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
    int64_t dim;
    HLOKIT_RETURN_IF_ERROR(OneDimension(in, &dim));
    for (int64_t i = 0; i < in.operand(0).rank(); ++i) {
      if (!in.operand(0).is_dynamic(i) || in.operand(0).is_unbounded(i)) continue;
      return Error("operand 0 (", Text(in.operand(0)), ") must not have bounded dynamic dimensions");
    }
    out->Set(in.operand(0));
    return absl::OkStatus();
  }
  out->SetTuple(in.operands());
  for (int64_t i = 0; i < in.operand_count(); ++i) {
    if (in.operand(i).has_unbounded_dims()) {
      return Error("operand ", i, " (", Text(in.operand(i)), ") must not have unbounded dimensions");
    }
    if (!ShapesMatch(in.operand(0), in.operand(i), TypeMatch::kExact)) {
      return Error("operands must have the same shape, but operand 0 is ", Text(in.operand(0)), " and operand ", i,
                   " is ", Text(in.operand(i)));
    }
  }
  return absl::OkStatus();
}

absl::Status InferCollectiveBroadcast(const InferenceContext& in, InferredShape* out) {
  if (!in.attrs.bool_attr(Attr::kHasDynamicRoot)) {
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperands(in, in.operand_count()));
    SetOperands(in, in.operand_count(), out);
    return absl::OkStatus();
  }
  // The last operand holds the root of the broadcast of each other operand.
  const int64_t count = in.operand_count() - 1;
  if (count < 1) return Error("expected arrays followed by their roots, found ", in.operand_count(), " operands");
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperands(in, in.operand_count()));
  const Shape roots = in.operand(count);
  if (roots.element_type() != ElementType::kS32 || roots.rank() != 1 || !SizesFit(roots.dim(0), count)) {
    return Error("operand ", count, " (the roots) must be s32[", count, "], found ", Text(roots));
  }
  SetOperands(in, count, out);
  return absl::OkStatus();
}

absl::Status InferCollectiveReduce(const InferenceContext& in, InferredShape* out) {
  return InferCollectiveBroadcast(in, out);
}

absl::Status InferCollectivePermute(const InferenceContext& in, InferredShape* out) {
  if (in.attrs.has(Attr::kPermuteSliceSizes)) {
    // In place: input, output, and offsets into both.
    HLOKIT_RETURN_IF_ERROR(ExpectOperandCount(in, 4));
    out->Set(in.operand(1));
    return absl::OkStatus();
  }
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperands(in, in.operand_count()));
  SetOperands(in, in.operand_count(), out);
  return absl::OkStatus();
}

// (operands, results, backend-specific elements)
absl::Status InferCollectivePermuteStart(const InferenceContext& in, InferredShape* out) {
  out->SetTuple();
  if (in.attrs.has(Attr::kPermuteSliceSizes)) {
    HLOKIT_RETURN_IF_ERROR(ExpectOperandCount(in, 4));
    out->AddElement(in.operand(0));
    out->AddElement(in.operand(1));
  } else {
    HLOKIT_RETURN_IF_ERROR(ExpectAnyOperand(in));
    if (in.operand_count() == 1) HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
    const Shape shape = OperandsShape(in);
    out->AddElement(shape);
    out->AddElement(shape);
  }
  const Shape declared = in.declared();
  if (!declared.valid() || !declared.IsTuple()) return absl::OkStatus();
  for (int64_t i = 2; i < declared.tuple_size(); ++i) out->AddElement(declared.element(i));
  return absl::OkStatus();
}

// ragged-all-to-all(input, output, input offsets, send sizes, output offsets, receive sizes)
absl::Status InferRaggedAllToAll(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 1));
  for (int64_t i = 2; i < 6; ++i) {
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, i));
    const Shape shape = in.operand(i);
    if (shape.rank() != 1 && shape.rank() != 2) {
      return Error("operand ", i, " must have one or two dimensions, found ", Text(shape));
    }
    if (!ShapesMatch(shape, in.operand(2), TypeMatch::kExact)) {
      return Error("operands 2 to 5 must have the same shape, but operand 2 is ", Text(in.operand(2)), " and operand ",
                   i, " is ", Text(shape));
    }
  }
  out->Set(in.operand(1));
  return absl::OkStatus();
}

absl::Status InferDone(const InferenceContext& in, InferredShape* out) {
  const Shape started = in.operand(0);
  // An all-reduce-start has the shape of its result already.
  if (in.opcode() == Opcode::kAllReduceDone) {
    out->Set(started);
    return absl::OkStatus();
  }
  if (!started.IsTuple() || started.tuple_size() < 2) {
    return Error("expected operand 0 to be a tuple of operands and results, found ", Text(started));
  }
  out->Set(started.element(1));
  return absl::OkStatus();
}

}  // namespace hlokit::inference
