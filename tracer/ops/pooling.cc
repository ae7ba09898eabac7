// SPDX-License-Identifier: Apache-2.0
// Pooling: windows of equal size are nodes of their own; adaptive and fractional windows are gathered.
#include <algorithm>
#include <limits>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

// The most elements of a gathered dimension.
constexpr int64_t kMaxPlaces = int64_t{1} << 24;

// Checks the input of an adaptive pool and reads its output size.
bool ReadAdaptive(OpKernelContext& c, int64_t spatial, IntList* out) {
  const Tensor& x = c.tensor(0);
  if (!RequireFloat(c, 0)) return false;
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2) {
    c.Fail(StrCat(NameOf(c), "(): Expected ", spatial + 1, "D or ", spatial + 2,
                  "D tensor, but got: ", ListToString(x.sizes())));
    return false;
  }
  if (!ReadExtents(c, 1, spatial, 0, {}, out)) return false;
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t dim = x.dim() - spatial + i;
    if (x.size(dim) == 0) {
      c.Fail(StrCat(NameOf(c),
                    "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
                    ListToString(x.sizes()), " with dimension ", dim, " being empty"));
      return false;
    }
  }
  return true;
}

// The elements of each adaptive window along one dimension: `count` windows of `width` places, of which narrower
// windows repeat the last.
struct AdaptiveWindows {
  int64_t count, width;
  std::vector<double> places;
};

AdaptiveWindows WindowsOf(int64_t in, int64_t out) {
  AdaptiveWindows w{out, 0, {}};
  if (out > kMaxPlaces) return w;
  const auto begin = [&](int64_t o) { return o * in / out; };
  const auto end = [&](int64_t o) { return ((o + 1) * in + out - 1) / out; };
  for (int64_t o = 0; o < out; ++o) w.width = std::max(w.width, end(o) - begin(o));
  if (w.width * out > kMaxPlaces) return w;
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t k = 0; k < w.width; ++k) w.places.push_back(static_cast<double>(std::min(begin(o) + k, end(o) - 1)));
  }
  return w;
}

// Returns [.., windows, elements of a window] of the last dimensions.
Tensor GatherWindows(OpKernelContext& c, Tensor t, const std::vector<AdaptiveWindows>& windows) {
  const int64_t spatial = static_cast<int64_t>(windows.size()), lead = t.dim() - spatial;
  IntList split(t.sizes().begin(), t.sizes().begin() + lead), order(static_cast<size_t>(lead));
  IntList joined = split;
  for (int64_t d = 0; d < lead; ++d) order[static_cast<size_t>(d)] = d;
  int64_t width = 1;
  for (int64_t i = 0; i < spatial; ++i) {
    const AdaptiveWindows& w = windows[static_cast<size_t>(i)];
    t = SelectPlaces(c, t, lead + i, w.places);
    split.insert(split.end(), {w.count, w.width});
    joined.push_back(w.count);
    order.push_back(lead + 2 * i);
    width *= w.width;
  }
  for (int64_t i = 0; i < spatial; ++i) order.push_back(lead + 2 * i + 1);
  joined.push_back(width);
  return lazy::Reshape(lazy::Permute(lazy::Reshape(t, split), order), joined);
}

int64_t SpatialOfPool(std::string_view name) {
  return name.find("1d") != std::string_view::npos ? 1 : name.find("2d") != std::string_view::npos ? 2 : 3;
}

// Collapses the last `spatial` dimensions.
Tensor FlatSpatial(const Tensor& t, int64_t spatial) {
  IntList sizes(t.sizes().begin(), t.sizes().begin() + (t.dim() - spatial));
  int64_t count = 1;
  for (int64_t d = t.dim() - spatial; d < t.dim(); ++d) count *= t.size(d);
  sizes.push_back(count);
  return lazy::Reshape(t, sizes);
}

// Moves one spatial dimension to two, the first of size 1.
IntList WithOne(Dims list, int64_t first) {
  IntList two;
  if (list.empty()) return two;
  two.push_back(first);
  for (int64_t value : list) two.push_back(value);
  return two;
}

}  // namespace

