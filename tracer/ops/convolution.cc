// SPDX-License-Identifier: Apache-2.0
// Convolutions. Those of torch.nn.functional call `aten::convolution`, which checks its arguments with torch's
// messages.
#include <algorithm>
#include <string>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

struct ConvolutionSizes {
  IntList stride, padding, dilation, output_padding;
};

// Reads one list of a convolution: a number for each spatial dimension, or one for all.
bool ReadConvolutionList(OpKernelContext& c, size_t i, int64_t spatial, int64_t absent, IntList* out) {
  const Dims given = c.ints(i);
  out->assign(given.begin(), given.end());
  if (out->empty()) out->assign(static_cast<size_t>(spatial), absent);
  if (out->size() == 1) out->assign(static_cast<size_t>(spatial), int64_t{(*out)[0]});
  const std::string& name = SchemaOf(c.op()).args[i].name;
  if (static_cast<int64_t>(out->size()) != spatial) {
    c.Fail(StrCat("expected ", name, " to be a single integer value or a list of ", spatial,
                  " values to match the convolution dimensions, but got ", name, "=", ListToString(given)));
    return false;
  }
  const auto [least, most] = std::minmax_element(out->begin(), out->end());
  if (spatial == 0 || *most <= kMaxExtent) {
    if (spatial == 0 || *least > 0 || (absent == 0 && *least == 0)) return true;
    c.Fail(name == "dilation" ? StrCat("dilation should be greater than zero, but got ", ListToString(*out))
                              : StrCat(absent == 0 ? "negative " : "non-positive ", name, " is not supported"));
  } else {
    c.Fail(StrCat(name, " is out of range: ", ListToString(given)));
  }
  return false;
}

// Returns "(2 x 3)".
std::string Extents(const IntList& sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) StrAppend(&text, i == 0 ? "" : " x ", sizes[i]);
  return text + ")";
}

// Checks channels, bias and spatial sizes. Input and weight have the same number of dimensions.
bool CheckConvolution(OpKernelContext& c, const ConvolutionSizes& s, bool transposed, int64_t groups) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1), &bias = c.tensor(2);
  const std::string wanted =
      StrCat(transposed ? "Given transposed=1, weight of size " : "Given weight of size ", ListToString(w.sizes()));
  if (w.size(0) < groups || w.size(0) % groups != 0) {
    c.Fail(StrCat("Given groups=", groups, ", expected weight to be ",
                  w.size(0) < groups ? "at least " : "divisible by ", groups,
                  " at dimension 0, but got weight of size ", ListToString(w.sizes()), " instead"));
    return false;
  }
  const int64_t channels = transposed ? w.size(0) : w.size(1) * groups,
                outputs = transposed ? w.size(1) * groups : w.size(0);
  if (x.size(1) != channels) {
    c.Fail(StrCat(transposed ? wanted : StrCat("Given groups=", groups, ", weight of size ", ListToString(w.sizes())),
                  ", expected input", ListToString(x.sizes()), " to have ", channels, " channels, but got ", x.size(1),
                  " channels instead"));
    return false;
  }
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != outputs)) {
    c.Fail(StrCat(wanted, ", expected bias to be 1-dimensional with ", outputs, " elements, but got bias of size ",
                  ListToString(bias.sizes()), " instead"));
    return false;
  }
  IntList in, out, kernel;
  for (size_t i = 0; i < s.stride.size(); ++i) {
    const int64_t d = static_cast<int64_t>(i) + 2;
    const int64_t reach = s.dilation[i] * (std::min(w.size(d), kMaxExtent) - 1) + 1;
    in.push_back(transposed ? x.size(d) : x.size(d) + 2 * s.padding[i]);
    kernel.push_back(reach);
    out.push_back(transposed ? (std::min(x.size(d), kMaxExtent) - 1) * s.stride[i] - 2 * s.padding[i] + reach +
                                   s.output_padding[i]
                             : 1);
    if (transposed && s.output_padding[i] >= s.stride[i] && s.output_padding[i] >= s.dilation[i]) {
      c.Fail(StrCat("output padding must be smaller than either stride or dilation, but got output_padding ",
                    Extents(s.output_padding), ", stride ", Extents(s.stride), ", dilation ", Extents(s.dilation)));
      return false;
    }
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (!transposed && in[i] < kernel[i]) {
      c.Fail(StrCat("Calculated padded input size per channel: ", Extents(in), ". Kernel size: ", Extents(kernel),
                    ". Kernel size can't be greater than actual input size"));
      return false;
    }
    if (out[i] < 1) {
      c.Fail(StrCat("Given input size per channel: ", Extents(in),
                    ". Calculated output size per channel: ", Extents(out), ". Output size is too small"));
      return false;
    }
  }
  return true;
}

