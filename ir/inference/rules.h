// SPDX-License-Identifier: Apache-2.0
// Definitions shared by the shape rules. Private to shape inference.
//
// A rule reads an InferenceContext and describes the result in an InferredShape, interning as little as possible:
// CheckShape compares the description with the declared shape, InferShape creates a shape from it.
#ifndef HLOKIT_IR_INFERENCE_RULES_H_
#define HLOKIT_IR_INFERENCE_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/inference/shape_inference.h"

#define HLOKIT_RETURN_IF_ERROR(expression)                                  \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

namespace hlokit::inference {

struct InferenceContext {
  const InferenceRequest& request;
  AttrReader attrs;
  bool layouts;  // whether layouts of the result matter

  const Module& module() const { return *request.module; }
  ShapeTable& shapes() const { return request.module->context().shapes; }
  Opcode opcode() const { return request.opcode; }
  absl::Span<const Shape> operands() const { return request.operands; }
  int64_t operand_count() const { return static_cast<int64_t>(request.operands.size()); }
  Shape operand(int64_t i) const { return request.operands[i]; }
  Shape declared() const { return request.declared; }
};

// How comparisons treat element types.
enum class TypeMatch : uint8_t { kExact, kIgnoreFpPrecision, kIgnored };

// The description of a result: a shape, a shape with another element type, an array with dimensions, or a tuple of
// shapes and of arrays that share dimensions.
class InferredShape {
 public:
  void Set(Shape shape) { shape_ = shape; }
  // Sets the result to `shape`, an array, with another element type.
  void SetRetyped(Shape shape, ElementType type) {
    shape_ = shape;
    type_ = type;
    retyped_ = shape.element_type() != type;
  }
  // Starts an array, whose dimensions AddDim adds.
  void SetArray(ElementType type) { type_ = type; }
  // Starts a tuple, whose elements AddElement adds.
  void SetTuple() { tuple_ = true; }
  // Sets the result to a tuple of `elements`, which are not owned and must outlive the description: they are operands.
  void SetTuple(absl::Span<const Shape> elements) {
    tuple_ = true;
    given_ = elements;
  }

  void AddDim(int64_t size, bool dynamic = false) {
    dims_.push_back(size);
    dynamic_.push_back(dynamic || size == kUnboundedSize);
  }
  void AddDimOf(Shape array, int64_t dim) { AddDim(array.dim(dim), array.is_dynamic(dim)); }
  void AddDimsOf(Shape array) {
    for (int64_t i = 0; i < array.rank(); ++i) AddDimOf(array, i);
  }
  absl::Span<int64_t> dims() { return absl::MakeSpan(dims_); }
  absl::Span<uint8_t> dynamic() { return absl::MakeSpan(dynamic_); }
  // Sets the layout of the array that SetArray started; otherwise it is the default one.
  void SetLayout(const LayoutRecord* layout) { layout_ = layout; }

  void AddElement(Shape shape) { elements_.push_back({shape, ElementType::kPred}); }
  // Adds an array element with the dimensions of AddDim.
  void AddArrayElement(ElementType type) { elements_.push_back({Shape(), type}); }

  bool Matches(Shape declared, TypeMatch match) const;
  Shape Make(ShapeTable& shapes) const;

 private:
  struct Element {
    Shape shape;  // invalid: the array
    ElementType type;
  };

  bool MatchesTuple(Shape declared, TypeMatch match) const;
  bool MatchesArray(Shape declared, ElementType type, TypeMatch match) const;
  Shape MakeArray(ShapeTable& shapes, ElementType type) const;

