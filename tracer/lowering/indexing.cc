// SPDX-License-Identifier: Apache-2.0
// Ops that select elements by index: gathers, scatters, sorting.
#include <algorithm>
#include <numeric>
#include <optional>

#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

// Converts indices from the end to indices from the start.
XlaOp Wrapped(XlaOp index, int64_t size) {
  index = lazy::Cast(index, ElementType::kS64);
  return Select(Lt(index, Number(index, 0)), index + Number(index, size), index);
}

DimVector WithOne(Dims dims) {
  DimVector out(dims.begin(), dims.end());
  out.push_back(1);
  return out;
}

int64_t DimArg(LoweringContext& n, size_t i, XlaOp x) {
  const int64_t dim = WrapDim(n.int_arg(i), x.rank());
  if (dim < 0 || dim >= std::max<int64_t>(x.rank(), 1)) n.emitter().Fail("the dimension is out of range");
  return dim;
}

ScatterNumbers AsScatter(const GatherNumbers& g) {
  return {g.offset_dims, g.collapsed_slice_dims, g.start_index_map, g.index_vector_dim};
}

XlaOp Column(XlaOp index) { return Reshape(index, WithOne(index.dims())); }

// Returns, for gather(x, dim, index), the full coordinates of each element, [index dims..., rank].
XlaOp Coordinates(LoweringContext& n, XlaOp x, XlaOp index, int64_t dim) {
  std::vector<XlaOp> parts;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const XlaOp part = d == dim ? Wrapped(index, x.size(d)) : IotaOf(n.emitter(), ElementType::kS64, index.dims(), d);
    parts.push_back(Column(part));
  }
  return parts.size() == 1 ? parts[0] : Concatenate(parts, index.rank());
}

// Returns a tensor of rank 0 as one of rank 1.
XlaOp AtLeast1d(XlaOp x) { return x.rank() == 0 ? Reshape(x, {1}) : x; }

// Scatters elements: x with src at index along dim, combined by `opcode`.
XlaOp ScatterElements(LoweringContext& n, XlaOp x, int64_t dim, XlaOp index, XlaOp src, std::optional<Opcode> opcode) {
  const DimVector original = x.dims();
  x = AtLeast1d(x);
  index = AtLeast1d(index);
  src = AtLeast1d(src);
  if (index.elements() == 0) return Reshape(x, original);
  ScatterNumbers s;
  s.inserted_window_dims = AllDims(x);
  s.scatter_dims_to_operand_dims = AllDims(x);
  s.index_vector_dim = index.rank();
  // The source may be larger than the index.
  DimVector zeros(static_cast<size_t>(src.rank()), 0);
  if (src.shape().dims() != index.shape().dims()) src = Slice(src, zeros, index.dims());
  return Reshape(Scatter(x, Coordinates(n, x, index, dim), lazy::Cast(src, x.type()), s, opcode), original);
}

}  // namespace

void IndexSelect(LoweringContext& n) {
  const XlaOp x = AtLeast1d(n.in(0));
  const int64_t dim = DimArg(n, 1, x);
  const XlaOp index = AtLeast1d(n.in(2));
  const XlaOp taken = Gather(x, Column(Wrapped(index, x.size(dim))), GatherAlongDim(x, dim));
  n.Return(n.in(0).rank() == 0 ? Reshape(taken, {}) : taken);
}

namespace {

void IndexWrite(LoweringContext& n, std::optional<Opcode> opcode) {
  const XlaOp x = AtLeast1d(n.in(0));
  const int64_t dim = DimArg(n, 1, x);
  const XlaOp index = AtLeast1d(n.in(2));
  XlaOp src = lazy::Cast(AtLeast1d(n.in(3)), x.type());
  if (opcode && n.has(4) && !n.scalar(4).Is(1)) src = src * Number(src, n.scalar(4));
  const XlaOp written = Scatter(x, Column(Wrapped(index, x.size(dim))), src, AsScatter(GatherAlongDim(x, dim)), opcode);
  n.Return(Reshape(written, n.in(0).dims()));
}

}  // namespace

void IndexAdd(LoweringContext& n) { IndexWrite(n, Opcode::kAdd); }
void IndexCopy(LoweringContext& n) { IndexWrite(n, std::nullopt); }

