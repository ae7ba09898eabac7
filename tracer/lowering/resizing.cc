// SPDX-License-Identifier: Apache-2.0
// Adaptive averages and resizing: linear maps of one dimension after another, given as matrices or, for nearest
// neighbors, as indices.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/core/str_cat.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

using Matrix = std::vector<std::vector<double>>;  // [out][in]

// Applies m to dimension `dim` of x.
XlaOp Apply(XlaOp x, int64_t dim, const Matrix& m) {
  const int64_t out = static_cast<int64_t>(m.size()), in = x.size(dim);
  XlaEmitter& e = x.emitter();
  Literal literal = Literal::Zeros(e.ArrayShape(x.type(), {out, in}));
  const size_t width = static_cast<size_t>(BytesOf(x.type()));
  for (int64_t i = 0; i < out; ++i) {
    for (int64_t j = 0; j < in; ++j) {
      StoreScalar(x.type(), m[i][j], literal.data() + static_cast<size_t>(i * in + j) * width);
    }
  }
  const XlaOp matrix = e.Take(e.builder().Constant(literal));
  const XlaOp product = Dot(x, matrix, {{}, {dim}, {}, {1}});  // the new dimension is the last
  DimVector permutation;
  for (int64_t d = 0; d + 1 < x.rank(); ++d) {
    if (d == dim) permutation.push_back(x.rank() - 1);
    permutation.push_back(d);
  }
  if (dim == x.rank() - 1) permutation.push_back(dim);
  return Transpose(product, permutation);
}

Matrix Transposed(const Matrix& m) {
  Matrix t(m.empty() ? 0 : m[0].size(), std::vector<double>(m.size()));
  for (size_t i = 0; i < m.size(); ++i) {
    for (size_t j = 0; j < m[i].size(); ++j) t[j][i] = m[i][j];
  }
  return t;
}

Matrix AdaptiveAverage(int64_t in, int64_t out) {
  Matrix m(static_cast<size_t>(out), std::vector<double>(static_cast<size_t>(in), 0));
  for (int64_t o = 0; o < out; ++o) {
    const int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    for (int64_t i = begin; i < end; ++i) m[o][i] = 1.0 / static_cast<double>(end - begin);
  }
  return m;
}

// Returns the distance of neighboring output elements, in input elements.
double ResizeRatio(int64_t in, int64_t out, bool align_corners, std::optional<double> scale) {
  if (align_corners) return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  return scale && *scale > 0 ? 1 / *scale : static_cast<double>(in) / static_cast<double>(out);
}

Matrix LinearWeights(int64_t in, int64_t out, bool align_corners, std::optional<double> scale) {
  Matrix m(static_cast<size_t>(out), std::vector<double>(static_cast<size_t>(in), 0));
  const double ratio = ResizeRatio(in, out, align_corners, scale);
  for (int64_t o = 0; o < out; ++o) {
    const double at =
        align_corners ? ratio * static_cast<double>(o) : std::max(0.0, ratio * (static_cast<double>(o) + 0.5) - 0.5);
    const int64_t low = static_cast<int64_t>(std::min(at, static_cast<double>(in - 1)));
    const int64_t high = std::min(low + 1, in - 1);
    const double part = at - static_cast<double>(low);
    m[o][low] += 1 - part;
    m[o][high] += part;
  }
  return m;
}

// Cubic convolution (Keys 1981) with a = -3/4; elements beyond the ends are those at the ends.
Matrix CubicWeights(int64_t in, int64_t out, bool align_corners, std::optional<double> scale) {
  constexpr double a = -0.75;
  const auto near = [](double t) { return ((a + 2) * t - (a + 3)) * t * t + 1; };
  const auto far = [](double t) { return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a; };
  Matrix m(static_cast<size_t>(out), std::vector<double>(static_cast<size_t>(in), 0));
  const double ratio = ResizeRatio(in, out, align_corners, scale);
  for (int64_t o = 0; o < out; ++o) {
    const double at = align_corners ? ratio * static_cast<double>(o) : ratio * (static_cast<double>(o) + 0.5) - 0.5;
    const double low = std::floor(at), t = at - low;
    const double weights[] = {far(1 + t), near(t), near(1 - t), far(2 - t)};
    for (int64_t k = 0; k < 4; ++k) {
      m[o][std::clamp<int64_t>(static_cast<int64_t>(std::min(low, static_cast<double>(in))) + k - 1, 0, in - 1)] +=
          weights[k];
    }
  }
  return m;
}

