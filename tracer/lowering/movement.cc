// SPDX-License-Identifier: Apache-2.0
// Ops that move elements: shapes, slices, concatenation, padding, triangles, diagonals, constants.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

int64_t ClampIndex(int64_t i, int64_t size) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); }

bool CheckDim(LoweringContext& n, int64_t dim, int64_t rank) {
  if (dim >= 0 && dim < rank) return true;
  n.emitter().Fail("the dimension is out of range");
  return false;
}

}  // namespace

void View(LoweringContext& n) { n.Return(Reshape(n.in(0), n.ints(1))); }
void Expand(LoweringContext& n) { n.Return(BroadcastTo(n.in(0), n.ints(1))); }
void Permute(LoweringContext& n) { n.Return(Transpose(n.in(0), n.ints(1))); }

// operands -> the same, of which no pass sees that they are
void OptimizationBarrier(LoweringContext& n) {
  XlaEmitter& e = n.emitter();
  std::vector<InstructionId> ids;
  for (const XlaOp& operand : n.list(0)) {
    if (!operand.ok()) return;
    ids.push_back(operand.id());
  }
  const XlaOp all = e.Take(e.builder().Add(Opcode::kTuple, ids, {}));
  if (!all.ok()) return;
  const XlaOp barrier = e.Take(e.builder().Add(Opcode::kOptimizationBarrier, {all.id()}, {}));
  for (size_t i = 0; i < ids.size(); ++i) n.Return(Element(barrier, static_cast<int64_t>(i)));
}

void GenericSlice(LoweringContext& n) {
  const Dims starts = n.ints(1), sizes = n.ints(2);
  DimVector limits;
  for (size_t i = 0; i < std::min(starts.size(), sizes.size()); ++i) {
    limits.push_back(SaturatingAdd(starts[i], sizes[i]));
  }
  n.Return(Slice(n.in(0), starts, limits));
}
void SelectNode(LoweringContext& n) {
  n.Return(SliceDim(n.in(0), n.int_arg(1), n.int_arg(2), n.int_arg(3), n.int_arg(4)));
}

