// SPDX-License-Identifier: Apache-2.0
// Rearrangements of images: patches as columns and back, channels to pixels and back.
#include <numeric>
#include <string>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

// Sliding blocks over an image of 2 dimensions.
struct PatchPlan {
  IntList kernel, dilation, padding, stride;
  IntList image, blocks;  // sizes of the image, numbers of blocks along them
};

std::string Parenthesized(const IntList& pair) { return StrCat("(", pair[0], ", ", pair[1], ")"); }

// Reads kernel_size, dilation, padding and stride from argument `first` on.
bool ReadPatches(OpKernelContext& c, size_t first, IntList image, PatchPlan* p) {
  if (!ReadExtents(c, first, 2, 1, {}, &p->kernel) || !ReadExtents(c, first + 1, 2, 1, {}, &p->dilation) ||
      !ReadExtents(c, first + 2, 2, 0, {}, &p->padding) || !ReadExtents(c, first + 3, 2, 1, {}, &p->stride)) {
    return false;
  }
  p->image = std::move(image);
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t span = p->image[i] + 2 * p->padding[i] - p->dilation[i] * (p->kernel[i] - 1) - 1;
    p->blocks.push_back(span < 0 ? 0 : span / p->stride[i] + 1);
  }
  if (p->blocks[0] > 0 && p->blocks[1] > 0 && p->kernel[0] <= kMaxExtent / p->kernel[1] &&
      p->blocks[0] <= kMaxExtent / p->kernel[0] && p->blocks[1] <= kMaxExtent / p->kernel[1]) {
    return true;
  }
  c.Fail(StrCat("Given input with spatial size ", Parenthesized(p->image), ", kernel_size=", Parenthesized(p->kernel),
                ", dilation=", Parenthesized(p->dilation), ", padding=", Parenthesized(p->padding),
                ", calculated shape of the array of sliding blocks as ", Parenthesized(p->blocks),
                ", but its components must be at least one."));
  return false;
}

// Returns the places of the padded dimension i that blocks read: [kernel * blocks].
Tensor BlockPlaces(OpKernelContext& c, const PatchPlan& p, int64_t i) {
  const Tensor places =
      IotaAlong(c, p.kernel[i], 0, 2) * Scalar(p.dilation[i]) + IotaAlong(c, p.blocks[i], 1, 2) * Scalar(p.stride[i]);
  return lazy::Reshape(places, {p.kernel[i] * p.blocks[i]});
}

// An image or columns that may lack the batch dimension.
Tensor Batched(const Tensor& t, bool batched) { return batched ? t : lazy::Unsqueeze(t, 0); }
Tensor Unbatched(const Tensor& t, bool batched) { return batched || !t.defined() ? t : lazy::Squeeze(t, 0); }

}  // namespace

// self [N, C, H, W], kernel_size, dilation, padding, stride -> [N, C * kernel, blocks]
void Im2col(OpKernelContext& c) {
  const Tensor& given = c.tensor(0);
  if (given.dim() != 3 && given.dim() != 4) {
    return c.Fail(
        StrCat("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
               "dimensions for input, but got: ",
               ListToString(given.sizes())));
  }
  const bool batched = given.dim() == 4;
  PatchPlan p;
  if (!ReadPatches(c, 1, {given.size(-2), given.size(-1)}, &p)) return;
  Tensor x = Batched(given, batched);
  const int64_t n = x.size(0), channels = x.size(1);
  x = InvokeOp(Op::constant_pad_nd, x, IntList{p.padding[1], p.padding[1], p.padding[0], p.padding[0]}, 0);
  x = lazy::IndexSelect(lazy::IndexSelect(x, 2, BlockPlaces(c, p, 0)), 3, BlockPlaces(c, p, 1));
  x = lazy::Reshape(x, {n, channels, p.kernel[0], p.blocks[0], p.kernel[1], p.blocks[1]});
  x = lazy::Reshape(lazy::Permute(x, {0, 1, 2, 4, 3, 5}),
                    {n, channels * p.kernel[0] * p.kernel[1], p.blocks[0] * p.blocks[1]});
  c.Return(Unbatched(x, batched));
}

// self [N, C * kernel, blocks], output_size, kernel_size, dilation, padding, stride -> sums of the blocks, [N, C, H, W]
void Col2im(OpKernelContext& c) {
  const Tensor& given = c.tensor(0);
  if (given.dim() != 2 && given.dim() != 3) {
    return c.Fail(
        StrCat("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
               "dimensions for input, but got: ",
               ListToString(given.sizes())));
  }
  const bool batched = given.dim() == 3;
  IntList image;
  PatchPlan p;
  if (!ReadExtents(c, 1, 2, 1, {}, &image) || !ReadPatches(c, 2, image, &p)) return;
  const Tensor x = Batched(given, batched);
  const int64_t n = x.size(0), width = p.kernel[0] * p.kernel[1];
  if (x.size(1) % width != 0) {
    return c.Fail(
        StrCat("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
               "input.size(1)=",
               x.size(1), " and kernel_size=", Parenthesized(p.kernel), "."));
  }
  if (x.size(2) != p.blocks[0] * p.blocks[1]) {
    return c.Fail(StrCat("Given output_size=", Parenthesized(p.image), ", kernel_size=", Parenthesized(p.kernel),
                         ", dilation=", Parenthesized(p.dilation), ", padding=", Parenthesized(p.padding),
                         ", stride=", Parenthesized(p.stride),
                         ", expected size of input's dimension 2 to match the calculated number of sliding blocks ",
                         p.blocks[0], " * ", p.blocks[1], " = ", p.blocks[0] * p.blocks[1],
                         ", but got input.size(2)=", x.size(2), "."));
  }
  const int64_t channels = x.size(1) / width;
  Tensor y = lazy::Reshape(x, {n, channels, p.kernel[0], p.kernel[1], p.blocks[0], p.blocks[1]});
  y = lazy::Reshape(lazy::Permute(y, {0, 1, 2, 4, 3, 5}),
                    {n, channels, p.kernel[0] * p.blocks[0], p.kernel[1] * p.blocks[1]});
  for (int64_t i = 1; i >= 0; --i) {
    IntList sizes = Sizes(y);
    sizes[static_cast<size_t>(2 + i)] = p.image[i] + 2 * p.padding[i];
    const Tensor zeros = InvokeOp(Op::new_zeros, y, sizes);
    y = InvokeOp(Op::index_add, zeros, 2 + i, BlockPlaces(c, p, i), y);
    y = lazy::Narrow(y, 2 + i, p.padding[i], p.image[i]);
  }
  c.Return(Unbatched(y, batched));
}

