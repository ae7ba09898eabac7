// SPDX-License-Identifier: Apache-2.0
// Shape rules of operations that combine elements along dimensions: reductions, scans, maps and sorts.
#include <optional>
#include <vector>

#include "ir/inference/rules.h"

namespace hlokit::inference {
namespace {

// Checks that the first `count` operands are arrays with the dimensions of operand 0.
absl::Status ExpectSameDims(const InferenceContext& in, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, i));
    if (i > 0 && !SameDims(in.operand(0), in.operand(i))) {
      return Error("operands 0 and ", i, " must have the same dimensions, found ", Text(in.operand(0)), " and ",
                   Text(in.operand(i)));
    }
  }
  return absl::OkStatus();
}

// Checks that the operands are arrays followed by as many init values.
absl::Status ExpectArraysAndInits(const InferenceContext& in, int64_t* arrays) {
  if (in.operand_count() == 0 || in.operand_count() % 2 != 0) {
    return Error("expected arrays and as many initial values, found ", in.operand_count(), " operands");
  }
  *arrays = in.operand_count() / 2;
  return ExpectSameDims(in, *arrays);
}

absl::Status ReadReducer(const InferenceContext& in, int64_t arrays, Signature* reducer) {
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kToApply, "the reducer", reducer));
  return CheckReducer(*reducer, in.operands().first(arrays), in.operands().subspan(arrays));
}

// Returns `shape` with a dimension inserted.
Shape WithDim(const InferenceContext& in, Shape shape, int64_t dim, int64_t size, bool dynamic) {
  absl::InlinedVector<int64_t, 8> dims;
  absl::InlinedVector<uint8_t, 8> flags;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (i == dim) {
      dims.push_back(size);
      flags.push_back(dynamic);
    }
    dims.push_back(shape.dim(i));
    flags.push_back(shape.is_dynamic(i));
  }
  if (dim == shape.rank()) {
    dims.push_back(size);
    flags.push_back(dynamic);
  }
  return in.shapes().Array(shape.element_type(), dims, flags);
}

// Returns true if `slice` is `array` without dimension `dim`, ignoring differences of float types.
bool IsSliceOf(Shape slice, Shape array, int64_t dim) {
  if (!slice.IsArray() || !TypesMatch(slice.element_type(), array.element_type(), TypeMatch::kIgnoreFpPrecision))
    return false;
  if (slice.rank() != array.rank() - 1) return false;
  for (int64_t i = 0; i < slice.rank(); ++i) {
    if (!SizesFit(slice.dim(i), array.dim(i < dim ? i : i + 1))) return false;
  }
  return true;
}

}  // namespace

absl::Status InferReduce(const InferenceContext& in, InferredShape* out) {
  int64_t arrays;
  HLOKIT_RETURN_IF_ERROR(ExpectArraysAndInits(in, &arrays));
  const Shape a = in.operand(0);
  Signature reducer;
  HLOKIT_RETURN_IF_ERROR(ReadReducer(in, arrays, &reducer));
  DimSet reduced(a.rank());
  HLOKIT_RETURN_IF_ERROR(reduced.Take(in.attrs.list_attr(Attr::kDimensions), "`dimensions`"));
  for (int64_t i = 0; i < a.rank(); ++i) {
    if (!reduced.Has(i)) out->AddDimOf(a, i);
  }
  const Shape result = reducer.result();
  if (result.IsArray()) {
    out->SetArray(result.element_type());
    return absl::OkStatus();
  }
  out->SetTuple();
  for (Shape element : result.elements()) out->AddArrayElement(element.element_type());
  return absl::OkStatus();
}

absl::Status InferReduceWindow(const InferenceContext& in, InferredShape* out) {
  int64_t arrays;
  HLOKIT_RETURN_IF_ERROR(ExpectArraysAndInits(in, &arrays));
  Signature reducer;
  HLOKIT_RETURN_IF_ERROR(ReadReducer(in, arrays, &reducer));
  const Shape a = in.operand(0);
  const absl::Span<const uint8_t> dynamic(a.record()->dynamic, a.record()->dynamic == nullptr ? 0 : a.rank());
  HLOKIT_RETURN_IF_ERROR(AddWindowedDims(a.dims(), dynamic, WindowView::Of(in.attrs), out));
  // The result has the element types of the init values, whatever the precision of the reducer.
  if (reducer.result().IsArray()) {
    out->SetArray(in.operand(arrays).element_type());
    return absl::OkStatus();
  }
  out->SetTuple();
  for (int64_t i = 0; i < arrays; ++i) out->AddArrayElement(in.operand(arrays + i).element_type());
  return absl::OkStatus();
}

