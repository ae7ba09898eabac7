// SPDX-License-Identifier: Apache-2.0
// Pooling in windows of equal size. The last `spatial` dimensions are pooled; batch and features precede them.
#include <algorithm>
#include <limits>

#include "ir/core/str_cat.h"
#include "tracer/graph/dim_list.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

// Bounds of arguments, so that sums and products of two do not overflow.
constexpr int64_t kMaxExtent = int64_t{1} << 30;

struct PoolPlan {
  int64_t first = 0;  // the first spatial dimension
  DimVector kernel, stride, padding, dilation, out;
  Window window;
};

// Reads kernel, stride, padding, [dilation,] ceil_mode at positions `first`...
bool ReadPool(LoweringContext& n, XlaOp x, size_t first, bool has_dilation, bool ceil, int64_t spatial, PoolPlan* p) {
  const auto read = [&](size_t i, DimVector* to, Dims absent) {
    const Dims given = n.ints(i);
    to->assign(given.begin(), given.end());
    if (to->empty()) to->assign(absent.begin(), absent.end());
    if (to->size() == 1) to->assign(spatial, int64_t{(*to)[0]});
    const bool bounded =
        std::all_of(to->begin(), to->end(), [](int64_t v) { return v >= -kMaxExtent && v <= kMaxExtent; });
    return bounded && static_cast<int64_t>(to->size()) == spatial;
  };
  const DimVector zeros(spatial, 0), ones(spatial, 1);
  p->dilation = ones;
  p->first = x.rank() - spatial;
  if (p->first < 0 || !read(first, &p->kernel, ones) || !read(first + 1, &p->stride, p->kernel) ||
      !read(first + 2, &p->padding, zeros) || (has_dilation && !read(first + 3, &p->dilation, ones))) {
    n.emitter().Fail("kernel_size, stride and padding need one number for each spatial dimension");
    return false;
  }
  const size_t rank = static_cast<size_t>(x.rank());
  p->window =
      Window{DimVector(rank, 1), DimVector(rank, 1), DimVector(rank, 0), DimVector(rank, 0), {}, DimVector(rank, 1)};
  for (int64_t i = 0; i < spatial; ++i) {
    for (const int64_t number : {p->kernel[i], p->stride[i], p->padding[i], p->dilation[i]}) {
      if (number == static_cast<int32_t>(number)) continue;
      n.emitter().Fail("kernel_size, stride, padding and dilation must fit in 32 bits");
      return false;
    }
    const int64_t in = x.size(p->first + i), k = p->dilation[i] * (p->kernel[i] - 1) + 1, s = p->stride[i];
    if (p->dilation[i] < 1) {
      n.emitter().Fail("dilation should be greater than zero");
      return false;
    }
    if (s < 1 || p->kernel[i] < 1) {
      n.emitter().Fail("kernel_size and stride must be positive");
      return false;
    }
    if (p->padding[i] < 0 || 2 * p->padding[i] > k) {
      n.emitter().Fail("padding must be at least 0 and at most half of kernel_size");
      return false;
    }
    const int64_t span = in + 2 * p->padding[i] - k;
    int64_t out = (span + (ceil ? s - 1 : 0)) / s + 1;
    // The last window starts inside of the input or of its left padding.
    if (ceil && (out - 1) * s >= in + p->padding[i]) --out;
    if (span + (ceil ? s - 1 : 0) < 0 || out < 1) {
      n.emitter().Fail("the output size is too small: a window is larger than the padded input");
      return false;
    }
    p->out.push_back(out);
    const size_t d = static_cast<size_t>(p->first + i);
    p->window.size[d] = p->kernel[i];
    p->window.stride[d] = s;
    p->window.low[d] = p->padding[i];
    p->window.high[d] = (out - 1) * s + k - in - p->padding[i];
    p->window.window_dilation[d] = p->dilation[i];
  }
  return true;
}

// Fails unless a tensor of windows has the sizes that the plan gives.
bool HasPooledSizes(LoweringContext& n, XlaOp g, XlaOp x, const PoolPlan& p) {
  DimVector dims = x.dims();
  std::copy(p.out.begin(), p.out.end(), dims.begin() + p.first);
  if (g.dims() == dims) return true;
  n.emitter().Fail(absl::InvalidArgumentError(
      StrCat("expected grad_output and indices of size ", ListToString(dims), ", but got ", ListToString(g.dims()))));
  return false;
}

int64_t SpatialOf(Op op) {
  if (op == Op::max_pool1d_with_indices) return 1;
  const bool three = op == Op::max_pool3d_with_indices || op == Op::max_pool3d_with_indices_backward ||
                     op == Op::avg_pool3d || op == Op::avg_pool3d_backward;
  return three ? 3 : 2;
}