// Calls aten::convolution on an input that may lack the batch dimension.
void Convolve(OpKernelContext& c, int64_t spatial, const Tensor& input, IValue stride, IValue padding, IValue dilation,
              bool transposed, IValue output_padding, int64_t groups) {
  Tensor x = input;
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2) {
    return c.Fail(StrCat("Expected ", spatial + 1, "D (unbatched) or ", spatial + 2, "D (batched) input to ", NameOf(c),
                         ", but got input of size: ", ListToString(x.sizes())));
  }
  const bool batched = x.dim() == spatial + 2;
  if (!batched) x = lazy::Unsqueeze(x, 0);
  const Tensor y = InvokeOp(Op::convolution, x, c.tensor(1), c.tensor(2), std::move(stride), std::move(padding),
                            std::move(dilation), transposed, std::move(output_padding), groups);
  c.Return(batched || !y.defined() ? y : lazy::Squeeze(y, 0));
}

int64_t SpatialOfConvolution(std::string_view name) {
  return name.find("1d") != std::string_view::npos ? 1 : name.find("2d") != std::string_view::npos ? 2 : 3;
}

}  // namespace

// input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups
void Convolution(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  const int64_t spatial = w.dim() - 2;
  if (spatial < 1) return c.Fail("weight should have at least three dimensions");
  const int64_t groups = c.int_arg(8);
  ConvolutionSizes s;
  if (!ReadConvolutionList(c, 3, spatial, 1, &s.stride) || !ReadConvolutionList(c, 4, spatial, 0, &s.padding) ||
      !ReadConvolutionList(c, 5, spatial, 1, &s.dilation) ||
      !ReadConvolutionList(c, 7, spatial, 0, &s.output_padding)) {
    return;
  }
  if (groups < 1) return c.Fail("non-positive groups is not supported");
  if (x.dim() != w.dim()) {
    return c.Fail(StrCat("Expected ", w.dim(), "-dimensional input for ", w.dim(), "-dimensional weight ",
                         ListToString(w.sizes()), ", but got ", x.dim(), "-dimensional input of size ",
                         ListToString(x.sizes()), " instead"));
  }
  for (size_t i = 1; i < 3; ++i) {
    if (!c.has(i) || c.tensor(i).dtype() == x.dtype()) continue;
    return c.Fail(StrCat("expected scalar type ", TypeName(x.dtype()), " but found ", TypeName(c.tensor(i).dtype())));
  }
  if (CheckConvolution(c, s, c.bool_arg(6), groups)) kernel::Record(c);
}

// The same, then flags of libraries.
void ConvolutionWithFlags(OpKernelContext& c) {
  Args args(c.args().begin(), c.args().begin() + 9);
  c.Return(Dispatch(Op::convolution, std::move(args)));
}

// Of convolutions that are not transposed.
IValue NoOutputPadding() { return IntList{0}; }

// input, weight, bias?, stride, padding, dilation, groups
void Conv(OpKernelContext& c) {
  Convolve(c, SpatialOfConvolution(NameOf(c)), c.tensor(0), c.args()[3], c.args()[4], c.args()[5], false,
           NoOutputPadding(), c.int_arg(6));
}
// input, weight, bias?, stride, padding ("valid" or "same"), dilation, groups
void ConvPaddingMode(OpKernelContext& c) {
  const std::string_view mode = c.str(4);
  const int64_t spatial = SpatialOfConvolution(NameOf(c));
  if (mode == "valid") {
    return Convolve(c, spatial, c.tensor(0), c.args()[3], IntList{0}, c.args()[5], false, NoOutputPadding(),
                    c.int_arg(6));
  }
  if (mode != "same") return c.Fail(StrCat("Invalid padding string: '", mode, "'"));
  const Tensor& w = c.tensor(1);
  IntList dilation;
  if (w.dim() != spatial + 2) return c.Fail(StrCat("weight should have ", spatial + 2, " dimensions"));
  if (!ReadExtents(c, 5, spatial, 1, {}, &dilation)) return;
  for (int64_t stride : c.ints(3)) {
    if (stride != 1) return c.Fail("padding='same' is not supported for strided convolutions");
  }
  // Half on both sides; where the total is odd, one element more at the end.
  IntList padding, more;
  bool uneven = false;
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t total = dilation[i] * (std::min(w.size(i + 2), kMaxExtent) - 1);
    padding.push_back(total / 2);
    more.insert(more.begin(), {0, total % 2});
    uneven |= total % 2 != 0;
  }
  const Tensor x = uneven ? InvokeOp(Op::constant_pad_nd, c.tensor(0), more, 0) : c.tensor(0);
  Convolve(c, spatial, x, IntList{1}, padding, dilation, false, IntList{0}, c.int_arg(6));
}
// input, weight, bias?, stride, padding, output_padding, groups, dilation
void ConvTranspose(OpKernelContext& c) {
  Convolve(c, SpatialOfConvolution(NameOf(c)), c.tensor(0), c.args()[3], c.args()[4], c.args()[7], true, c.args()[5],
           c.int_arg(6));
}

}  // namespace hlokit::lazy::kernel