void Cat(LoweringContext& n) {
  const std::vector<XlaOp> parts = n.list(0);
  ResultTypeState p;
  for (const XlaOp& part : parts) p.Add(part.shape());
  std::vector<XlaOp> same;
  for (const XlaOp& part : parts) same.push_back(lazy::Cast(part, p.result()));
  n.Return(same.size() == 1 ? same[0] : Concatenate(same, n.int_arg(1)));
}
void Stack(LoweringContext& n) {
  const std::vector<XlaOp> parts = n.list(0);
  if (parts.empty()) {
    n.emitter().Fail("stack expects a non-empty list of tensors");
    return;
  }
  const int64_t rank = parts[0].rank() + 1;
  const int64_t dim = WrapDim(n.int_arg(1), rank);
  if (!CheckDim(n, dim, rank)) return;
  ResultTypeState p;
  for (const XlaOp& part : parts) p.Add(part.shape());
  std::vector<XlaOp> raised;
  for (const XlaOp& part : parts) {
    DimVector dims = part.dims();
    if (dims != parts[0].dims()) {
      n.emitter().Fail(StrCat("stack expects each tensor to be equal size, but got ", ToString(parts[0].shape(), false),
                              " at entry 0 and ", ToString(part.shape(), false)));
      return;
    }
    dims.insert(dims.begin() + dim, 1);
    raised.push_back(Reshape(lazy::Cast(part, p.result()), dims));
  }
  n.Return(raised.size() == 1 ? raised[0] : Concatenate(raised, dim));
}
void Flip(LoweringContext& n) {
  const XlaOp x = n.in(0);
  DimVector dims;
  for (int64_t d : n.ints(1)) dims.push_back(WrapDim(d, x.rank()));
  n.Return(x.rank() == 0 ? x : Reverse(x, dims));
}
void Roll(LoweringContext& n) {
  XlaOp x = n.in(0);
  const Dims shifts = n.ints(1), dims = n.ints(2);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = WrapDim(dims[i], x.rank());
    const int64_t size = x.size(dim);
    if (size == 0) continue;
    const int64_t cut = (size - shifts[i] % size) % size;
    if (cut == 0) continue;
    x = Concatenate({SliceDim(x, dim, cut, size), SliceDim(x, dim, 0, cut)}, dim);
  }
  n.Return(x);
}
void Repeat(LoweringContext& n) {
  // [a, b] repeated [r, s] times: broadcast to [r, a, s, b], reshape to [r a, s b].
  XlaOp x = n.in(0);
  const Dims repeats = n.ints(1);
  if (static_cast<int64_t>(repeats.size()) < x.rank()) {
    n.emitter().Fail("repeat requires at least as many numbers as the tensor has dimensions");
    return;
  }
  DimVector dims(repeats.size() - x.rank(), 1);
  const DimVector own = x.dims();
  dims.insert(dims.end(), own.begin(), own.end());
  x = Reshape(x, dims);
  DimVector wide, places, result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (repeats[i] < 0 || SaturatingMultiply(repeats[i], dims[i]) == std::numeric_limits<int64_t>::max()) {
      n.emitter().Fail(
          StrCat("Trying to create tensor with negative or too large dimension: ", repeats[i], " times ", dims[i]));
      return;
    }
    wide.insert(wide.end(), {repeats[i], dims[i]});
    places.push_back(static_cast<int64_t>(2 * i + 1));
    result.push_back(repeats[i] * dims[i]);
  }
  n.Return(Reshape(BroadcastInDim(x, wide, places), result));
}
void TrilTriu(LoweringContext& n) {
  const XlaOp x = n.in(0);
  if (x.rank() < 2) {
    n.emitter().Fail("the tensor must have at least 2 dimensions");
    return;
  }
  XlaEmitter& e = n.emitter();
  const XlaOp rows = IotaOf(e, ElementType::kS64, x.dims(), x.rank() - 2);
  const XlaOp columns = IotaOf(e, ElementType::kS64, x.dims(), x.rank() - 1);
  const XlaOp edge = rows + Number(rows, n.int_arg(1));
  n.Return(Select(n.op() == Op::tril ? Le(columns, edge) : Ge(columns, edge), x, Number(x, 0)));
}

void ConstantPad(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const Dims pad = n.ints(1);  // low, high of the last dimension, then of the one before
  const size_t rank = static_cast<size_t>(x.rank());
  if (pad.size() % 2 != 0 || pad.size() / 2 > rank) {
    n.emitter().Fail("the padding is incompatible with the rank of the tensor");
    return;
  }
  DimVector low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    low[rank - 1 - i] = pad[2 * i];
    high[rank - 1 - i] = pad[2 * i + 1];
  }
  n.Return(Pad(x, Number(x, n.scalar(2)), low, high));
}

// ---- updates of slices ----

namespace {

// Returns true if argument 1 has the sizes of the slice that it replaces.
bool SrcFits(LoweringContext& n, Dims part) {
  if (n.in(1).shape().dims() == part) return true;
  n.emitter().Fail("expected src to have a size equal to the slice of self");
  return false;
}

}  // namespace

