// SPDX-License-Identifier: Apache-2.0
// HLO as values: expressions of XlaOp emit instructions like PyTorch/XLA's lowerings. The XlaEmitter keeps the first
// error; operations on a failed value fail silently.
//
//   XlaOp y = x * Number(x, 0.5) * (Erf(x * Number(x, 0.7071067811865476)) + Number(x, 1.0));
#ifndef HLOKIT_TRACER_LOWERING_XLA_OP_H_
#define HLOKIT_TRACER_LOWERING_XLA_OP_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/builder/builder.h"
#include "tracer/graph/graph_fwd.h"
#include "tracer/graph/scalar.h"

namespace hlokit::lazy {

using Dims = absl::Span<const int64_t>;
using DimVector = std::vector<int64_t>;

class XlaOp {
 public:
  XlaOp() = default;
  XlaOp(XlaEmitter* emitter, InstructionId id) : emitter_(emitter), id_(id) {}

  bool ok() const { return id_.valid(); }
  InstructionId id() const { return id_; }
  XlaEmitter& emitter() const { return *emitter_; }
  // Returns the shape; f32[] for a failed value.
  Shape shape() const;
  ElementType type() const { return shape().element_type(); }
  int64_t rank() const { return shape().rank(); }
  int64_t size(int64_t dim) const;  // 1 if there is no such dimension
  DimVector dims() const;
  int64_t elements() const { return shape().element_count(); }
  bool is_float() const { return IsFloat(type()); }

 private:
  XlaEmitter* emitter_ = nullptr;
  InstructionId id_;
};

class XlaEmitter {
 public:
  XlaEmitter(Module* module, ComputationId computation) : builder_(module, computation) {}

  Builder& builder() { return builder_; }
  Module& module() { return builder_.module(); }
  const absl::Status& status() const { return status_; }
  XlaOp Fail(absl::Status status);
  XlaOp Fail(std::string_view message) {
    return Fail(absl::InvalidArgumentError(absl::string_view(message.data(), message.size())));
  }
  XlaOp Take(const Builder::Result& result) { return result.ok() ? XlaOp(this, *result) : Fail(result.status()); }
  // Returns the computation (x, y) -> opcode(x, y) of scalars: "AddComputation", ...
  ComputationId Reducer(Opcode opcode, ElementType type);
  // Returns the computation (x, y) -> x compared with y, for sort and select-and-scatter; NaN counts as the largest
  // value. `extra`: types of further pairs of parameters, which are ignored.
  ComputationId Comparator(ComparisonDirection direction, ElementType type, absl::Span<const ElementType> extra = {});
  Shape ArrayShape(ElementType type, Dims dims) { return builder_.shapes().Array(type, dims); }
  Shape ScalarShape(ElementType type) { return builder_.shapes().Scalar(type); }

