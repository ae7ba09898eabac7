// SPDX-License-Identifier: Apache-2.0
// Fake quantization: rounding to the values of a quantized type. The gradient passes where a value is in its range.
#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

bool CheckRange(OpKernelContext& c, int64_t low, int64_t high) {
  if (low > high) {
    c.Fail("`quant_min` should be less than or equal to `quant_max`.");
    return false;
  }
  return RequireFloat(c, 0);
}

// Returns (clamp(round(x / scale) + zero_point) - zero_point) scale, and where the value before the clamp is in range.
Outputs FakeQuantize(const Tensor& x, const Tensor& inverse_scale, const Tensor& scale, const Tensor& zero_point,
                     int64_t low, int64_t high) {
  const Tensor q = InvokeOp(Op::round, x.Detach() * inverse_scale) + zero_point;
  const Tensor inside = lazy::And(lazy::Ge(q, low), lazy::Le(q, high));
  const Tensor value = ((InvokeOp(Op::clamp, q, low, high) - zero_point) * scale).to(x.dtype());
  // Zeros with the derivative of x, where it passes.
  const Tensor passed = lazy::Where(inside, x, 0);
  return {value.Detach() + (passed - passed.Detach()), inside};
}

// Scale and zero point as tensors that broadcast with x.
Outputs FakeQuantizeBy(OpKernelContext& c, const IntList& sizes, size_t low_arg) {
  const ElementType type = c.tensor(0).dtype();
  const Tensor scale = lazy::Reshape(c.tensor(1).Detach(), sizes).to(ElementType::kF32);
  const Tensor zero = lazy::Reshape(c.tensor(2).Detach(), sizes).to(type);
  return FakeQuantize(c.tensor(0), lazy::Reciprocal(scale).to(type), scale.to(type), zero, c.int_arg(low_arg),
                      c.int_arg(low_arg + 1));
}

}  // namespace

// self, scale, zero_point, quant_min, quant_max[ -> output, mask]
void FakeQuantizePerTensor(OpKernelContext& c) {
  const int64_t zero = c.int_arg(2), low = c.int_arg(3), high = c.int_arg(4);
  if (!CheckRange(c, low, high)) return;
  if (zero < low || zero > high) return c.Fail("`zero_point` must be between `quant_min` and `quant_max`.");
  const ElementType type = c.tensor(0).dtype();
  // In f32, as torch computes them.
  const float scale = static_cast<float>(c.float_arg(1)), inverse = 1.0f / scale;
  const auto number = [&](double value) { return ConstantTensor(c, {}, {value}, type); };
  Outputs out = FakeQuantize(c.tensor(0), number(inverse), number(scale), number(static_cast<double>(zero)), low, high);
  if (c.op() != Op::fake_quantize_per_tensor_affine_cachemask) out.resize(1);
  c.Return(std::move(out));
}
void FakeQuantizePerTensorTensors(OpKernelContext& c) {
  if (!CheckRange(c, c.int_arg(3), c.int_arg(4))) return;
  if (c.tensor(1).numel() != 1 || c.tensor(2).numel() != 1) return c.Fail("scale and zero_point must have one element");
  c.Return(FakeQuantizeBy(c, {}, 3)[0]);
}
// self, scale, zero_point, axis, quant_min, quant_max[ -> output, mask]
void FakeQuantizePerChannel(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &scale = c.tensor(1), &zero = c.tensor(2);
  if (!CheckRange(c, c.int_arg(4), c.int_arg(5))) return;
  if (scale.dtype() != ElementType::kF32) {
    return c.Fail(StrCat("Scale must be Float, found ", TypeName(scale.dtype())));
  }
  if (zero.dtype() != ElementType::kS32 && zero.dtype() != ElementType::kF32 && zero.dtype() != ElementType::kF16) {
    return c.Fail(StrCat("Zero-point must be Int32, Float or Half, found ", TypeName(zero.dtype())));
  }
  const int64_t axis = c.Dim(c.int_arg(3), x.dim());
  if (c.failed()) return;
  if (scale.dim() != 1 || zero.dim() != 1) return c.Fail("scale and zero point should be 1-D tensors");
  if (scale.numel() != zero.numel()) {
    return c.Fail("scale and zero-point need to have the same dimensions");
  }
  if (x.dim() == 0 || scale.numel() != x.size(axis)) {
    return c.Fail("dimensions of scale and zero-point are not consistent with input tensor");
  }
  IntList sizes(static_cast<size_t>(x.dim()), 1);
  sizes[static_cast<size_t>(axis)] = x.size(axis);
  Outputs out = FakeQuantizeBy(c, sizes, 4);
  if (c.op() != Op::fake_quantize_per_channel_affine_cachemask) out.resize(1);
  c.Return(std::move(out));
}

}  // namespace hlokit::lazy::kernel
