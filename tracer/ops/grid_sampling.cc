// SPDX-License-Identifier: Apache-2.0
// Sampling of an image at the places that a grid gives, and grids of affine maps.
#include <array>
#include <functional>
#include <numbers>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

enum class Interpolation : int64_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum class GridPadding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

// What a grid samples: [N, C, elements] of `sizes` at coordinates [N, points], x (the last size) first.
struct GridImage {
  Tensor pixels;
  IntList sizes;
  GridPadding padding = GridPadding::kZeros;
  bool align_corners = false;
};

// Maps [-1, 1] to pixels: the centers of the first and last, or their outer edges.
Tensor ToPixels(const Tensor& coordinate, int64_t size, bool align_corners) {
  const double n = static_cast<double>(size);
  return align_corners ? lazy::Add(coordinate, 1) * Scalar((n - 1) / 2)
                       : lazy::Sub(lazy::Add(coordinate, 1) * Scalar(n), 1) * Scalar(0.5);
}

// Limits a coordinate to the image. The derivative is 0 at the limits too, as in torch.
Tensor LimitToImage(const Tensor& x, int64_t size) {
  const Tensor inside = lazy::And(lazy::Gt(x, 0), lazy::Lt(x, size - 1));
  return lazy::Where(inside, x, InvokeOp(Op::clamp, x.Detach(), 0, size - 1));
}

// Reflects a coordinate at both ends, low2 / 2 and high2 / 2, until it is between them.
Tensor ReflectInto(const Tensor& x, int64_t low2, int64_t high2) {
  if (low2 == high2) return x * Scalar(0);
  const double low = static_cast<double>(low2) / 2, span = static_cast<double>(high2 - low2) / 2;
  const Tensor distance = lazy::Abs(lazy::Sub(x, low));
  const Tensor extra = InvokeOp(Op::fmod_Scalar, distance, span);
  const Tensor flips = InvokeOp(Op::floor, lazy::Div(distance.Detach(), span));
  const Tensor even = lazy::Eq(InvokeOp(Op::fmod_Scalar, flips, 2), 0);
  return lazy::Add(lazy::Where(even, extra, lazy::Rsub(extra, span)), low);
}

Tensor ApplyPadding(const Tensor& x, int64_t size, const GridImage& image) {
  if (image.padding == GridPadding::kZeros) return x;
  if (image.padding == GridPadding::kBorder) return LimitToImage(x, size);
  return LimitToImage(image.align_corners ? ReflectInto(x, 0, 2 * (size - 1)) : ReflectInto(x, -1, 2 * size - 1), size);
}

// Returns the pixels at whole coordinates [N, points] in the order of `sizes`, 0 outside of the image.
Tensor PixelsAt(const GridImage& image, const std::vector<Tensor>& at) {
  Tensor inside, number;
  for (size_t d = 0; d < at.size(); ++d) {
    const int64_t size = image.sizes[d];
    const Tensor here = lazy::And(lazy::Ge(at[d], 0), lazy::Le(at[d], size - 1));
    const Tensor place = lazy::To(InvokeOp(Op::clamp, at[d], 0, size - 1), ElementType::kS64);
    inside = d == 0 ? here : lazy::And(inside, here);
    number = d == 0 ? place : number * Scalar(size) + place;
  }
  const int64_t n = image.pixels.size(0), channels = image.pixels.size(1), points = number.size(1);
  const Tensor index = lazy::Expand(lazy::Unsqueeze(number, 1), {n, channels, points});
  return lazy::Where(lazy::Unsqueeze(inside, 1), lazy::Gather(image.pixels, 2, index), 0);
}