 private:
  Builder builder_;
  absl::Status status_;
  struct Known {
    int key;
    ElementType type;
    std::vector<ElementType> extra;
    ComputationId id;
  };
  std::vector<Known> reducers_;
  std::vector<Known> comparators_;
};

// ---- constants ----
XlaOp Constant(XlaEmitter& e, ElementType type, Scalar value);
XlaOp Number(XlaOp like, Scalar value);                                // a scalar of the same type
XlaOp Full(XlaEmitter& e, ElementType type, Dims dims, Scalar value);  // constant and broadcast
XlaOp FullLike(XlaOp like, Scalar value);
XlaOp IotaOf(XlaEmitter& e, ElementType type, Dims dims, int64_t dim);

// ---- elementwise; operands are broadcast as in torch and must have one type ----
XlaOp Unary(Opcode opcode, XlaOp x);
XlaOp Binary(Opcode opcode, XlaOp a, XlaOp b);
XlaOp Compare(ComparisonDirection direction, XlaOp a, XlaOp b);
XlaOp Select(XlaOp pred, XlaOp a, XlaOp b);
XlaOp Cast(XlaOp x, ElementType type);  // returns x if it has the type; to pred: not equal 0
inline XlaOp operator+(XlaOp a, XlaOp b) { return Binary(Opcode::kAdd, a, b); }
inline XlaOp operator-(XlaOp a, XlaOp b) { return Binary(Opcode::kSubtract, a, b); }
inline XlaOp operator*(XlaOp a, XlaOp b) { return Binary(Opcode::kMultiply, a, b); }
inline XlaOp operator/(XlaOp a, XlaOp b) { return Binary(Opcode::kDivide, a, b); }
inline XlaOp operator-(XlaOp a) { return Unary(Opcode::kNegate, a); }
inline XlaOp operator+(XlaOp a, double b) { return a + Number(a, b); }
inline XlaOp operator-(XlaOp a, double b) { return a - Number(a, b); }
inline XlaOp operator*(XlaOp a, double b) { return a * Number(a, b); }
inline XlaOp operator/(XlaOp a, double b) { return a / Number(a, b); }
inline XlaOp operator+(double a, XlaOp b) { return Number(b, a) + b; }
inline XlaOp operator-(double a, XlaOp b) { return Number(b, a) - b; }
inline XlaOp operator*(double a, XlaOp b) { return Number(b, a) * b; }
inline XlaOp operator/(double a, XlaOp b) { return Number(b, a) / b; }
inline XlaOp operator&(XlaOp a, XlaOp b) { return Binary(Opcode::kAnd, a, b); }
inline XlaOp operator|(XlaOp a, XlaOp b) { return Binary(Opcode::kOr, a, b); }
inline XlaOp operator!(XlaOp a) { return Unary(Opcode::kNot, a); }
inline XlaOp Exp(XlaOp x) { return Unary(Opcode::kExp, x); }
inline XlaOp Log(XlaOp x) { return Unary(Opcode::kLog, x); }
inline XlaOp Sqrt(XlaOp x) { return Unary(Opcode::kSqrt, x); }
inline XlaOp Rsqrt(XlaOp x) { return Unary(Opcode::kRsqrt, x); }
inline XlaOp Erf(XlaOp x) { return Unary(Opcode::kErf, x); }
inline XlaOp Tanh(XlaOp x) { return Unary(Opcode::kTanh, x); }
inline XlaOp Abs(XlaOp x) { return Unary(Opcode::kAbs, x); }
inline XlaOp Max(XlaOp a, XlaOp b) { return Binary(Opcode::kMaximum, a, b); }
inline XlaOp Min(XlaOp a, XlaOp b) { return Binary(Opcode::kMinimum, a, b); }
inline XlaOp Eq(XlaOp a, XlaOp b) { return Compare(ComparisonDirection::kEq, a, b); }
inline XlaOp Ne(XlaOp a, XlaOp b) { return Compare(ComparisonDirection::kNe, a, b); }
inline XlaOp Lt(XlaOp a, XlaOp b) { return Compare(ComparisonDirection::kLt, a, b); }
inline XlaOp Le(XlaOp a, XlaOp b) { return Compare(ComparisonDirection::kLe, a, b); }
inline XlaOp Gt(XlaOp a, XlaOp b) { return Compare(ComparisonDirection::kGt, a, b); }
inline XlaOp Ge(XlaOp a, XlaOp b) { return Compare(ComparisonDirection::kGe, a, b); }

// ---- data movement ---- Broadcasts as in HLO: dimension i of x becomes out_dims[i].
XlaOp BroadcastInDim(XlaOp x, Dims sizes, Dims out_dims);
// Broadcasts as torch's expand: aligned at the right, dimensions of size 1 repeated.
XlaOp BroadcastTo(XlaOp x, Dims sizes);
// Returns the dimensions of both after broadcasting; nullopt if they are incompatible.
std::optional<DimVector> BroadcastDims(Dims a, Dims b);
XlaOp Reshape(XlaOp x, Dims sizes);          // returns x if it has the sizes
XlaOp Transpose(XlaOp x, Dims permutation);  // returns x for the identity
XlaOp Slice(XlaOp x, Dims starts, Dims limits, Dims strides = {});
XlaOp SliceDim(XlaOp x, int64_t dim, int64_t start, int64_t limit, int64_t stride = 1);
XlaOp Concatenate(absl::Span<const XlaOp> parts, int64_t dim);
XlaOp Pad(XlaOp x, XlaOp value, Dims low, Dims high, Dims interior = {});
XlaOp Reverse(XlaOp x, Dims dims);

// ---- reductions, contractions, indexing ---- Returns the identity element of the opcode.
Scalar IdentityElement(Opcode opcode, ElementType type);
XlaOp Reduce(Opcode opcode, XlaOp x, Dims dims, bool keepdim = false);
// Broadcasts the result of Reduce over `dims` without keepdim to the dimensions of `like`.
XlaOp BroadcastReduced(XlaOp reduced, XlaOp like, Dims dims);
struct Window {
  DimVector size, stride, low, high, base_dilation, window_dilation;
};
AttrValue WindowAttr(Builder& b, const Window& w);
XlaOp ReduceWindow(Opcode opcode, XlaOp x, XlaOp init, const Window& window);
XlaOp Dot(XlaOp a, XlaOp b, const Builder::DotNumbers& numbers);
// Returns an element of a tuple.
XlaOp Element(XlaOp tuple, int64_t index);
std::vector<XlaOp> Sort(absl::Span<const XlaOp> arrays, int64_t dim, ComparisonDirection direction);
struct GatherNumbers {
  DimVector offset_dims, collapsed_slice_dims, start_index_map, slice_sizes;
  int64_t index_vector_dim = 0;
};
XlaOp Gather(XlaOp x, XlaOp indices, const GatherNumbers& numbers);
// Returns the dimension numbers that gather whole slices along `dim` by indices of shape [count, 1].
GatherNumbers GatherAlongDim(XlaOp x, int64_t dim);
struct ScatterNumbers {
  DimVector update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
};
// Combines with `opcode`; nullopt replaces.
XlaOp Scatter(XlaOp x, XlaOp indices, XlaOp updates, const ScatterNumbers& numbers, std::optional<Opcode> opcode);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_LOWERING_XLA_OP_H_