// `exact`: of the centers of the output elements instead of their beginnings.
std::vector<int64_t> NearestIndices(int64_t in, int64_t out, bool exact, std::optional<double> scale) {
  // In f32, as torch computes them.
  const float ratio =
      scale && *scale > 0 ? static_cast<float>(1 / *scale) : static_cast<float>(in) / static_cast<float>(out);
  const float shift = exact ? 0.5f : 0.0f;
  std::vector<int64_t> places;
  for (int64_t o = 0; o < out; ++o) {
    // NaN, the place 0 of an infinite ratio, counts as beyond the end too.
    const float place = std::floor((static_cast<float>(o) + shift) * ratio);
    places.push_back(place < static_cast<float>(in - 1) ? static_cast<int64_t>(place) : in - 1);
  }
  return places;
}

bool IsExact(Op op) {
  return op == Op::upsample_nearest_exact1d || op == Op::upsample_nearest_exact2d ||
         op == Op::upsample_nearest_exact3d || op == Op::upsample_nearest_exact1d_backward ||
         op == Op::upsample_nearest_exact2d_backward || op == Op::upsample_nearest_exact3d_backward;
}

XlaOp GatherIndices(XlaOp x, int64_t dim, const std::vector<int64_t>& places) {
  XlaEmitter& e = x.emitter();
  Literal literal = Literal::Zeros(e.ArrayShape(ElementType::kS64, {static_cast<int64_t>(places.size()), 1}));
  std::copy(places.begin(), places.end(), literal.values<int64_t>().begin());
  return Gather(x, e.Take(e.builder().Constant(literal)), GatherAlongDim(x, dim));
}

constexpr int64_t kMaxMatrix = int64_t{1} << 24;
bool SmallMap(LoweringContext& n, int64_t in, int64_t out) {
  if (in > 0 && out > 0 && in <= kMaxMatrix / out) return true;
  n.emitter().Fail("the sizes are out of range");
  return false;
}

// Checks that argument i has one size for each dimension after batch and channels.
bool ReadSizes(LoweringContext& n, size_t i, int64_t rank, DimVector* sizes) {
  const Dims given = n.ints(i);
  sizes->assign(given.begin(), given.end());
  if (static_cast<int64_t>(given.size()) == rank - 2) return true;
  n.emitter().Fail(absl::InvalidArgumentError(
      StrCat("It is expected output_size equals to ", rank - 2, ", but got size ", given.size())));
  return false;
}

// Checks the sizes of the output, and that the input's sizes have as many dimensions as the gradient.
bool ReadInputSizes(LoweringContext& n, XlaOp g, DimVector* out) {
  if (!ReadSizes(n, 1, g.rank(), out)) return false;
  if (static_cast<int64_t>(n.ints(2).size()) == g.rank() && Dims(*out) == Dims(g.dims()).subspan(2)) return true;
  n.emitter().Fail(absl::InvalidArgumentError(
      StrCat("Expected grad_output to have ", n.ints(2).size(), " dimensions and the spatial sizes of output_size")));
  return false;
}

// The scale factor of dimension i, if the arguments from `first` on have one.
std::optional<double> ScaleOf(LoweringContext& n, size_t first, int64_t i) {
  const size_t arg = first + static_cast<size_t>(i);
  return n.has(arg) ? std::optional<double>(n.float_arg(arg)) : std::nullopt;
}

bool IsCubic(Op op) { return op == Op::upsample_bicubic2d || op == Op::upsample_bicubic2d_backward; }

Matrix InterpolationWeights(LoweringContext& n, size_t align_arg, int64_t i, int64_t in, int64_t out) {
  const auto weights = IsCubic(n.op()) ? CubicWeights : LinearWeights;
  return weights(in, out, n.bool_arg(align_arg), ScaleOf(n, align_arg + 1, i));
}

}  // namespace