void MaxPool(OpKernelContext& c) { kernel::Record(c); }
void AvgPool(OpKernelContext& c) { kernel::Record(c); }

// self, kernel_size, stride, padding, dilation, ceil_mode
void MaxPoolValues(OpKernelContext& c) {
  const int64_t spatial = SpatialOfPool(NameOf(c));
  constexpr Op kWithIndices[] = {Op::max_pool1d_with_indices, Op::max_pool2d_with_indices, Op::max_pool3d_with_indices};
  const Tensor& x = c.tensor(0);
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2) {
    return c.Fail(StrCat(NameOf(c), ": Expected ", spatial + 1, "D or ", spatial + 2,
                         "D (batch mode) tensor for input, but got: ", ListToString(x.sizes())));
  }
  c.Return(InvokeOp(kWithIndices[spatial - 1], x, c.ints(1), c.ints(2), c.ints(3), c.ints(4), c.bool_arg(5)));
}
// self, kernel_size, stride, padding, ceil_mode, count_include_pad
void AvgPool1d(OpKernelContext& c) {
  if (!RequireRank(c, 0, 2, 3)) return;
  const Tensor y = InvokeOp(Op::avg_pool2d, lazy::Unsqueeze(c.tensor(0), -2), WithOne(c.ints(1), 1),
                            WithOne(c.ints(2), 1), WithOne(c.ints(3), 0), c.bool_arg(4), c.bool_arg(5));
  c.Return(y.defined() ? lazy::Squeeze(y, -2) : y);
}
// self, norm_type, kernel_size, stride?, ceil_mode: (sum of x^p over a window)^(1/p)
void LpPool(OpKernelContext& c) {
  const int64_t spatial = SpatialOfPool(NameOf(c));
  IntList kernel;
  if (!ReadExtents(c, 2, spatial, 1, {}, &kernel)) return;
  const double p = c.float_arg(1);
  int64_t count = 1;
  for (int64_t k : kernel) count *= std::min<int64_t>(k, 1 << 20);
  const Tensor powers = lazy::Pow(c.tensor(0), p);
  const Tensor mean = spatial == 1
                          ? InvokeOp(Op::avg_pool1d, powers, c.ints(2), c.ints(3), IntList{0}, c.bool_arg(4))
                          : InvokeOp(Op::avg_pool2d, powers, c.ints(2), c.ints(3), IntList{0, 0}, c.bool_arg(4));
  const Tensor sum = InvokeOp(Op::sign, mean) * lazy::Relu(lazy::Abs(mean)) * Scalar(count);
  c.Return(lazy::Pow(sum, 1 / p));
}

// ---- adaptive ----