absl::Status InferSelectAndScatter(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 1));
  const Shape a = in.operand(0);
  const Shape source = in.operand(1);
  Signature select;
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kSelect, "the select computation", &select));
  if (select.parameter_count() != 2) {
    return Error("expected 2 parameters of the select computation, found ", select.parameter_count());
  }
  if (!IsScalarOf(select.result(), ElementType::kPred)) {
    return Error("expected the select computation to return pred[], found ", Text(select.result()));
  }
  for (int64_t i = 0; i < 2; ++i) {
    if (IsScalarOf(select.parameter(i), a.element_type(), TypeMatch::kIgnoreFpPrecision)) continue;
    return Error("parameter ", i, " of the select computation is ", Text(select.parameter(i)),
                 ", but operand 0 has elements of ", ToString(a.element_type()));
  }
  Signature scatter;
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kScatter, "the scatter computation", &scatter));
  HLOKIT_RETURN_IF_ERROR(CheckReducer(scatter, in.operands().subspan(1, 1), in.operands().subspan(2, 1)));
  const absl::Span<const uint8_t> dynamic(a.record()->dynamic, a.record()->dynamic == nullptr ? 0 : a.rank());
  InferredShape windowed;
  windowed.SetArray(a.element_type());
  HLOKIT_RETURN_IF_ERROR(AddWindowedDims(a.dims(), dynamic, WindowView::Of(in.attrs), &windowed));
  if (!windowed.Matches(source, TypeMatch::kIgnoreFpPrecision)) {
    return Error("operand 1 (the source) is ", Text(source), ", but the window selects ",
                 Text(windowed.Make(in.shapes())), " of operand 0 (", Text(a), ")");
  }
  out->Set(a);
  return absl::OkStatus();
}

absl::Status InferMap(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectAnyOperand(in));
  // XLA accepts scalars among arrays of the same type.
  Shape a = in.operand(0);
  for (int64_t i = 0; i < in.operand_count(); ++i) {
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, i));
    const Shape b = in.operand(i);
    if (SameDims(a, b)) continue;
    const bool alike = TypesMatch(a.element_type(), b.element_type(), TypeMatch::kIgnoreFpPrecision);
    if (alike && b.IsScalar()) continue;
    if (!alike || !a.IsScalar()) {
      return Error("operands must have the same dimensions, but operand 0 is ", Text(in.operand(0)), " and operand ", i,
                   " is ", Text(b));
    }
    a = b;
  }
  if (in.attrs.has(Attr::kDimensions)) {
    const absl::Span<const int64_t> dims = in.attrs.list_attr(Attr::kDimensions);
    // A declared shape of another rank is reported as such, since parsers take the list from there.
    const auto count = static_cast<int64_t>(dims.size());
    bool identity =
        count == a.rank() || (in.declared().valid() && in.declared().IsArray() && count == in.declared().rank());
    for (size_t i = 0; i < dims.size(); ++i) identity &= dims[i] == static_cast<int64_t>(i);
    if (!identity) {
      return Error("expected all ", a.rank(), " dimensions in order in `dimensions`, found ", Text(dims));
    }
  }
  Signature mapped;
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kToApply, "the mapped computation", &mapped));
  if (mapped.parameter_count() != in.operand_count()) {
    return Error("expected a parameter of the mapped computation for each of the ", in.operand_count(),
                 " operands, found ", mapped.parameter_count());
  }
  for (int64_t i = 0; i < in.operand_count(); ++i) {
    if (IsScalarOf(mapped.parameter(i), in.operand(i).element_type(), TypeMatch::kIgnoreFpPrecision)) continue;
    return Error("parameter ", i, " of the mapped computation is ", Text(mapped.parameter(i)), ", but operand ", i,
                 " has elements of ", ToString(in.operand(i).element_type()));
  }
  if (!mapped.result().IsScalar()) {
    return Error("expected the mapped computation to return a scalar, found ", Text(mapped.result()));
  }
  out->SetArray(mapped.result().element_type());
  out->AddDimsOf(a);
  return absl::OkStatus();
}

absl::Status InferSort(const InferenceContext& in, InferredShape* out) {
  const int64_t n = in.operand_count();
  HLOKIT_RETURN_IF_ERROR(ExpectSameDims(in, n));
  const std::optional<int64_t> dim = in.attrs.only(Attr::kDimensions);
  if (!dim) return Error("expected one dimension in `dimensions`");
  if (*dim < 0 || *dim >= in.operand(0).rank()) {
    return Error("dimension ", *dim, " in `dimensions` is out of range for operand 0 (", Text(in.operand(0)), ")");
  }
  Signature compare;
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kToApply, "the comparison", &compare));
  if (!IsScalarOf(compare.result(), ElementType::kPred)) {
    return Error("expected the comparison to return pred[], found ", Text(compare.result()));
  }
  if (compare.parameter_count() != 2 * n) {
    return Error("expected ", 2 * n, " parameters of the comparison, two for each operand, found ",
                 compare.parameter_count());
  }
  for (int64_t i = 0; i < 2 * n; ++i) {
    if (IsScalarOf(compare.parameter(i), in.operand(i / 2).element_type(), TypeMatch::kIgnoreFpPrecision)) continue;
    return Error("parameter ", i, " of the comparison is ", Text(compare.parameter(i)), ", but operand ", i / 2,
                 " has elements of ", ToString(in.operand(i / 2).element_type()));
  }
  if (n == 1) {
    out->Set(in.operand(0));
    return absl::OkStatus();
  }
  out->SetTuple(in.operands());
  return absl::OkStatus();
}