  Shape shape_;
  ElementType type_ = ElementType::kPred;
  bool retyped_ = false;
  bool tuple_ = false;
  const LayoutRecord* layout_ = nullptr;
  absl::Span<const Shape> given_;
  absl::InlinedVector<int64_t, 6> dims_;
  absl::InlinedVector<uint8_t, 8> dynamic_;
  absl::InlinedVector<Element, 4> elements_;
};

using InferenceRule = absl::Status (*)(const InferenceContext& in, InferredShape* out);

// ---- comparisons ----

// Returns true for equal element types and for two float types: CheckShape decides whether precisions may be mixed.
inline bool SameElementTypeIgnoringFpPrecision(Shape a, Shape b) {
  return a.element_type() == b.element_type() || (IsFloat(a.element_type()) && IsFloat(b.element_type()));
}

bool TypesMatch(ElementType a, ElementType b, TypeMatch match);
// Compares shapes, ignoring layouts and dynamism; unbounded dimensions match any size.
bool ShapesMatch(Shape a, Shape b, TypeMatch match);
// Returns true if both arrays have the same dimensions, ignoring dynamism.
bool SameDims(Shape a, Shape b);
inline bool SizesFit(int64_t a, int64_t b) { return a == b || a == kUnboundedSize || b == kUnboundedSize; }

// ---- checked arithmetic: returns false on overflow ----

inline bool Add(int64_t a, int64_t b, int64_t* sum) { return !__builtin_add_overflow(a, b, sum); }
inline bool Subtract(int64_t a, int64_t b, int64_t* difference) { return !__builtin_sub_overflow(a, b, difference); }
inline bool Multiply(int64_t a, int64_t b, int64_t* product) { return !__builtin_mul_overflow(a, b, product); }
inline int64_t CeilOfRatio(int64_t a, int64_t b) { return a / b + (a % b > 0); }  // of non-negative a, positive b

// Computes the extent of `size` positions at distance `dilation`.
bool DilatedSize(int64_t size, int64_t dilation, int64_t* dilated);
// Adds to `out` a dimension for each of `base`: the number of positions of the window in that dimension.
absl::Status AddWindowedDims(absl::Span<const int64_t> base, absl::Span<const uint8_t> dynamic,
                             const WindowView& window, InferredShape* out);

// ---- messages ----

template <typename... Pieces>
absl::Status Error(const Pieces&... pieces) {
  return absl::InvalidArgumentError(StrCat(pieces...));
}
std::string Text(Shape shape);                     // without layout
std::string Text(absl::Span<const int64_t> list);  // {1,2}
std::string DimensionSizeToString(int64_t size);   // of a dimension

// Returns OK if `shape` is an array; else an error about `what`, e.g. "operand 0".
absl::Status ExpectArray(Shape shape, std::string_view what);
absl::Status ExpectArrayOperand(const InferenceContext& in, int64_t operand);
absl::Status ExpectTokenOperand(const InferenceContext& in, int64_t operand);
absl::Status ExpectOperandCount(const InferenceContext& in, int64_t count);
absl::Status ExpectAnyOperand(const InferenceContext& in);
// Returns an error unless operands `a` and `b` have the same element type or both have float types.
absl::Status ExpectSameElementTypeIgnoringFpPrecision(const InferenceContext& in, int64_t a, int64_t b);

// ---- sets of dimensions ----

// A set of dimensions of an array.
class DimSet {
 public:
  explicit DimSet(int64_t rank) : rank_(rank) {
    if (rank > 64) large_.resize(static_cast<size_t>(rank), 0);
  }
  bool InRange(int64_t d) const { return d >= 0 && d < rank_; }
  // Requires: `d` is in range.
  bool Has(int64_t d) const { return rank_ > 64 ? large_[d] != 0 : (small_ >> d & 1) != 0; }
  // Returns false if `d` was in the set already.
  bool Insert(int64_t d) {
    if (Has(d)) return false;
    if (rank_ > 64) {
      large_[d] = 1;
    } else {
      small_ |= uint64_t{1} << d;
    }
    return true;
  }
  // Inserts all of `dims`, described by `what`. Returns an error if one is out of range or repeated.
  absl::Status Take(absl::Span<const int64_t> dims, std::string_view what);

 private:
  int64_t rank_;
  uint64_t small_ = 0;
  std::vector<uint8_t> large_;
};

// Returns true if `list` is strictly increasing.
bool IsIncreasing(absl::Span<const int64_t> list);

// ---- called computations ----

// The parameters and result of a computation. All parameters exist.
class Signature {
 public:
  // Reads the computation that `attr` names. `what` describes it in messages, e.g. "the reducer".
  static absl::Status Read(const InferenceContext& in, Attr attr, std::string_view what, Signature* out);
  static absl::Status Read(Computation computation, std::string_view what, Signature* out);

  int64_t parameter_count() const { return computation_.parameter_count(); }
  Shape parameter(int64_t i) const { return computation_.parameter(i).shape(); }
  Shape result() const { return computation_.root().shape(); }

 private:
  Computation computation_;
};

bool IsScalarOf(Shape shape, ElementType type, TypeMatch match = TypeMatch::kExact);

// Checks that the computation combines accumulators like `inits` with elements of `inputs` (2n parameters, n results).
// `init_elements`: only the element types of `inits` count.
absl::Status CheckReducer(const Signature& reducer, absl::Span<const Shape> inputs, absl::Span<const Shape> inits,
                          bool init_elements = false);

// ---- rules ----

#define SHAPE_RULE(name, exact_types, mixed_operands, description) \
  absl::Status Infer##name(const InferenceContext& in, InferredShape* out);
#include "ir/ops/shape_rule_columns.inc"

}  // namespace hlokit::inference

#endif  // HLOKIT_IR_INFERENCE_RULES_H_
