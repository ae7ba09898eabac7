// SPDX-License-Identifier: Apache-2.0
// HLO as values: expressions over Hlo emit instructions as PyTorch/XLA's lowerings do. The first error stays in the
// Emitter; what depends on a failed value fails silently.
//
//   Hlo y = x * Number(x, 0.5) * (Erf(x * Number(x, kRsqrt2)) + 1.0);
#ifndef HLOKIT_TRACER_LOWERING_HLO_H_
#define HLOKIT_TRACER_LOWERING_HLO_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/builder/builder.h"
#include "tracer/graph/scalar.h"

namespace hlokit::lazy {

using Dims = absl::Span<const int64_t>;
using DimVector = std::vector<int64_t>;

class Emitter;

class Hlo {
 public:
  Hlo() = default;
  Hlo(Emitter* emitter, InstructionId id) : emitter_(emitter), id_(id) {}

  bool ok() const { return id_.valid(); }
  InstructionId id() const { return id_; }
  Emitter& emitter() const { return *emitter_; }
  // Of a failed value: f32[].
  Shape shape() const;
  ElementType type() const { return shape().element_type(); }
  int64_t rank() const { return shape().rank(); }
  int64_t size(int64_t dim) const;  // 1 where there is no such dimension
  DimVector dims() const;
  int64_t elements() const { return shape().element_count(); }
  bool is_float() const { return IsFloat(type()); }

 private:
  Emitter* emitter_ = nullptr;
  InstructionId id_;
};

class Emitter {
 public:
  Emitter(Module* module, ComputationId computation) : builder_(module, computation) {}