absl::Status InferTopK(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  if (a.rank() == 0) return Error("operand 0 must have at least one dimension, found ", Text(a));
  const int64_t k = in.attrs.int_attr(Attr::kK);
  const int64_t last = a.rank() - 1;
  if (k < 0) return Error("negative k: ", k);
  if (!a.is_unbounded(last) && k > a.dim(last)) {
    return Error("k ", k, " is greater than the last dimension of operand 0 (", Text(a), ")");
  }
  for (int64_t i = 0; i < last; ++i) out->AddDimOf(a, i);
  out->AddDim(k);
  out->SetTuple();
  out->AddArrayElement(a.element_type());
  out->AddArrayElement(ElementType::kS32);
  return absl::OkStatus();
}

// Infers scan(inputs..., inits...): the computation takes a slice of each input and the carries, and returns a slice of
// each output and the new carries. The result has the outputs, with the scanned dimension, and the final carries.
absl::Status InferScan(const InferenceContext& in, InferredShape* out) {
  const int64_t carries = in.attrs.int_attr(Attr::kNumCarries);
  if (carries < 0 || carries > in.operand_count()) {
    return Error("`num_carries` is ", carries, ", but there are ", in.operand_count(), " operands");
  }
  const int64_t inputs = in.operand_count() - carries;
  if (inputs == 0) return Error("expected at least one input of the scan, but all ", carries, " operands are carries");
  const std::optional<int64_t> dim = in.attrs.only(Attr::kDimensions);
  if (!dim) return Error("expected one dimension in `dimensions`");
  Signature body;
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kToApply, "the scanned computation", &body));
  if (body.parameter_count() != in.operand_count()) {
    return Error("expected a parameter of the scanned computation for each of the ", in.operand_count(),
                 " operands, found ", body.parameter_count());
  }
  for (int64_t i = 0; i < inputs; ++i) {
    HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, i));
    const Shape a = in.operand(i);
    if (*dim < 0 || *dim >= a.rank()) {
      return Error("dimension ", *dim, " in `dimensions` is out of range for operand ", i, " (", Text(a), ")");
    }
    if (!SizesFit(a.dim(*dim), in.operand(0).dim(*dim))) {
      return Error("operands 0 and ", i, " differ in dimension ", *dim, ", which is scanned: ", Text(in.operand(0)),
                   " and ", Text(a));
    }
    if (!IsSliceOf(body.parameter(i), a, *dim)) {
      return Error("parameter ", i, " of the scanned computation is ", Text(body.parameter(i)),
                   ", which is not a slice of operand ", i, " (", Text(a), ") along dimension ", *dim);
    }
  }
  const Shape root = body.result();
  const int64_t results = root.IsTuple() ? root.tuple_size() : 1;
  const int64_t outputs = results - carries;
  if (outputs < 0) {
    return Error("expected the scanned computation to return the ", carries, " carries, found ", Text(root));
  }
  for (int64_t i = 0; i < carries; ++i) {
    const Shape init = in.operand(inputs + i);
    const Shape parameter = body.parameter(inputs + i);
    const Shape carry = root.IsTuple() ? root.element(outputs + i) : root;
    if (!ShapesMatch(init, parameter, TypeMatch::kIgnoreFpPrecision) ||
        !ShapesMatch(carry, parameter, TypeMatch::kIgnoreFpPrecision)) {
      return Error("carry ", i, " must keep its shape, but operand ", inputs + i, " is ", Text(init), ", parameter ",
                   inputs + i, " of the scanned computation is ", Text(parameter), " and its result ", Text(carry));
    }
  }
  const auto result = [&](int64_t i, Shape* shape) {
    const Shape element = root.IsTuple() ? root.element(i) : root;
    *shape = element;
    if (i >= outputs) return absl::OkStatus();
    HLOKIT_RETURN_IF_ERROR(ExpectArray(element, "each output of the scanned computation"));
    if (*dim > element.rank())
      return Error("the rank of output ", i, " of the scanned computation is too small for dimension ", *dim);
    *shape = WithDim(in, element, *dim, in.operand(0).dim(*dim), in.operand(0).is_dynamic(*dim));
    return absl::OkStatus();
  };
  // A single result need not be a tuple although the computation returns a tuple of one.
  const bool alone = results == 1 && in.declared().valid() && in.declared().IsArray();
  const bool tuple = root.IsTuple() && !alone;
  if (tuple) out->SetTuple();
  for (int64_t i = 0; i < results; ++i) {
    Shape shape;
    HLOKIT_RETURN_IF_ERROR(result(i, &shape));
    if (tuple) {
      out->AddElement(shape);
    } else {
      out->Set(shape);
    }
  }
  return absl::OkStatus();
}

}  // namespace hlokit::inference
