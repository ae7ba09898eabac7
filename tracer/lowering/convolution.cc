// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients. Activations are [N, C, spatial...], kernels [O, C/groups, spatial...].
#include <algorithm>
#include <limits>
#include <string_view>

#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

struct ConvPlan {
  DimVector stride, padding, dilation, output_padding;
  int64_t groups = 1;
};

AttrValue DimLabels(Builder& b, int64_t spatial, int64_t input_batch, int64_t input_feature, int64_t kernel_input,
                    int64_t kernel_output, int64_t output_batch, int64_t output_feature) {
  DimVector encoded = {spatial, input_batch, input_feature};
  const auto add_spatial = [&] {
    for (int64_t i = 0; i < spatial; ++i) encoded.push_back(i + 2);
  };
  add_spatial();
  encoded.insert(encoded.end(), {kernel_input, kernel_output});
  add_spatial();
  encoded.insert(encoded.end(), {output_batch, output_feature});
  add_spatial();
  return b.List(Attr::kDimLabels, encoded);
}

XlaOp Emit(XlaOp lhs, XlaOp rhs, const Window& w, AttrValue labels, int64_t feature_groups, int64_t batch_groups) {
  if (!lhs.ok() || !rhs.ok()) return lhs.ok() ? rhs : lhs;
  Builder& b = lhs.emitter().builder();
  return lhs.emitter().Take(b.Add(Opcode::kConvolution, {lhs.id(), rhs.id()},
                                  {WindowAttr(b, w), labels, b.Int(Attr::kFeatureGroupCount, feature_groups),
                                   b.Int(Attr::kBatchGroupCount, batch_groups)}));
}

DimVector Spatial(XlaOp x) {
  const DimVector dims = x.dims();
  return dims.size() < 2 ? DimVector() : DimVector(dims.begin() + 2, dims.end());
}

XlaOp Forward(XlaOp x, XlaOp w, const ConvPlan& p) {
  const int64_t spatial = x.rank() - 2;
  const Window window{Spatial(w), p.stride, p.padding, p.padding, {}, p.dilation};
  return Emit(x, w, window, DimLabels(x.emitter().builder(), spatial, 0, 1, 1, 0, 0, 1), p.groups, 1);
}

// Returns the gradient of Forward's input: a convolution of `g`, dilated by the strides, with the reversed kernel whose
// features are swapped within each group.
XlaOp InputGradient(XlaOp g, XlaOp w, const ConvPlan& p, Dims input_spatial) {
  const int64_t spatial = g.rank() - 2;
  const DimVector kernel = Spatial(w), out = Spatial(g);
  const int64_t o = w.size(0), c = w.size(1);
  DimVector split = {p.groups, o / p.groups, c};
  split.insert(split.end(), kernel.begin(), kernel.end());
  DimVector swap = {0, 2, 1};
  DimVector joined = {p.groups * c, o / p.groups};
  DimVector reversed;
  for (int64_t i = 0; i < spatial; ++i) {
    swap.push_back(i + 3);
    joined.push_back(kernel[i]);
    reversed.push_back(i + 2);
  }
  const XlaOp flipped = Reverse(Reshape(Transpose(Reshape(w, split), swap), joined), reversed);
  Window window{kernel, {}, {}, {}, p.stride, p.dilation};
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t reach = p.dilation[i] * (kernel[i] - 1);
    const int64_t spread = (out[i] - 1) * p.stride[i] + 1;
    window.low.push_back(reach - p.padding[i]);
    window.high.push_back(input_spatial[i] - spread - window.low[i] + reach);
  }
  return Emit(g, flipped, window, DimLabels(g.emitter().builder(), spatial, 0, 1, 1, 0, 0, 1), p.groups, 1);
}

// Returns the first elements of each spatial dimension, as many as in `spatial`.
XlaOp FirstElements(XlaOp x, Dims spatial) {
  DimVector limits = x.dims();
  std::copy(spatial.begin(), spatial.end(), limits.begin() + 2);
  return limits == x.dims() ? x : Slice(x, DimVector(limits.size(), 0), limits);
}

// Returns the gradient of Forward's kernel: the input convolved with the gradient, with batch and features exchanged.
XlaOp KernelGradient(XlaOp x, XlaOp g, const ConvPlan& p, Dims kernel) {
  const int64_t spatial = x.rank() - 2;
  const DimVector in = Spatial(x), out = Spatial(g);
  Window window{out, p.dilation, p.padding, {}, {}, p.stride};
  for (int64_t i = 0; i < spatial; ++i) {
    window.high.push_back((kernel[i] - 1) * p.dilation[i] + (out[i] - 1) * p.stride[i] + 1 - in[i] - p.padding[i]);
  }
  return Emit(x, g, window, DimLabels(x.emitter().builder(), spatial, 1, 0, 0, 1, 1, 0), 1, p.groups);
}