void AdaptiveAvgPool1d(OpKernelContext& c) {
  IntList out;
  if (!ReadAdaptive(c, 1, &out)) return;
  const Tensor y = InvokeOp(Op::adaptive_avg_pool2d, lazy::Unsqueeze(c.tensor(0), -2), IntList{1, out[0]});
  c.Return(y.defined() ? lazy::Squeeze(y, -2) : y);
}
// One window over everything is a mean, as in torch.
void AdaptiveAvgPoolOrMean(OpKernelContext& c) {
  const int64_t spatial = SpatialOfPool(NameOf(c));
  IntList out;
  if (!ReadAdaptive(c, spatial, &out)) return;
  if (std::all_of(out.begin(), out.end(), [](int64_t size) { return size == 1; })) {
    return c.Return(lazy::Mean(c.tensor(0), spatial == 2 ? IntList{-2, -1} : IntList{-3, -2, -1}, true));
  }
  c.Return(InvokeOp(spatial == 2 ? Op::adaptive_avg_pool2d : Op::adaptive_avg_pool3d, c.tensor(0), out));
}
// self, output_size -> values, indices in the flattened spatial dimensions
void AdaptiveMaxPool(OpKernelContext& c) {
  const int64_t spatial = SpatialOfPool(NameOf(c));
  const Tensor& x = c.tensor(0);
  IntList out;
  if (!ReadAdaptive(c, spatial, &out)) return;
  const int64_t lead = x.dim() - spatial;
  IntList sizes(x.sizes().begin(), x.sizes().begin() + lead), in;
  std::vector<AdaptiveWindows> windows;
  int64_t elements = 1;
  for (int64_t i = 0; i < spatial; ++i) {
    in.push_back(x.size(lead + i));
    elements *= in.back();
    sizes.push_back(out[i]);
    windows.push_back(WindowsOf(in.back(), std::max<int64_t>(out[i], 1)));
    if (windows.back().places.empty()) return c.Fail("the sizes are out of range");
  }
  if (std::count(sizes.begin(), sizes.end(), 0) != 0) {
    return c.Return(InvokeOp(Op::full, sizes, 0, x.dtype()), InvokeOp(Op::full, sizes, 0, ElementType::kS64));
  }
  const Outputs best = InvokeOpMultiOutput(Op::max_dim, GatherWindows(c, x, windows), int64_t{-1});
  if (!best[0].defined()) return c.Return(Tensor(), Tensor());
  // The number of each window's elements.
  const Tensor numbers = GatherWindows(c, lazy::Reshape(IotaAlong(c, elements, 0, 1), in), windows);
  IntList wide = sizes;
  wide.push_back(numbers.size(-1));
  const Tensor indices = lazy::Gather(lazy::Expand(numbers, wide), -1, lazy::Unsqueeze(best[1], -1));
  c.Return(best[0], lazy::Squeeze(indices, -1));
}
// grad_output, self, indices
void AdaptiveMaxPoolBackward(OpKernelContext& c) {
  const int64_t spatial = SpatialOfPool(NameOf(c));
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &indices = c.tensor(2);
  if (!RequireSameSizes(c, 0, 2)) return;
  if (x.dim() != g.dim() || x.dim() < spatial) return c.Fail("grad_output and self need the same number of dimensions");
  if (indices.dtype() != ElementType::kS64) return c.Fail("indices must be a tensor of s64");
  const Tensor sum = lazy::ScatterAdd(FlatSpatial(lazy::ZerosLike(x), spatial), -1, FlatSpatial(indices, spatial),
                                      FlatSpatial(g.to(x.dtype()), spatial));
  c.Return(lazy::Reshape(sum, Sizes(x)));
}

// ---- the inverse, and windows at random places ----

// self, indices, output_size[, stride, padding]
void MaxUnpool(OpKernelContext& c) {
  const int64_t spatial = SpatialOfPool(NameOf(c));
  const Tensor &x = c.tensor(0), &indices = c.tensor(1);
  if (indices.dtype() != ElementType::kS64) {
    return c.Fail(StrCat("elements in indices should be type int64 but got: ", TypeName(indices.dtype())));
  }
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2) {
    return c.Fail(StrCat("Input to ", NameOf(c), " should be a ", spatial + 1, "d or ", spatial + 2,
                         "d Tensor, but got a tensor with ", x.dim(), " dimensions"));
  }
  if (indices.sizes() != x.sizes()) {
    return c.Fail(StrCat("Expected shape of indices to be same as that of the input tensor (", ListToString(x.sizes()),
                         ") but got indices tensor with shape: ", ListToString(indices.sizes())));
  }
  IntList out;
  if (!ReadExtents(c, 2, spatial, 1, {}, &out)) return;
  IntList flat(x.sizes().begin(), x.sizes().begin() + (x.dim() - spatial)), sizes = flat;
  int64_t count = 1;
  for (int64_t size : out) {
    sizes.push_back(size);
    count = std::min(count, kMaxExtent) * size;
  }
  flat.push_back(count);
  const Tensor zeros = InvokeOp(Op::full, flat, 0, x.dtype());
  const Tensor placed =
      InvokeOp(Op::scatter_src, zeros, int64_t{-1}, FlatSpatial(indices, spatial), FlatSpatial(x, spatial));
  c.Return(lazy::Reshape(placed, sizes));
}