void SliceScatter(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const XlaOp src = lazy::Cast(n.in(1), x.type());
  const int64_t dim = WrapDim(n.int_arg(2), x.rank());
  if (!CheckDim(n, dim, x.rank())) return;
  const int64_t size = x.size(dim);
  const int64_t start = n.has(3) ? ClampIndex(n.int_arg(3), size) : 0;
  const int64_t end = std::max(start, n.has(4) ? ClampIndex(n.int_arg(4), size) : size);
  const int64_t step = n.int_arg(5);
  if (step < 1) {
    n.emitter().Fail("slice step must be positive");
    return;
  }
  const int64_t count = (end - start + step - 1) / step;
  DimVector part = x.dims();
  part[dim] = count;
  if (!SrcFits(n, part)) return;
  if (count == 0) return n.Return(x);
  DimVector low(static_cast<size_t>(x.rank()), 0), high = low, interior = low;
  low[dim] = start;
  interior[dim] = step - 1;
  high[dim] = size - start - ((count - 1) * step + 1);
  const XlaOp mask = Pad(Full(n.emitter(), ElementType::kPred, part, true),
                         Constant(n.emitter(), ElementType::kPred, false), low, high, interior);
  n.Return(Select(mask, Pad(src, Number(x, 0), low, high, interior), x));
}
void SelectScatter(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const int64_t dim = WrapDim(n.int_arg(2), x.rank());
  if (!CheckDim(n, dim, x.rank())) return;
  const int64_t index = n.int_arg(3) < 0 ? n.int_arg(3) + x.size(dim) : n.int_arg(3);
  if (index < 0 || index >= x.size(dim)) {
    n.emitter().Fail(absl::InvalidArgumentError(
        StrCat("index ", n.int_arg(3), " is out of range for size ", x.size(dim), " of dimension ", dim)));
    return;
  }
  DimVector part = x.dims();
  part[dim] = 1;
  std::vector<InstructionId> starts;
  for (int64_t d = 0; d < x.rank(); ++d) {
    starts.push_back(Constant(n.emitter(), ElementType::kS32, d == dim ? index : 0).id());
  }
  DimVector without = x.dims();
  without.erase(without.begin() + dim);
  if (!SrcFits(n, without)) return;
  const XlaOp src = Reshape(lazy::Cast(n.in(1), x.type()), part);
  if (!x.ok() || !src.ok()) return n.Return(src);
  n.Return(n.emitter().Take(n.emitter().builder().DynamicUpdateSlice(x.id(), src.id(), starts)));
}

// ---- diagonals ----

namespace {

constexpr int64_t kMaxOffset = int64_t{1} << 62;

struct DiagonalPlan {
  int64_t dim1, dim2, row, column, length;
};

DiagonalPlan PlanDiagonal(LoweringContext& n, XlaOp x, size_t first_arg) {
  // Beyond the sizes all are alike: empty.
  const int64_t offset = std::clamp(n.int_arg(first_arg), -kMaxOffset, kMaxOffset);
  DiagonalPlan plan{WrapDim(n.int_arg(first_arg + 1), x.rank()), WrapDim(n.int_arg(first_arg + 2), x.rank()),
                    std::max<int64_t>(0, -offset), std::max<int64_t>(0, offset), 0};
  if (plan.dim1 == plan.dim2) n.emitter().Fail("the two dimensions of a diagonal cannot be the same");
  plan.length = std::max<int64_t>(0, std::min(x.size(plan.dim1) - plan.row, x.size(plan.dim2) - plan.column));
  return plan;
}

// Returns the mask of elements on the diagonal: column - row == offset.
XlaOp OnDiagonal(XlaEmitter& e, Dims dims, const DiagonalPlan& plan) {
  const XlaOp rows = IotaOf(e, ElementType::kS64, dims, plan.dim1);
  const XlaOp columns = IotaOf(e, ElementType::kS64, dims, plan.dim2);
  return Eq(columns, rows + Number(rows, plan.column - plan.row));
}

}  // namespace