void GatherOp(LoweringContext& n) {
  const XlaOp x = AtLeast1d(n.in(0));
  const int64_t dim = DimArg(n, 1, x);
  const XlaOp index = AtLeast1d(n.in(2));
  GatherNumbers g;
  g.collapsed_slice_dims = AllDims(x);
  g.start_index_map = AllDims(x);
  g.slice_sizes = DimVector(static_cast<size_t>(x.rank()), 1);
  g.index_vector_dim = index.rank();
  n.Return(Reshape(Gather(x, Coordinates(n, x, index, dim), g), n.in(2).dims()));
}

void ScatterSrc(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(ScatterElements(n, x, DimArg(n, 1, x), n.in(2), n.in(3), std::nullopt));
}
void ScatterAdd(LoweringContext& n) {
  const XlaOp x = n.in(0);
  n.Return(ScatterElements(n, x, DimArg(n, 1, x), n.in(2), n.in(3), Opcode::kAdd));
}
void ScatterReduce(LoweringContext& n) {
  const XlaOp x = n.in(0), index = n.in(2);
  const std::string reduce = n.str(4);
  if (reduce != "add" && reduce != "multiply") {
    n.emitter().Fail("reduce is \"add\" or \"multiply\"");
    return;
  }
  const XlaOp src = lazy::Cast(n.in(3), x.type());
  n.Return(ScatterElements(n, x, DimArg(n, 1, x), index, src, reduce == "add" ? Opcode::kAdd : Opcode::kMultiply));
}
void ScatterReduceTwo(LoweringContext& n) {
  const XlaOp input = n.in(0), index = n.in(2);
  const std::string reduce = n.str(4);
  const bool include_self = n.bool_arg(5);
  const int64_t dim = DimArg(n, 1, input);
  Opcode opcode = Opcode::kAdd;
  if (reduce == "prod") {
    opcode = Opcode::kMultiply;
  } else if (reduce == "amax") {
    opcode = Opcode::kMaximum;
  } else if (reduce == "amin") {
    opcode = Opcode::kMinimum;
  } else if (reduce != "sum" && reduce != "mean") {
    n.emitter().Fail("reduce is \"sum\", \"prod\", \"mean\", \"amax\" or \"amin\"");
    return;
  }
  XlaOp x = input;
  const XlaOp ones = FullLike(index, 1);
  const XlaOp hits =
      ScatterElements(n, Full(n.emitter(), ElementType::kS64, x.dims(), 0), dim, index, ones, Opcode::kAdd);
  const XlaOp hit = Gt(hits, Number(hits, 0));
  // Without the tensor itself, indexed elements start from the identity.
  if (!include_self) x = Select(hit, Number(x, IdentityElement(opcode, x.type())), x);
  XlaOp result = ScatterElements(n, x, dim, index, n.in(3), opcode);
  if (reduce == "mean") {
    const XlaOp count = Max(include_self ? hits + Number(hits, 1) : hits, Number(hits, 1));
    const XlaOp divisor = lazy::Cast(count, result.type());
    XlaOp mean = result / divisor;
    if (!result.is_float()) {
      const XlaOp r = Binary(Opcode::kRemainder, result, divisor);
      mean = mean - lazy::Cast(Lt(r, Number(r, 0)), result.type());
    }
    result = mean;
  }
  n.Return(result);
}

// ---- index.Tensor, index_put: the kernel has broadcast the indices to one shape ----

namespace {

struct IndexPlan {
  XlaOp indices;  // [index dims..., number of indexed dimensions]
  GatherNumbers numbers;
};

IndexPlan PlanIndex(LoweringContext& n, XlaOp x, const std::vector<XlaOp>& indices) {
  IndexPlan plan;
  std::vector<XlaOp> parts;
  bool adjacent = true;
  int64_t first = -1, last = -1;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].ok()) continue;
    const int64_t dim = static_cast<int64_t>(d);
    if (first < 0) first = dim;
    adjacent = adjacent && (last < 0 || dim == last + 1);
    last = dim;
    parts.push_back(Column(Wrapped(indices[d], x.size(dim))));
    plan.numbers.start_index_map.push_back(dim);
  }
  if (parts.empty()) {
    plan.indices = n.emitter().Fail("at least one index is needed");
    return plan;
  }
  const int64_t index_rank = parts[0].rank() - 1;
  plan.indices = parts.size() == 1 ? parts[0] : Concatenate(parts, index_rank);
  plan.numbers.collapsed_slice_dims = plan.numbers.start_index_map;
  plan.numbers.index_vector_dim = index_rank;
  plan.numbers.slice_sizes = x.dims();
  for (int64_t d : plan.numbers.start_index_map) plan.numbers.slice_sizes[d] = 1;
  // The index dimensions take the position of the first indexed one; the front if the indexed ones are not adjacent.
  const int64_t at = adjacent ? first : 0;
  const int64_t kept = x.rank() - static_cast<int64_t>(parts.size());
  for (int64_t d = 0; d < kept; ++d) plan.numbers.offset_dims.push_back(d < at ? d : d + index_rank);
  return plan;
}

}  // namespace

