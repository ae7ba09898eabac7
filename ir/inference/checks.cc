// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/inference/rules.h"

namespace hlokit {
namespace {

// Range of a float type: exponent of the first power of two that overflows, and bits of the significand with the
// leading one, by which types are ordered.
struct FloatRange {
  int overflow_exponent = -1;
  int significand = -1;
};

FloatRange RangeOf(ElementType type) {
  switch (type) {
    case ElementType::kF4E2M1FN:
      return {3, 2};
    case ElementType::kF8E3M4:
      return {4, 5};
    case ElementType::kF8E4M3:
      return {8, 4};
    case ElementType::kF8E4M3FN:
      return {9, 4};
    case ElementType::kF8E4M3B11FNUZ:
      return {5, 4};
    case ElementType::kF8E4M3FNUZ:
      return {8, 4};
    case ElementType::kF8E5M2:
      return {16, 3};
    case ElementType::kF8E5M2FNUZ:
      return {16, 3};
    case ElementType::kF8E8M0FNU:
      return {128, 1};
    case ElementType::kBF16:
      return {128, 8};
    case ElementType::kF16:
      return {16, 11};
    case ElementType::kF32:
      return {128, 24};
    case ElementType::kF64:
      return {1024, 53};
    case ElementType::kPred:
    case ElementType::kS1:
    case ElementType::kS2:
    case ElementType::kS4:
    case ElementType::kS8:
    case ElementType::kS16:
    case ElementType::kS32:
    case ElementType::kS64:
    case ElementType::kU1:
    case ElementType::kU2:
    case ElementType::kU4:
    case ElementType::kU8:
    case ElementType::kU16:
    case ElementType::kU32:
    case ElementType::kU64:
    case ElementType::kC64:
    case ElementType::kC128:
    case ElementType::kToken:
    case ElementType::kOpaque:
    case ElementType::kTuple:
    case ElementType::kBuffer:
      break;
  }
  return {};
}

auto PrecisionOf(ElementType type) {
  const ElementType component = ComponentType(type);
  const FloatRange range = RangeOf(component);
  return std::make_tuple(IsComplex(type), range.overflow_exponent, range.significand, BitsOf(component),
                         IsSigned(component));
}

}  // namespace

ElementType HigherPrecision(ElementType a, ElementType b) {
  if (a == b) return a;
  return PrecisionOf(b) > PrecisionOf(a) ? b : a;
}

namespace inference {
namespace {

// Compares one level: everything but the elements of tuples and buffers.
bool NodesMatch(Shape a, Shape b, TypeMatch match) {
  const ShapeRecord& p = *a.record();
  const ShapeRecord& q = *b.record();
  if (p.size != q.size) return false;
  if (!a.IsArray() || !b.IsArray()) return p.element_type == q.element_type;
  if (!TypesMatch(p.element_type, q.element_type, match)) return false;
  for (uint32_t i = 0; i < p.size; ++i) {
    if (!SizesFit(p.dims[i], q.dims[i])) return false;
  }
  return true;
}

}  // namespace

bool TypesMatch(ElementType a, ElementType b, TypeMatch match) {
  return a == b || match == TypeMatch::kIgnored || (match == TypeMatch::kIgnoreFpPrecision && IsFloat(a) && IsFloat(b));
}

bool ShapesMatch(Shape a, Shape b, TypeMatch match) {
  if (Compatible(a, b)) return true;
  if (!NodesMatch(a, b, match)) return false;
  if (a.IsArray()) return true;
  // Tuples may share elements, so each pair of shapes is visited once.
  std::vector<std::pair<Shape, Shape>> stack = {{a, b}};
  absl::flat_hash_set<std::pair<const ShapeRecord*, const ShapeRecord*>> seen;
  while (!stack.empty()) {
    const auto [x, y] = stack.back();
    stack.pop_back();
    for (int64_t i = 0; i < x.tuple_size(); ++i) {
      const Shape p = x.element(i);
      const Shape q = y.element(i);
      if (Compatible(p, q)) continue;
      if (!NodesMatch(p, q, match)) return false;
      if (p.tuple_size() > 0 && seen.insert({p.record(), q.record()}).second) stack.push_back({p, q});
    }
  }
  return true;
}

bool SameDims(Shape a, Shape b) {
  if (!a.IsArray() || !b.IsArray() || a.rank() != b.rank()) return false;
  for (int64_t i = 0; i < a.rank(); ++i) {
    if (!SizesFit(a.dim(i), b.dim(i))) return false;
  }
  return true;
}

// ---- InferredShape ----

bool InferredShape::MatchesArray(Shape declared, ElementType type, TypeMatch match) const {
  if (!declared.IsArray() || declared.rank() != static_cast<int64_t>(dims_.size())) return false;
  if (!TypesMatch(type, declared.element_type(), match)) return false;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (!SizesFit(dims_[i], declared.dim(static_cast<int64_t>(i)))) return false;
  }
  return true;
}

bool InferredShape::MatchesTuple(Shape declared, TypeMatch match) const {
  if (!declared.IsTuple() || declared.tuple_size() != static_cast<int64_t>(given_.size() + elements_.size()))
    return false;
  int64_t i = 0;
  for (Shape shape : given_) {
    if (!ShapesMatch(shape, declared.element(i++), match)) return false;
  }
  for (const Element& e : elements_) {
    const Shape part = declared.element(i++);
    if (e.shape.valid() ? !ShapesMatch(e.shape, part, match) : !MatchesArray(part, e.type, match)) return false;
  }
  return true;
}

bool InferredShape::Matches(Shape declared, TypeMatch match) const {
  if (tuple_) return MatchesTuple(declared, match);
  if (!shape_.valid()) return MatchesArray(declared, type_, match);
  if (!retyped_) return ShapesMatch(shape_, declared, match);
  return declared.IsArray() && TypesMatch(type_, declared.element_type(), match) &&
         (declared.record()->dims == shape_.record()->dims || SameDims(shape_, declared));
}

Shape InferredShape::MakeArray(ShapeTable& shapes, ElementType type) const {
  // Unbounded dimensions are marked dynamic in every shape, so that each shape has one record.
  absl::InlinedVector<uint8_t, 8> dynamic = dynamic_;
  for (size_t i = 0; i < dims_.size(); ++i) dynamic[i] |= dims_[i] == kUnboundedSize;
  return layout_ == nullptr ? shapes.Array(type, dims_, dynamic) : shapes.Array(type, dims_, dynamic, layout_);
}

Shape InferredShape::Make(ShapeTable& shapes) const {
  if (tuple_) {
    std::vector<Shape> elements(given_.begin(), given_.end());
    elements.reserve(given_.size() + elements_.size());
    for (const Element& e : elements_) elements.push_back(e.shape.valid() ? e.shape : MakeArray(shapes, e.type));
    return shapes.Tuple(elements);
  }
  if (!shape_.valid()) return MakeArray(shapes, type_);
  if (!retyped_) return shape_;
  const LayoutRecord* layout = shape_.layout();
  if (layout != nullptr && layout->extras != nullptr && layout->extras->element_size_in_bits != 0 &&
      BitsOf(type_) >= 8) {
    // The packing of a narrow type does not apply to a wider one.
    LayoutExtras extras = *layout->extras;
    extras.element_size_in_bits = 0;
    layout = shapes.Layout(layout->minor_to_major, extras);
    return shapes.WithLayout(shapes.WithElementType(shape_, type_), layout);
  }
  return shapes.WithElementType(shape_, type_);
}

// ---- windows ----

bool DilatedSize(int64_t size, int64_t dilation, int64_t* dilated) {
  if (size == 0) {
    *dilated = 0;
    return true;
  }
  return Multiply(size - 1, dilation, dilated) && Add(*dilated, 1, dilated);
}

absl::Status AddWindowedDims(absl::Span<const int64_t> base, absl::Span<const uint8_t> dynamic,
                             const WindowView& window, InferredShape* out) {
  if (!window.ok() || window.rank() != static_cast<int64_t>(base.size())) {
    return Error("the window has ", window.rank(), " dimensions, but its base has ", base.size());
  }
  for (int64_t i = 0; i < window.rank(); ++i) {
    const WindowDim w = window[i];
    if (w.size <= 0) return Error("the size of the window in dimension ", i, " is ", w.size, ", not positive");
    if (w.stride <= 0) return Error("the stride of the window in dimension ", i, " is ", w.stride, ", not positive");
    if (w.base_dilation < 1) return Error("lhs_dilate in dimension ", i, " is ", w.base_dilation, ", not positive");
    if (w.window_dilation < 1) return Error("rhs_dilate in dimension ", i, " is ", w.window_dilation, ", not positive");
    const bool is_dynamic = !dynamic.empty() && dynamic[i] != 0;
    if (base[i] == kUnboundedSize) {
      out->AddDim(kUnboundedSize, true);
      continue;
    }
    int64_t padded, extent;
    if (!DilatedSize(base[i], w.base_dilation, &padded) || !Add(padded, w.padding_low, &padded) ||
        !Add(padded, w.padding_high, &padded) || !DilatedSize(w.size, w.window_dilation, &extent)) {
      return Error("the window in dimension ", i, " overflows");
    }
    if (padded < 0) return Error("negative size of dimension ", i, " after padding of the window: ", padded);
    out->AddDim(padded == 0 || extent > padded ? 0 : (padded - extent) / w.stride + 1, is_dynamic);
  }
  return absl::OkStatus();
}

// ---- messages ----

std::string Text(Shape shape) {
  if (!shape.valid()) return "no shape";
  // Truncates tuples: with shared elements they can have millions of leaves.
  constexpr int64_t kMaxLeavesInText = 100;
  if (shape.leaf_count() > kMaxLeavesInText) return StrCat("a tuple of ", shape.tuple_size(), " elements");
  return ToString(shape, /*with_layout=*/false);
}

std::string Text(absl::Span<const int64_t> list) {
  std::string text = "{";
  for (size_t i = 0; i < list.size(); ++i) StrAppend(&text, i == 0 ? "" : ",", list[i]);
  return text + "}";
}

std::string DimensionSizeToString(int64_t size) { return size == kUnboundedSize ? "?" : StrCat(size); }

absl::Status ExpectArray(Shape shape, std::string_view what) {
  if (shape.IsArray()) return absl::OkStatus();
  return Error("expected ", what, " to be an array, found ", Text(shape));
}

absl::Status ExpectArrayOperand(const InferenceContext& in, int64_t operand) {
  if (in.operand(operand).IsArray()) return absl::OkStatus();
  return Error("expected operand ", operand, " to be an array, found ", Text(in.operand(operand)));
}

absl::Status ExpectTokenOperand(const InferenceContext& in, int64_t operand) {
  if (in.operand(operand).IsToken()) return absl::OkStatus();
  return Error("expected operand ", operand, " to be a token, found ", Text(in.operand(operand)));
}

absl::Status ExpectOperandCount(const InferenceContext& in, int64_t count) {
  if (in.operand_count() == count) return absl::OkStatus();
  return Error("expected ", Counted(count, "operand"), ", found ", in.operand_count());
}

absl::Status ExpectAnyOperand(const InferenceContext& in) {
  if (in.operand_count() > 0) return absl::OkStatus();
  return Error("expected at least 1 operand, found none");
}

absl::Status ExpectSameElementTypeIgnoringFpPrecision(const InferenceContext& in, int64_t a, int64_t b) {
  const ElementType p = in.operand(a).element_type();
  const ElementType q = in.operand(b).element_type();
  if (TypesMatch(p, q, TypeMatch::kIgnoreFpPrecision)) return absl::OkStatus();
  return Error("operand ", a, " has elements of ", ToString(p), ", but operand ", b, " has elements of ", ToString(q));
}

// ---- sets of dimensions ----

absl::Status DimSet::Take(absl::Span<const int64_t> dims, std::string_view what) {
  for (int64_t d : dims) {
    if (!InRange(d)) {
      return Error("dimension ", d, " in ", what, " is out of range: expected less than ", rank_);
    }
    if (!Insert(d)) return Error("duplicate dimension ", d, " in ", what);
  }
  return absl::OkStatus();
}

bool IsIncreasing(absl::Span<const int64_t> list) {
  return std::adjacent_find(list.begin(), list.end(), [](int64_t a, int64_t b) { return a >= b; }) == list.end();
}

// ---- called computations ----

absl::Status Signature::Read(const InferenceContext& in, Attr attr, std::string_view what, Signature* out) {
  const Computation computation = in.attrs.live_computation(attr);
  if (!computation.valid()) return Error("missing attribute `", ToString(attr), "`: expected ", what);
  return Read(computation, what, out);
}

absl::Status Signature::Read(Computation computation, std::string_view what, Signature* out) {
  const ComputationRecord& record = computation.record();
  if (!record.root.valid()) return Error(what, " ", computation.name(), " has no root");
  for (size_t i = 0; i < record.parameters.size(); ++i) {
    if (!record.parameters[i].valid()) return Error(what, " ", computation.name(), " has no parameter ", i);
  }
  out->computation_ = computation;
  return absl::OkStatus();
}

bool IsScalarOf(Shape shape, ElementType type, TypeMatch match) {
  return shape.IsScalar() && TypesMatch(shape.element_type(), type, match);
}

absl::Status CheckReducer(const Signature& reducer, absl::Span<const Shape> inputs, absl::Span<const Shape> inits,
                          bool init_elements) {
  const auto n = static_cast<int64_t>(inputs.size());
  if (reducer.parameter_count() != 2 * n) {
    return Error("expected ", 2 * n, " parameters of the reducer for ", Counted(n, "array"), ", found ",
                 reducer.parameter_count());
  }
  const Shape result = reducer.result();
  if (result.IsArray() ? n != 1 : !result.IsTuple() || result.tuple_size() != n) {
    return Error("expected the reducer to return ",
                 n == 1 ? std::string("a scalar") : StrCat("a tuple of ", n, " scalars"), ", found ", Text(result));
  }
  for (int64_t i = 0; i < n; ++i) {
    const Shape accumulator = result.IsTuple() ? result.element(i) : result;
    if (!accumulator.IsScalar()) return Error("expected the reducer to return scalars, found ", Text(result));
    if (!ShapesMatch(accumulator, reducer.parameter(i), TypeMatch::kExact)) {
      return Error("parameter ", i, " of the reducer is ", Text(reducer.parameter(i)), ", but its result is ",
                   Text(accumulator));
    }
    if (init_elements ? !TypesMatch(accumulator.element_type(), inits[i].element_type(), TypeMatch::kIgnoreFpPrecision)
                      : !ShapesMatch(accumulator, inits[i], TypeMatch::kIgnoreFpPrecision)) {
      return Error("the result of the reducer is ", Text(accumulator),
                   ", which is incompatible with the initial value: ",
                   init_elements ? StrCat("elements of ", ToString(inits[i].element_type())) : Text(inits[i]));
    }
    const Shape element = reducer.parameter(n + i);
    if (!IsScalarOf(element, inputs[i].element_type(), TypeMatch::kIgnoreFpPrecision)) {
      return Error("parameter ", n + i, " of the reducer is ", Text(element),
                   ", but the reduced array has elements of ", ToString(inputs[i].element_type()));
    }
    if (!TypesMatch(element.element_type(), accumulator.element_type(), TypeMatch::kIgnoreFpPrecision)) {
      return Error("parameter ", n + i, " of the reducer is ", Text(element), ", but its result is ",
                   Text(accumulator));
    }
  }
  return absl::OkStatus();
}

}  // namespace inference
}  // namespace hlokit