// ---- channels and pixels ----

namespace {

// Reads the factor of a pixel shuffle; the input must have 3 or more dimensions.
bool ReadShuffle(OpKernelContext& c, std::string_view factor_name) {
  if (c.tensor(0).dim() < 3) {
    c.Fail(StrCat(NameOf(c), " expects input to have at least 3 dimensions, but got input with ", c.tensor(0).dim(),
                  " dimension(s)"));
    return false;
  }
  const int64_t factor = c.int_arg(1);
  if (factor > 0 && factor < (1 << 15)) return true;
  c.Fail(StrCat(NameOf(c), " expects a positive ", factor_name, ", but got ", factor));
  return false;
}

// Reshapes to [lead.., middle..], permutes the middle dimensions, reshapes to [lead.., last..].
Tensor Rearrange(const Tensor& t, int64_t lead, const IntList& middle, const IntList& order, const IntList& last) {
  IntList split(t.sizes().begin(), t.sizes().begin() + lead), joined = split;
  IntList dims(static_cast<size_t>(lead));
  std::iota(dims.begin(), dims.end(), 0);
  split.insert(split.end(), middle.begin(), middle.end());
  for (int64_t d : order) dims.push_back(lead + d);
  joined.insert(joined.end(), last.begin(), last.end());
  return lazy::Reshape(lazy::Permute(lazy::Reshape(t, split), dims), joined);
}

}  // namespace

// [.., C r^2, H, W] -> [.., C, H r, W r]
void PixelShuffle(OpKernelContext& c) {
  if (!ReadShuffle(c, "upscale_factor")) return;
  const Tensor& x = c.tensor(0);
  const int64_t r = c.int_arg(1), channels = x.size(-3), h = x.size(-2), w = x.size(-1);
  if (channels % (r * r) != 0) {
    return c.Fail(
        StrCat("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
               "upscale_factor, but input.size(-3)=",
               channels, " is not divisible by ", r * r));
  }
  const int64_t out = channels / (r * r);
  c.Return(Rearrange(x, x.dim() - 3, {out, r, r, h, w}, {0, 3, 1, 4, 2}, {out, h * r, w * r}));
}
// [.., C, H r, W r] -> [.., C r^2, H, W]
void PixelUnshuffle(OpKernelContext& c) {
  if (!ReadShuffle(c, "downscale_factor")) return;
  const Tensor& x = c.tensor(0);
  const int64_t r = c.int_arg(1), channels = x.size(-3), h = x.size(-2), w = x.size(-1);
  for (int64_t d = -2; d < 0; ++d) {
    if (x.size(d) % r == 0) continue;
    return c.Fail(StrCat("pixel_unshuffle expects ", d == -2 ? "height" : "width",
                         " to be divisible by downscale_factor, but input.size(", d, ")=", x.size(d),
                         " is not divisible by ", r));
  }
  c.Return(
      Rearrange(x, x.dim() - 3, {channels, h / r, r, w / r, r}, {0, 2, 4, 1, 3}, {channels * r * r, h / r, w / r}));
}
// Channels (dimension 1) as [groups, rest] are transposed.
void ChannelShuffle(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const int64_t groups = c.int_arg(1);
  if (x.dim() <= 2) {
    return c.Fail(
        StrCat("channel_shuffle expects input with > 2 dims, but got input with sizes ", ListToString(x.sizes())));
  }
  if (groups < 1) {
    return c.Fail(StrCat("Number of groups to divide channels in must be positive. Value of groups:", groups));
  }
  if (x.size(1) % groups != 0) {
    return c.Fail(StrCat("Number of channels must be divisible by groups. Got ", x.size(1), " channels and ", groups,
                         " groups."));
  }
  IntList rest(x.sizes().begin() + 2, x.sizes().end()), middle = {groups, x.size(1) / groups}, order = {1, 0};
  IntList last = {x.size(1)};
  for (size_t i = 0; i < rest.size(); ++i) order.push_back(static_cast<int64_t>(i) + 2);
  middle.insert(middle.end(), rest.begin(), rest.end());
  last.insert(last.end(), rest.begin(), rest.end());
  c.Return(Rearrange(x, 1, middle, order, last));
}

}  // namespace hlokit::lazy::kernel