void Index(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const IndexPlan plan = PlanIndex(n, x, n.list(1));
  n.Return(Gather(x, plan.indices, plan.numbers));
}
void IndexPut(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const IndexPlan plan = PlanIndex(n, x, n.list(1));
  const XlaOp like = Gather(x, plan.indices, plan.numbers);  // has the dimensions of the values; dead otherwise
  const XlaOp values = BroadcastTo(lazy::Cast(n.in(2), x.type()), like.dims());
  n.Return(Scatter(x, plan.indices, values, AsScatter(plan.numbers),
                   n.bool_arg(3) ? std::optional(Opcode::kAdd) : std::nullopt));
}

// grad, indices, num_weights, padding_idx, scale_grad_by_freq
void EmbeddingDenseBackward(LoweringContext& n) {
  const XlaOp input = n.in(0);
  XlaEmitter& e = n.emitter();
  const int64_t count = n.in(1).elements(), width = input.size(-1), rows = n.int_arg(2), padding = n.int_arg(3);
  const XlaOp index = Wrapped(Reshape(n.in(1), {count}), rows);
  XlaOp g = Wide(Reshape(input, {count, width}));
  const XlaOp keep = Ne(index, Number(index, padding));
  g = Select(BroadcastInDim(keep, g.dims(), {0}), g, Number(g, 0));
  if (n.bool_arg(4)) {
    ScatterNumbers s;
    s.inserted_window_dims = {0};
    s.scatter_dims_to_operand_dims = {0};
    s.index_vector_dim = 1;
    const XlaOp hits =
        Scatter(Full(e, g.type(), {rows}, 0), Column(index), Full(e, g.type(), {count}, 1), s, Opcode::kAdd);
    g = g / BroadcastInDim(Gather(hits, Column(index), GatherAlongDim(hits, 0)), g.dims(), {0});
  }
  const XlaOp table = Full(e, g.type(), {rows, width}, 0);
  const XlaOp sum = Scatter(table, Column(index), g, AsScatter(GatherAlongDim(table, 0)), Opcode::kAdd);
  n.Return(lazy::Cast(sum, input.type()));
}

// ---- sorting ----

namespace {

std::pair<XlaOp, XlaOp> SortWithIndices(LoweringContext& n, XlaOp x, int64_t dim, bool descending) {
  const XlaOp places = IotaOf(n.emitter(), ElementType::kS32, x.dims(), dim);
  const std::vector<XlaOp> sorted =
      Sort({x, places}, dim, descending ? ComparisonDirection::kGt : ComparisonDirection::kLt);
  return {sorted[0], sorted[1]};
}

}  // namespace

// The kernel has normalized the arguments of all overloads to those of the default one.
void SortOp(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const bool stable_form = n.op() == Op::sort_stable;
  const int64_t dim = DimArg(n, stable_form ? 2 : 1, x);
  if (x.rank() == 0) return n.Return(x, Constant(n.emitter(), ElementType::kS64, 0));
  const auto [values, places] = SortWithIndices(n, x, dim, n.bool_arg(stable_form ? 3 : 2));
  n.Return(values, lazy::Cast(places, ElementType::kS64));
}
void TopK(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const int64_t k = n.int_arg(1), dim = DimArg(n, 2, x);
  if (x.rank() == 0) return n.Return(x, Constant(n.emitter(), ElementType::kS64, 0));
  if (k < 0 || k > x.size(dim)) {
    n.emitter().Fail("selected index k out of range");
    return;
  }
  const auto [values, places] = SortWithIndices(n, x, dim, n.bool_arg(3));
  n.Return(SliceDim(values, dim, 0, k), lazy::Cast(SliceDim(places, dim, 0, k), ElementType::kS64));
}

}  // namespace hlokit::lazy::lower