// self [.., spatial..], output_size
void AdaptiveAvgPool(LoweringContext& n) {
  const XlaOp input = n.in(0);
  XlaOp x = Wide(input);
  const Dims out = n.ints(1);
  const int64_t spatial = static_cast<int64_t>(out.size()), first = x.rank() - spatial;
  DimVector dims = x.dims();
  for (int64_t i = 0; i < spatial; ++i) dims[first + i] = out[i];
  if (first >= 0 && std::count(out.begin(), out.end(), 0) != 0) {
    return n.Return(Full(n.emitter(), input.type(), dims, 0));
  }
  bool even = true;
  for (int64_t i = 0; i < spatial; ++i) {
    if (!SmallMap(n, x.size(first + i), out[i])) return;
    even &= x.size(first + i) % out[i] == 0;
  }
  if (even) {  // windows of equal size
    const size_t rank = static_cast<size_t>(x.rank());
    Window w{DimVector(rank, 1), DimVector(rank, 1), {}, {}, {}, {}};
    double count = 1;
    for (int64_t i = 0; i < spatial; ++i) {
      w.size[first + i] = w.stride[first + i] = x.size(first + i) / out[i];
      count *= static_cast<double>(w.size[first + i]);
    }
    return n.Return(lazy::Cast(ReduceWindow(Opcode::kAdd, x, Number(x, 0), w) / count, input.type()));
  }
  for (int64_t i = 0; i < spatial; ++i) x = Apply(x, first + i, AdaptiveAverage(x.size(first + i), out[i]));
  n.Return(lazy::Cast(x, input.type()));
}
void AdaptiveAvgPoolBackward(LoweringContext& n) {
  XlaOp g = Wide(n.in(0));
  const XlaOp x = n.in(1);
  const int64_t spatial = n.op() == Op::adaptive_avg_pool3d_backward ? 3 : 2;
  if (g.rank() != x.rank()) {
    n.emitter().Fail("grad_output and self need the same number of dimensions");
    return;
  }
  if (g.elements() == 0) return n.Return(FullLike(x, 0));
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t dim = x.rank() - spatial + i;
    if (!SmallMap(n, x.size(dim), g.size(dim))) return;
    g = Apply(g, dim, Transposed(AdaptiveAverage(x.size(dim), g.size(dim))));
  }
  n.Return(lazy::Cast(g, x.type()));
}
// self [N, C, spatial..], output_size, align_corners, scales.. of linear and cubic interpolation
void UpsampleInterpolated(LoweringContext& n) {
  if (!n.in(0).is_float()) {
    n.emitter().Fail("images of integers, which torch rounds after each dimension");
    return;
  }
  XlaOp x = Wide(n.in(0));
  DimVector out;
  if (!ReadSizes(n, 1, x.rank(), &out)) return;
  for (int64_t i = 0; i < x.rank() - 2; ++i) {
    const int64_t in = x.size(2 + i);
    if (!SmallMap(n, in, out[i])) return;
    x = Apply(x, 2 + i, InterpolationWeights(n, 2, i, in, out[i]));
  }
  n.Return(lazy::Cast(x, n.in(0).type()));
}
// grad_output, output_size, input_size, align_corners, scales..
void UpsampleInterpolatedBackward(LoweringContext& n) {
  XlaOp g = Wide(n.in(0));
  DimVector out;
  if (!ReadInputSizes(n, g, &out)) return;
  for (int64_t i = 0; i < g.rank() - 2; ++i) {
    const int64_t in = n.ints(2)[static_cast<size_t>(2 + i)];
    if (!SmallMap(n, in, out[i])) return;
    g = Apply(g, 2 + i, Transposed(InterpolationWeights(n, 3, i, in, out[i])));
  }
  n.Return(lazy::Cast(g, n.in(0).type()));
}
// self [N, C, spatial..], output_size, scales..
void UpsampleNearest(LoweringContext& n) {
  XlaOp x = n.in(0);
  DimVector out;
  if (!ReadSizes(n, 1, x.rank(), &out)) return;
  for (int64_t i = 0; i < x.rank() - 2; ++i) {
    if (!SmallMap(n, x.size(2 + i), out[i])) return;
    x = GatherIndices(x, 2 + i, NearestIndices(x.size(2 + i), out[i], IsExact(n.op()), ScaleOf(n, 2, i)));
  }
  n.Return(x);
}
// grad_output, output_size, input_size, scales..
void UpsampleNearestBackward(LoweringContext& n) {
  XlaOp g = Wide(n.in(0));
  DimVector out;
  if (!ReadInputSizes(n, g, &out)) return;
  for (int64_t i = 0; i < g.rank() - 2; ++i) {
    const int64_t in = n.ints(2)[static_cast<size_t>(2 + i)];
    if (!SmallMap(n, in, out[i])) return;
    Matrix m(static_cast<size_t>(in), std::vector<double>(static_cast<size_t>(out[i]), 0));
    const std::vector<int64_t> places = NearestIndices(in, out[i], IsExact(n.op()), ScaleOf(n, 3, i));
    for (size_t o = 0; o < places.size(); ++o) m[places[o]][o] = 1;
    g = Apply(g, 2 + i, m);
  }
  n.Return(lazy::Cast(g, n.in(0).type()));
}

}  // namespace hlokit::lazy::lower