  Builder& builder() { return builder_; }
  Module& module() { return builder_.module(); }
  const absl::Status& status() const { return status_; }
  Hlo Fail(absl::Status status);
  Hlo Fail(std::string_view message) { return Fail(absl::InvalidArgumentError(message.data())); }
  Hlo Take(const Builder::Result& result) { return result.ok() ? Hlo(this, *result) : Fail(result.status()); }
  // The computation (x, y) -> opcode(x, y) of scalars: "AddComputation", ...
  ComputationId Reducer(Opcode opcode, ElementType type);
  // (x, y) -> x compared with y, for sort and select-and-scatter; NaN counts as larger than all. `extra` more pairs of
  // parameters are ignored.
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
Hlo Constant(Emitter& e, ElementType type, Scalar value);
Hlo Number(Hlo like, Scalar value);                               // a scalar of the same type
Hlo Full(Emitter& e, ElementType type, Dims dims, Scalar value);  // constant and broadcast
Hlo FullLike(Hlo like, Scalar value);
Hlo IotaOf(Emitter& e, ElementType type, Dims dims, int64_t dim);

// ---- elementwise; operands are broadcast to each other as torch does and must be of one type ----
Hlo Unary(Opcode opcode, Hlo x);
Hlo Binary(Opcode opcode, Hlo a, Hlo b);
Hlo Compare(ComparisonDirection direction, Hlo a, Hlo b);
Hlo Select(Hlo pred, Hlo a, Hlo b);
Hlo Cast(Hlo x, ElementType type);  // nothing to do when it has the type; to pred: not equal 0
inline Hlo operator+(Hlo a, Hlo b) { return Binary(Opcode::kAdd, a, b); }
inline Hlo operator-(Hlo a, Hlo b) { return Binary(Opcode::kSubtract, a, b); }
inline Hlo operator*(Hlo a, Hlo b) { return Binary(Opcode::kMultiply, a, b); }
inline Hlo operator/(Hlo a, Hlo b) { return Binary(Opcode::kDivide, a, b); }
inline Hlo operator-(Hlo a) { return Unary(Opcode::kNegate, a); }
inline Hlo operator+(Hlo a, double b) { return a + Number(a, b); }
inline Hlo operator-(Hlo a, double b) { return a - Number(a, b); }
inline Hlo operator*(Hlo a, double b) { return a * Number(a, b); }
inline Hlo operator/(Hlo a, double b) { return a / Number(a, b); }
inline Hlo operator+(double a, Hlo b) { return Number(b, a) + b; }
inline Hlo operator-(double a, Hlo b) { return Number(b, a) - b; }
inline Hlo operator*(double a, Hlo b) { return Number(b, a) * b; }
inline Hlo operator/(double a, Hlo b) { return Number(b, a) / b; }
inline Hlo operator&(Hlo a, Hlo b) { return Binary(Opcode::kAnd, a, b); }
inline Hlo operator|(Hlo a, Hlo b) { return Binary(Opcode::kOr, a, b); }
inline Hlo operator!(Hlo a) { return Unary(Opcode::kNot, a); }
inline Hlo Exp(Hlo x) { return Unary(Opcode::kExp, x); }
inline Hlo Log(Hlo x) { return Unary(Opcode::kLog, x); }
inline Hlo Sqrt(Hlo x) { return Unary(Opcode::kSqrt, x); }
inline Hlo Rsqrt(Hlo x) { return Unary(Opcode::kRsqrt, x); }
inline Hlo Erf(Hlo x) { return Unary(Opcode::kErf, x); }
inline Hlo Tanh(Hlo x) { return Unary(Opcode::kTanh, x); }
inline Hlo Abs(Hlo x) { return Unary(Opcode::kAbs, x); }
inline Hlo Max(Hlo a, Hlo b) { return Binary(Opcode::kMaximum, a, b); }
inline Hlo Min(Hlo a, Hlo b) { return Binary(Opcode::kMinimum, a, b); }
inline Hlo Eq(Hlo a, Hlo b) { return Compare(ComparisonDirection::kEq, a, b); }
inline Hlo Ne(Hlo a, Hlo b) { return Compare(ComparisonDirection::kNe, a, b); }
inline Hlo Lt(Hlo a, Hlo b) { return Compare(ComparisonDirection::kLt, a, b); }
inline Hlo Le(Hlo a, Hlo b) { return Compare(ComparisonDirection::kLe, a, b); }
inline Hlo Gt(Hlo a, Hlo b) { return Compare(ComparisonDirection::kGt, a, b); }
inline Hlo Ge(Hlo a, Hlo b) { return Compare(ComparisonDirection::kGe, a, b); }

// ---- moving data ----
// As HLO's broadcast: dimension i of x becomes out_dims[i].
Hlo BroadcastInDim(Hlo x, Dims sizes, Dims out_dims);
// As torch's expand: aligned at the right, dimensions of size 1 repeated.
Hlo BroadcastTo(Hlo x, Dims sizes);
// The dimensions of both after broadcasting; an error if they do not fit.
std::optional<DimVector> BroadcastDims(Dims a, Dims b);
Hlo Reshape(Hlo x, Dims sizes);          // nothing to do when it has them
Hlo Transpose(Hlo x, Dims permutation);  // nothing to do for the identity
Hlo Slice(Hlo x, Dims starts, Dims limits, Dims strides = {});
Hlo SliceDim(Hlo x, int64_t dim, int64_t start, int64_t limit, int64_t stride = 1);
Hlo Concatenate(absl::Span<const Hlo> parts, int64_t dim);
Hlo Pad(Hlo x, Hlo value, Dims low, Dims high, Dims interior = {});
Hlo Reverse(Hlo x, Dims dims);

// ---- combining ----
// The value that opcode leaves alone.
Scalar NeutralOf(Opcode opcode, ElementType type);
Hlo Reduce(Opcode opcode, Hlo x, Dims dims, bool keepdim = false);
// Broadcasts what Reduce over `dims` without keepdim gave back to the dimensions of `like`.
Hlo Unreduce(Hlo reduced, Hlo like, Dims dims);
struct Window {
  DimVector size, stride, low, high, base_dilation, window_dilation;
};
AttrValue WindowAttr(Builder& b, const Window& w);
Hlo ReduceWindow(Opcode opcode, Hlo x, Hlo init, const Window& window);
Hlo Dot(Hlo a, Hlo b, const Builder::DotNumbers& numbers);
// Parts of a tuple.
Hlo Element(Hlo tuple, int64_t index);
std::vector<Hlo> Sort(absl::Span<const Hlo> arrays, int64_t dim, ComparisonDirection direction);
struct GatherNumbers {
  DimVector offset_dims, collapsed_slice_dims, start_index_map, slice_sizes;
  int64_t index_vector_dim = 0;
};
Hlo Gather(Hlo x, Hlo indices, const GatherNumbers& numbers);
// Of whole slices along `dim`, by indices of shape [count, 1]; their dimension stands at `dim`.
GatherNumbers SlicesAlong(Hlo x, int64_t dim);
struct ScatterNumbers {
  DimVector update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
};
// `opcode` combines; nullopt replaces.
Hlo Scatter(Hlo x, Hlo indices, Hlo updates, const ScatterNumbers& numbers, std::optional<Opcode> opcode);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_LOWERING_HLO_H_