void Diagonal(LoweringContext& n) {
  XlaOp x = n.in(0);
  const DiagonalPlan plan = PlanDiagonal(n, x, 1);
  if (plan.dim1 == plan.dim2) return;
  // Permutes dimensions to ..., dim1, dim2 and gathers the diagonal by index pairs.
  DimVector permutation, kept;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != plan.dim1 && d != plan.dim2) {
      permutation.push_back(d);
      kept.push_back(x.size(d));
    }
  }
  permutation.push_back(plan.dim1);
  permutation.push_back(plan.dim2);
  x = Transpose(x, permutation);
  const XlaOp steps = IotaOf(n.emitter(), ElementType::kS64, {plan.length, 1}, 0);
  const XlaOp places = Concatenate({steps + Number(steps, plan.row), steps + Number(steps, plan.column)}, 1);
  GatherNumbers g;
  g.slice_sizes = kept;
  g.slice_sizes.insert(g.slice_sizes.end(), {1, 1});
  for (size_t d = 0; d < kept.size(); ++d) g.offset_dims.push_back(static_cast<int64_t>(d));
  const int64_t r = x.rank();
  g.collapsed_slice_dims = {r - 2, r - 1};
  g.start_index_map = {r - 2, r - 1};
  g.index_vector_dim = 1;
  n.Return(Gather(x, places, g));
}
void DiagonalScatter(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const DiagonalPlan plan = PlanDiagonal(n, x, 2);
  if (plan.dim1 == plan.dim2) return;
  XlaEmitter& e = n.emitter();
  DimVector part = x.dims();
  part.erase(part.begin() + std::max(plan.dim1, plan.dim2));
  part.erase(part.begin() + std::min(plan.dim1, plan.dim2));
  part.push_back(plan.length);
  if (!SrcFits(n, part)) return;
  // The source, padded to the length of dim2 (the column determines the position) and repeated along dim1.
  XlaOp src = lazy::Cast(n.in(1), x.type());
  DimVector low(static_cast<size_t>(src.rank()), 0), high = low;
  low.back() = plan.column;
  high.back() = x.size(plan.dim2) - plan.column - plan.length;
  src = Pad(src, Number(x, 0), low, high);
  DimVector places;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != plan.dim1 && d != plan.dim2) places.push_back(d);
  }
  places.push_back(plan.dim2);
  // Broadcast requires ascending dimensions: move dim2 into position.
  DimVector order(places.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return places[a] < places[b]; });
  src = Transpose(src, order);
  std::sort(places.begin(), places.end());
  n.Return(Select(OnDiagonal(e, x.dims(), plan), BroadcastInDim(src, x.dims(), places), x));
}
// ---- creation ----

void Iota(LoweringContext& n) {
  const ElementType type = n.dtype(3, ElementType::kS64);
  const int64_t size = n.int_arg(0);
  const Scalar start = n.scalar(1), step = n.scalar(2);
  // Floats step in f64, as in torch, and are rounded once; so do the integers of a linspace.
  const ElementType wide = IsFloat(type) || step.is_float() ? ElementType::kF64 : ElementType::kS64;
  const XlaOp iota = IotaOf(n.emitter(), ElementType::kS64, {size}, 0);
  const XlaOp x = lazy::Cast(iota, wide);
  n.Return(lazy::Cast(x * Number(x, step) + Number(x, start), type));
}
void Eye(LoweringContext& n) {
  if (n.int_arg(0) < 0 || n.int_arg(1) < 0) {
    n.emitter().Fail("n and m must be greater or equal to 0");
    return;
  }
  const DimVector dims = {n.int_arg(0), n.int_arg(1)};
  XlaEmitter& e = n.emitter();
  n.Return(lazy::Cast(Eq(IotaOf(e, ElementType::kS64, dims, 0), IotaOf(e, ElementType::kS64, dims, 1)),
                      n.dtype(2, ElementType::kF32)));
}
void TensorConstant(LoweringContext& n) {
  const ElementType type = n.dtype(2, ElementType::kF32);
  const Shape shape = n.emitter().ArrayShape(type, n.ints(0));
  const std::vector<double> values = n.floats(1);
  const Dims sizes = n.ints(0);
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; }) ||
      static_cast<int64_t>(values.size()) != shape.element_count()) {
    n.emitter().Fail("the number of values is not that of the sizes");
    return;
  }
  Literal literal = Literal::Zeros(shape);
  const size_t width = static_cast<size_t>(BytesOf(type));
  for (size_t i = 0; i < values.size(); ++i) StoreScalar(type, values[i], literal.data() + i * width);
  n.Return(n.emitter().Take(n.emitter().builder().Constant(literal)));
}

}  // namespace hlokit::lazy::lower