// Returns indices in the flattened spatial dimensions.
XlaOp FlatIndices(XlaOp x, int64_t first) {
  DimVector spatial;
  int64_t count = 1;
  for (int64_t d = first; d < x.rank(); ++d) {
    spatial.push_back(x.size(d));
    count *= x.size(d);
  }
  DimVector places;
  for (int64_t d = first; d < x.rank(); ++d) places.push_back(d);
  const XlaOp flat = Reshape(IotaOf(x.emitter(), ElementType::kS64, {count}, 0), spatial);
  return BroadcastInDim(flat, x.dims(), places);
}

// Returns the computation of the better of two pairs (value, index): the larger value, NaN first, the lower index among
// equals.
ComputationId BestPair(XlaEmitter& e, ElementType type) {
  Module& module = e.module();
  const ComputationId id = module.AddComputation(module.UniqueComputationName("MaxWithIndex"));
  XlaEmitter inner(&module, id);
  Builder& b = inner.builder();
  const XlaOp x = inner.Take(b.Parameter(0, e.ScalarShape(type), "x"));
  const XlaOp xi = inner.Take(b.Parameter(1, e.ScalarShape(ElementType::kS64), "xi"));
  const XlaOp y = inner.Take(b.Parameter(2, e.ScalarShape(type), "y"));
  const XlaOp yi = inner.Take(b.Parameter(3, e.ScalarShape(ElementType::kS64), "yi"));
  XlaOp x_wins = Gt(x, y);
  XlaOp equal = Eq(x, y);
  if (IsFloat(type)) {
    x_wins = x_wins | (IsNan(x) & Eq(y, y));
    equal = equal | (IsNan(x) & IsNan(y));
  }
  x_wins = x_wins | (equal & Lt(xi, yi));
  const XlaOp value = Select(x_wins, x, y), place = Select(x_wins, xi, yi);
  const XlaOp root = inner.Take(b.Tuple({value.id(), place.id()}));
  if (!inner.status().ok()) e.Fail(inner.status());
  b.SetRoot(root.id());
  return id;
}

}  // namespace

void MaxPool(LoweringContext& n) {
  const XlaOp x = n.in(0);
  PoolPlan p;
  if (!ReadPool(n, x, 1, true, n.bool_arg(5), SpatialOf(n.op()), &p)) return;
  XlaEmitter& e = n.emitter();
  const XlaOp init = Number(x, IdentityElement(Opcode::kMaximum, x.type()));
  const XlaOp values = ReduceWindow(Opcode::kMaximum, x, init, p.window);
  const XlaOp places = FlatIndices(x, p.first);
  const XlaOp last = Constant(e, ElementType::kS64, std::numeric_limits<int64_t>::max());
  if (!x.ok() || !places.ok()) return n.Return(x, places);
  const XlaOp pairs = e.Take(
      e.builder().Add(Opcode::kReduceWindow, {x.id(), places.id(), init.id(), last.id()},
                      {WindowAttr(e.builder(), p.window), Builder::Calls(Attr::kToApply, BestPair(e, x.type()))}));
  n.Return(values, Element(pairs, 1));
}

void MaxPoolBackward(LoweringContext& n) {
  // grad, self, kernel, stride, padding, dilation, ceil, indices
  const XlaOp g = n.in(0), x = n.in(1);
  PoolPlan p;
  if (!ReadPool(n, x, 2, true, n.bool_arg(6), SpatialOf(n.op()), &p)) return;
  if (!HasPooledSizes(n, g, x, p) || !HasPooledSizes(n, n.in(7), x, p)) return;
  const bool dilated = std::any_of(p.dilation.begin(), p.dilation.end(), [](int64_t d) { return d != 1; });
  XlaEmitter& e = n.emitter();
  if (!dilated) {
    Window window = p.window;
    window.window_dilation.clear();
    const ComputationId select = e.Comparator(ComparisonDirection::kGe, x.type());
    const ComputationId scatter = e.Reducer(Opcode::kAdd, x.type());
    const XlaOp zero = Number(x, 0);
    if (!g.ok() || !x.ok()) return n.Return(g);
    return n.Return(e.Take(e.builder().Add(Opcode::kSelectAndScatter, {x.id(), g.id(), zero.id()},
                                           {WindowAttr(e.builder(), window), Builder::Calls(Attr::kSelect, select),
                                            Builder::Calls(Attr::kScatter, scatter)})));
  }
  // Dilated windows: by the indices.
  int64_t outer = 1, inner = 1, outer_g = 1, inner_g = 1;
  for (int64_t d = 0; d < x.rank(); ++d) {
    (d < p.first ? outer : inner) *= x.size(d);
    (d < p.first ? outer_g : inner_g) *= g.size(d);
  }
  const DimVector flat = {outer, inner_g};
  const XlaOp row = IotaOf(e, ElementType::kS64, flat, 0);
  const XlaOp places = Reshape(n.in(7), flat) + row * Number(row, inner);
  ScatterNumbers s;
  s.inserted_window_dims = {0};
  s.scatter_dims_to_operand_dims = {0};
  s.index_vector_dim = 1;
  const XlaOp sum = Scatter(Full(e, x.type(), {outer * inner}, 0), Reshape(places, {outer * inner_g, 1}),
                            Reshape(g, {outer_g * inner_g}), s, Opcode::kAdd);
  n.Return(Reshape(sum, x.dims()));
}