// Sums over all combinations of taps of each dimension: pixels at `places[d][k]` weighted by `weights[d][k]`.
Tensor SumOfTaps(const GridImage& image, const std::vector<std::vector<Tensor>>& places,
                 const std::vector<std::vector<Tensor>>& weights) {
  const size_t rank = places.size(), taps = places[0].size();
  size_t combinations = 1;
  for (size_t d = 0; d < rank; ++d) combinations *= taps;
  Tensor sum;
  for (size_t k = 0; k < combinations; ++k) {
    std::vector<Tensor> at;
    Tensor weight;
    for (size_t d = 0, rest = k; d < rank; ++d, rest /= taps) {
      at.push_back(places[d][rest % taps]);
      weight = d == 0 ? weights[d][rest % taps] : weight * weights[d][rest % taps];
    }
    const Tensor term = PixelsAt(image, at) * lazy::Unsqueeze(weight, 1);
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

// The weights of cubic convolution (Keys 1981, a = -3/4) at distances 1 + t, t, 1 - t, 2 - t.
std::vector<Tensor> CubicWeights(const Tensor& t) {
  constexpr double a = -0.75;
  const auto near = [&](const Tensor& x) { return lazy::Add(lazy::Sub(x * Scalar(a + 2), a + 3) * x * x, 1); };
  const auto far = [&](const Tensor& x) {
    return lazy::Sub(lazy::Add(lazy::Sub(x * Scalar(a), 5 * a) * x, 8 * a) * x, 4 * a);
  };
  const Tensor rest = lazy::Rsub(t, 1);
  return {far(lazy::Add(t, 1)), near(t), near(rest), far(lazy::Add(rest, 1))};
}

// coordinates: [N, points] for each dimension in the order of `sizes`
Tensor SampleImage(const GridImage& image, const std::vector<Tensor>& coordinates, Interpolation interpolation) {
  std::vector<std::vector<Tensor>> places(coordinates.size()), weights(coordinates.size());
  for (size_t d = 0; d < coordinates.size(); ++d) {
    const int64_t size = image.sizes[d];
    const Tensor raw = ToPixels(coordinates[d], size, image.align_corners);
    if (interpolation == Interpolation::kBicubic) {
      // Each tap is padded, not their center.
      const Tensor low = InvokeOp(Op::floor, raw.Detach());
      for (int k = -1; k <= 2; ++k) places[d].push_back(ApplyPadding(lazy::Add(low, k), size, image));
      weights[d] = CubicWeights(raw - low);
      continue;
    }
    const Tensor x = ApplyPadding(raw, size, image);
    if (interpolation == Interpolation::kNearest) {
      const Tensor nearest = InvokeOp(Op::round, x.Detach());
      places[d] = {nearest};
      weights[d] = {lazy::OnesLike(nearest)};
      continue;
    }
    const Tensor low = InvokeOp(Op::floor, x.Detach());
    const Tensor part = x - low;
    places[d] = {low, lazy::Add(low, 1)};
    weights[d] = {lazy::Rsub(part, 1), part};
  }
  return SumOfTaps(image, places, weights);
}

bool CheckGrid(OpKernelContext& c, int64_t spatial, Interpolation interpolation, int64_t padding) {
  const Tensor &x = c.tensor(0), &grid = c.tensor(1);
  const auto fail = [&](std::string_view message) {
    c.Fail(StrCat("grid_sampler(): ", message));
    return false;
  };
  if (!RequireFloat(c, 0)) return false;
  if (x.dtype() != grid.dtype()) return fail("expected input and grid to have same dtype");
  if ((spatial != 2 && spatial != 3) || x.dim() != grid.dim()) {
    return fail(StrCat("expected 4D or 5D input and grid with same number of dimensions, but got input with sizes ",
                       ListToString(x.sizes()), " and grid with sizes ", ListToString(grid.sizes())));
  }
  if (x.size(0) != grid.size(0)) {
    return fail(StrCat("expected grid and input to have same batch size, but got input with sizes ",
                       ListToString(x.sizes()), " and grid with sizes ", ListToString(grid.sizes())));
  }
  if (grid.size(-1) != spatial) {
    return fail(StrCat("expected grid to have size ", spatial, " in last dimension, but got grid with sizes ",
                       ListToString(grid.sizes())));
  }
  for (int64_t d = 2; d < x.dim(); ++d) {
    if (x.size(d) != 0) continue;
    return fail(StrCat("expected input to have non-empty spatial dimensions, but input has sizes ",
                       ListToString(x.sizes()), " with dimension ", d, " being empty"));
  }
  if (interpolation < Interpolation::kBilinear || interpolation > Interpolation::kBicubic) {
    return fail("interpolation_mode is 0 (bilinear), 1 (nearest) or 2 (bicubic)");
  }
  if (interpolation == Interpolation::kBicubic && spatial != 2) {
    return fail("bicubic interpolation only supports 4D input");
  }
  return padding >= 0 && padding <= 2 ? true : fail("padding_mode is 0 (zeros), 1 (border) or 2 (reflection)");
}

}  // namespace

// input [N, C, sizes..], grid [N, out.., dimensions], interpolation_mode, padding_mode, align_corners
void GridSampler(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &grid = c.tensor(1);
  const int64_t spatial = c.op() == Op::grid_sampler ? x.dim() - 2 : c.op() == Op::grid_sampler_3d ? 3 : 2;
  const Interpolation interpolation = static_cast<Interpolation>(c.int_arg(2));
  if (x.dim() != spatial + 2) return c.Fail(StrCat("grid_sampler(): expected ", spatial + 2, "D input"));
  if (!CheckGrid(c, spatial, interpolation, c.int_arg(3))) return;
  GridImage image;
  image.padding = static_cast<GridPadding>(c.int_arg(3));
  image.align_corners = c.bool_arg(4);
  const int64_t n = x.size(0), channels = x.size(1);
  int64_t elements = 1, points = 1;
  IntList out = {n, channels};
  for (int64_t d = 0; d < spatial; ++d) {
    image.sizes.push_back(x.size(2 + d));
    elements *= x.size(2 + d);
    points *= grid.size(1 + d);
    out.push_back(grid.size(1 + d));
  }
  image.pixels = lazy::Reshape(x, {n, channels, elements});
  const Tensor places = lazy::Reshape(grid, {n, points, spatial});
  std::vector<Tensor> coordinates;
  for (int64_t d = 0; d < spatial; ++d) coordinates.push_back(lazy::Select(places, 2, spatial - 1 - d));
  c.Return(lazy::Reshape(SampleImage(image, coordinates, interpolation), out));
}

// theta [N, 2, 3] or [N, 3, 4], size, align_corners -> [N, out.., dimensions]
void AffineGridGenerator(OpKernelContext& c) {
  const Tensor& theta = c.tensor(0);
  const Dims size = c.ints(1);
  if (size.size() != 4 && size.size() != 5) {
    return c.Fail("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  }
  const int64_t spatial = static_cast<int64_t>(size.size()) - 2;
  if (!RequireFloat(c, 0)) return;
  if (theta.dim() != 3 || theta.size(0) != size[0] || theta.size(1) != spatial || theta.size(2) != spatial + 1) {
    return c.Fail(StrCat("Expected a batch of ", size[0], " affine matrices of size [", spatial, ", ", spatial + 1,
                         "], but got theta of size ", ListToString(theta.sizes())));
  }
  IntList column(static_cast<size_t>(spatial) + 2, 1);
  column.front() = size[0];
  column.back() = spatial;
  Tensor grid = lazy::Reshape(lazy::Select(theta, 2, spatial), column);
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t n = size[static_cast<size_t>(d) + 2];
    if (n < 1 || n > kMaxExtent)
      return c.Fail(StrCat("Expected non-zero, positive output size. Got ", ListToString(size)));
    // From -1 to 1: centers of the first and last pixel, or their outer edges.
    const double reach = c.bool_arg(2) ? 1 : static_cast<double>(n - 1) / static_cast<double>(n);
    const double step = n > 1 ? 2 * reach / static_cast<double>(n - 1) : 0, first = n > 1 ? -reach : 0;
    const Tensor number = lazy::To(IotaAlong(c, n, d + 1, spatial + 2), theta.dtype());
    const Tensor weight = lazy::Reshape(lazy::Select(theta, 2, spatial - 1 - d), column);
    grid = grid + lazy::Add(number * Scalar(step), first) * weight;
  }
  c.Return(grid);
}

}  // namespace hlokit::lazy::kernel