// Reads stride, padding, dilation, transposed, output_padding, groups from `first` on; one number applies to all
// dimensions.
bool ReadPlan(LoweringContext& n, size_t first, int64_t spatial, ConvPlan* plan) {
  const auto read = [&](size_t i, DimVector* to, int64_t absent) {
    const Dims given = n.ints(i);
    to->assign(given.begin(), given.end());
    if (to->empty()) to->assign(spatial, absent);
    if (to->size() == 1) to->assign(spatial, int64_t{(*to)[0]});
    return static_cast<int64_t>(to->size()) == spatial;
  };
  if (spatial < 1 || !read(first, &plan->stride, 1) || !read(first + 1, &plan->padding, 0) ||
      !read(first + 2, &plan->dilation, 1) || !read(first + 4, &plan->output_padding, 0)) {
    n.emitter().Fail("stride, padding and dilation need one number for each spatial dimension");
    return false;
  }
  const auto check = [&](const DimVector& numbers, int64_t least, std::string_view message) {
    for (const int64_t number : numbers) {
      if (number >= least && number <= std::numeric_limits<int32_t>::max()) continue;
      n.emitter().Fail(message);
      return false;
    }
    return true;
  };
  if (!check(plan->stride, 1, "non-positive stride is not supported") ||
      !check(plan->padding, 0, "negative padding is not supported") ||
      !check(plan->dilation, 1, "dilation should be greater than zero") ||
      !check(plan->output_padding, 0, "negative output_padding is not supported")) {
    return false;
  }
  plan->groups = n.int_arg(first + 5);
  if (plan->groups < 1) {
    n.emitter().Fail("groups must be positive");
    return false;
  }
  return true;
}

}  // namespace

void Convolution(LoweringContext& n) {
  const XlaOp x = n.in(0), w = n.in(1);
  ConvPlan plan;
  if (x.rank() != w.rank() || !ReadPlan(n, 3, x.rank() - 2, &plan)) {
    n.emitter().Fail("input and weight need the same number of dimensions");
    return;
  }
  XlaOp y;
  if (n.bool_arg(6)) {
    DimVector out = Spatial(x);
    const DimVector kernel = Spatial(w);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = (out[i] - 1) * plan.stride[i] - 2 * plan.padding[i] + plan.dilation[i] * (kernel[i] - 1) +
               plan.output_padding[i] + 1;
    }
    y = InputGradient(x, w, plan, out);
  } else {
    y = Forward(x, w, plan);
  }
  if (n.has(2)) y = y + BroadcastInDim(n.in(2), y.dims(), {1});
  n.Return(y);
}

void ConvolutionBackward(LoweringContext& n) {
  const XlaOp g = n.in(0), x = n.in(1), w = n.in(2);
  ConvPlan plan;
  if (x.rank() != w.rank() || x.rank() != g.rank()) {
    n.emitter().Fail("grad_output, input and weight need the same number of dimensions");
    return;
  }
  if (!ReadPlan(n, 4, x.rank() - 2, &plan)) return;
  const bool transposed = n.bool_arg(7);
  const Dims mask = n.ints(10);
  const XlaOp nothing = Constant(n.emitter(), g.type(), 0);
  XlaOp dx = nothing, dw = nothing, db = nothing;
  const DimVector kernel = Spatial(w);
  if (mask.size() > 0 && mask[0] != 0) {
    if (transposed) {
      // An output padding of a whole stride or more gives positions that no element of the input reaches.
      dx = FirstElements(Forward(g, w, plan), Spatial(x));
    } else {
      dx = InputGradient(g, w, plan, Spatial(x));
    }
  }
  if (mask.size() > 1 && mask[1] != 0) {
    dw = transposed ? KernelGradient(g, x, plan, kernel) : KernelGradient(x, g, plan, kernel);
  }
  if (mask.size() > 2 && mask[2] != 0) {
    DimVector dims = {0};
    for (int64_t i = 2; i < g.rank(); ++i) dims.push_back(i);
    db = Reduce(Opcode::kAdd, g, dims);
  }
  n.Return(dx, dw, db);
}

}  // namespace hlokit::lazy::lower