namespace {

// Returns the first places of `out` windows along a dimension of `in` elements, [.., out] for samples [..]: evenly
// spread, shifted by a random sample in [0, 1); the last window ends the dimension.
Tensor FractionalStarts(OpKernelContext& c, const Tensor& sample, int64_t in, int64_t out, int64_t kernel) {
  IntList sizes = Sizes(sample);
  sizes.push_back(1);
  const Tensor s = lazy::Reshape(sample, sizes);
  const double alpha = out > 1 ? static_cast<double>(in - kernel) / static_cast<double>(out - 1) : 0;
  const Tensor at = IotaAlong(c, out, s.dim() - 1, s.dim());
  const Tensor even =
      InvokeOp(Op::trunc, (s + at.to(s.dtype())) * Scalar(alpha)) - InvokeOp(Op::trunc, s * Scalar(alpha));
  const Tensor start = lazy::Where(lazy::Eq(at, out - 1), lazy::FullLike(even, in - kernel), even);
  return InvokeOp(Op::clamp, lazy::To(start, ElementType::kS64), 0, in - kernel);
}

}  // namespace

// self [.., C, H, W], kernel_size, output_size, random_samples [N, C, 2]: sample 0 places windows along W, 1 along H
void FractionalMaxPool2d(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const Tensor& samples = c.tensor(3);
  if (!RequireFloat(c, 0) || !RequireRank(c, 0, 3, 4)) return;
  IntList kernel, out;
  if (!ReadExtents(c, 1, 2, 1, {}, &kernel) || !ReadExtents(c, 2, 2, 1, {}, &out)) return;
  const int64_t lead = x.dim() - 2, batch = lead == 2 ? x.size(0) : 1, channels = x.size(-3);
  for (int64_t i = 0; i < 2; ++i) {
    if (out[i] + kernel[i] - 1 <= x.size(lead + i)) continue;
    return c.Fail(StrCat("fractional_max_pool2d(): pool ", i == 0 ? "height " : "width ", kernel[i],
                         " too large relative to input ", i == 0 ? "height " : "width ", x.size(lead + i)));
  }
  if (samples.dim() != 3 || samples.size(0) < batch || samples.size(1) < channels || samples.size(2) != 2) {
    return c.Fail(StrCat("Expect _random_samples of size [", batch, ", ", channels, ", 2], but got ",
                         ListToString(samples.sizes())));
  }
  if (samples.dtype() != x.dtype()) return c.Fail("Expect _random_samples to have the same dtype as input");
  const Tensor s = lazy::Slice(lazy::Slice(samples.Detach(), 0, 0, batch), 1, 0, channels);
  // [N, C, out H, out W, kernel H, kernel W] numbers of elements.
  const Tensor rows = lazy::Reshape(FractionalStarts(c, lazy::Select(s, 2, 1), x.size(lead), out[0], kernel[0]),
                                    {batch, channels, out[0], 1, 1, 1}) +
                      IotaAlong(c, kernel[0], 4, 6);
  const Tensor columns = lazy::Reshape(FractionalStarts(c, lazy::Select(s, 2, 0), x.size(lead + 1), out[1], kernel[1]),
                                       {batch, channels, 1, out[1], 1, 1}) +
                         IotaAlong(c, kernel[1], 5, 6);
  const int64_t width = kernel[0] * kernel[1], windows = out[0] * out[1], elements = x.size(lead) * x.size(lead + 1);
  if (width > kMaxPlaces / windows) return c.Fail("the sizes are out of range");
  const Tensor numbers = lazy::Reshape(rows * Scalar(x.size(lead + 1)) + columns, {batch, channels, windows * width});
  const Tensor gathered = lazy::Gather(lazy::Reshape(x, {batch, channels, elements}), 2, numbers);
  const Outputs best =
      InvokeOpMultiOutput(Op::max_dim, lazy::Reshape(gathered, {batch, channels, windows, width}), int64_t{3}, true);
  if (!best[0].defined()) return c.Return(Tensor(), Tensor());
  const Tensor places = lazy::Gather(lazy::Reshape(numbers, {batch, channels, windows, width}), 3, best[1]);
  IntList sizes(x.sizes().begin(), x.sizes().begin() + lead);
  sizes.insert(sizes.end(), out.begin(), out.end());
  c.Return(lazy::Reshape(best[0], sizes), lazy::Reshape(places, sizes));
}

}  // namespace hlokit::lazy::kernel