// ---- average ----

namespace {

// Returns the divisor of each window's sum, in the spatial dimensions, broadcast to `dims`.
XlaOp Divisors(LoweringContext& n, XlaOp x, const PoolPlan& p, bool include_pad, bool has_override, int64_t divisor,
               Dims dims) {
  XlaEmitter& e = n.emitter();
  if (has_override && divisor == 0) return e.Fail("divisor_override must not be zero");
  if (has_override) return Full(e, x.type(), dims, divisor);
  const size_t spatial = p.kernel.size();
  DimVector sizes, places;
  Window w;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = static_cast<size_t>(p.first) + i;
    sizes.push_back(x.size(static_cast<int64_t>(d)) + (include_pad ? 2 * p.padding[i] : 0));
    places.push_back(static_cast<int64_t>(d));
    w.size.push_back(p.kernel[i]);
    w.stride.push_back(p.stride[i]);
    w.low.push_back(include_pad ? 0 : p.window.low[d]);
    w.high.push_back(p.window.high[d] - (include_pad ? p.padding[i] : 0));
  }
  const XlaOp ones = Full(e, x.type(), sizes, 1);
  return BroadcastInDim(ReduceWindow(Opcode::kAdd, ones, Number(ones, 0), w), dims, places);
}

// Returns the gradient of a sum over windows.
XlaOp SpreadWindows(XlaOp g, const PoolPlan& p, XlaOp x) {
  const size_t rank = static_cast<size_t>(g.rank());
  DimVector low(rank, 0), high(rank, 0), interior(rank, 0);
  Window w{DimVector(rank, 1), {}, {}, {}, {}, {}};
  for (size_t i = 0; i < p.kernel.size(); ++i) {
    const size_t d = static_cast<size_t>(p.first) + i;
    const int64_t spread = (p.out[i] - 1) * p.stride[i] + 1;
    w.size[d] = p.kernel[i];
    interior[d] = p.stride[i] - 1;
    low[d] = p.kernel[i] - 1 - p.padding[i];
    high[d] = x.size(static_cast<int64_t>(d)) - spread - low[d] + p.kernel[i] - 1;
  }
  const XlaOp zero = Number(g, 0);
  return ReduceWindow(Opcode::kAdd, Pad(g, zero, low, high, interior), zero, w);
}

}  // namespace

void AvgPool(LoweringContext& n) {
  const XlaOp input = n.in(0);
  const XlaOp x = Wide(input);
  PoolPlan p;
  if (!ReadPool(n, x, 1, false, n.bool_arg(4), SpatialOf(n.op()), &p)) return;
  Window w = p.window;
  w.window_dilation.clear();
  const XlaOp sum = ReduceWindow(Opcode::kAdd, x, Number(x, 0), w);
  n.Return(lazy::Cast(sum / Divisors(n, x, p, n.bool_arg(5), n.has(6), n.has(6) ? n.int_arg(6) : 1, sum.dims()),
                      input.type()));
}
void AvgPoolBackward(LoweringContext& n) {
  const XlaOp g = Wide(n.in(0)), x = Wide(n.in(1));
  PoolPlan p;
  if (!ReadPool(n, x, 2, false, n.bool_arg(5), SpatialOf(n.op()), &p)) return;
  if (!HasPooledSizes(n, g, x, p)) return;
  const XlaOp share = g / Divisors(n, x, p, n.bool_arg(6), n.has(7), n.has(7) ? n.int_arg(7) : 1, g.dims());
  if (share.ok()) n.Return(lazy::Cast(SpreadWindows(share, p, x), n.in(1).type()));
}

}  // namespace hlokit::lazy::lower
