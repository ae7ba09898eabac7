// SPDX-License-Identifier: Apache-2.0
// Ops that create, fill and copy tensors.
#include <cmath>
#include <optional>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/grad_function.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/ops/host_values.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::kernel {
namespace {

// Returns a constant (or a parameter, unless the number is 0, 1 or -1) broadcast to the sizes.
Tensor Filled(OpKernelContext& c, Dims sizes, Scalar value, ElementType type) {
  DeviceState& device = *c.device();
  for (int64_t size : sizes) {
    if (size < 0) {
      c.Fail("negative size");
      return Tensor();
    }
  }
  if (!IsFloat(type) && !IsComplex(type) && !(std::abs(value.ToDouble()) < 0x1p64)) {
    c.Fail("the value cannot be converted to an integer without overflow");
    return Tensor();
  }
  const NodeOutput scalar = device.ScalarNode(value, type);
  if (sizes.empty()) return device.NewTensor(scalar);
  return Record(&device, Op::expand_node, {IValue(device.NewTensor(scalar)), IValue(sizes)})[0];
}

// Returns the given type, else float for a float, s64 for an int, pred for a bool.
ElementType TypeOrOwn(OpKernelContext& c, size_t i, Scalar s) { return c.dtype(i, TypeOf(s)); }

void Range(OpKernelContext& c, Scalar start, Scalar end, Scalar step, ElementType type) {
  const double span = (end.ToDouble() - start.ToDouble()) / step.ToDouble();
  if (step.ToDouble() == 0 || !std::isfinite(step.ToDouble()) || span < 0 || !(span < 1e12))
    return c.Fail("the range has the wrong sign or no end");
  if (!IsFloat(type)) {  // convert to the tensor's type
    start = start.ToInt();
    step = step.ToInt();
  }
  c.Return(Record(c.device(), Op::iota,
                  {IValue(static_cast<int64_t>(std::ceil(span))), IValue(start), IValue(step), IValue(type)}));
}

}  // namespace

void None(OpKernelContext& c) { c.Fail("cannot be called"); }

void Full(OpKernelContext& c) { c.Return(Filled(c, c.ints(0), c.scalar(1), TypeOrOwn(c, 2, c.scalar(1)))); }
void Zeros(OpKernelContext& c) { c.Return(Filled(c, c.ints(0), 0, c.dtype(1, kDefaultFloat))); }
void Ones(OpKernelContext& c) { c.Return(Filled(c, c.ints(0), 1, c.dtype(1, kDefaultFloat))); }
void ZerosLike(OpKernelContext& c) { c.Return(Filled(c, c.tensor(0).sizes(), 0, c.dtype(1, c.tensor(0).dtype()))); }
void OnesLike(OpKernelContext& c) { c.Return(Filled(c, c.tensor(0).sizes(), 1, c.dtype(1, c.tensor(0).dtype()))); }
void FullLike(OpKernelContext& c) {
  c.Return(Filled(c, c.tensor(0).sizes(), c.scalar(1), c.dtype(2, c.tensor(0).dtype())));
}
void NewZeros(OpKernelContext& c) { c.Return(Filled(c, c.ints(1), 0, c.dtype(2, c.tensor(0).dtype()))); }
void NewOnes(OpKernelContext& c) { c.Return(Filled(c, c.ints(1), 1, c.dtype(2, c.tensor(0).dtype()))); }
void NewFull(OpKernelContext& c) { c.Return(Filled(c, c.ints(1), c.scalar(2), c.dtype(3, c.tensor(0).dtype()))); }
void ScalarTensor(OpKernelContext& c) { c.Return(Filled(c, {}, c.scalar(0), c.dtype(1, kDefaultFloat))); }

namespace {

// Strides have no meaning for the values, but must fit the sizes.
bool StridesFit(OpKernelContext& c, Dims sizes, Dims strides) {
  if (sizes.size() == strides.size()) return true;
  c.Fail(StrCat("dimensionality of sizes (", sizes.size(), ") must match dimensionality of strides (", strides.size(),
                ")"));
  return false;
}

}  // namespace

void EmptyStrided(OpKernelContext& c) {
  if (StridesFit(c, c.ints(0), c.ints(1))) c.Return(Filled(c, c.ints(0), 0, c.dtype(2, kDefaultFloat)));
}
void NewEmptyStrided(OpKernelContext& c) {
  if (StridesFit(c, c.ints(1), c.ints(2))) c.Return(Filled(c, c.ints(1), 0, c.dtype(3, c.tensor(0).dtype())));
}
void SymNumel(OpKernelContext& c) { c.Return(Filled(c, {}, c.tensor(0).numel(), ElementType::kS64)); }

// ---- numbers that the host reads ----

void LocalScalarDense(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (t.numel() != 1) return c.Fail(StrCat("a Tensor with ", t.numel(), " elements cannot be converted to Scalar"));
  std::optional<Literal> value = FetchOnHost(c, t);
  if (!value) return;
  CountFallback(c);
  c.Return(lazy::Reshape(Upload(c, *std::move(value)), {}));
}
void IsNonzero(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (t.numel() == 0) return c.Fail("Boolean value of Tensor with no values is ambiguous");
  if (t.numel() != 1) return c.Fail("Boolean value of Tensor with more than one value is ambiguous");
  CountFallback(c);
  const std::optional<Literal> value = FetchOnHost(c, lazy::Ne(t, 0));
  if (value) c.Return(lazy::Reshape(Upload(c, *value), {}));
}

void FillScalar(OpKernelContext& c) { c.Return(Filled(c, c.tensor(0).sizes(), c.scalar(1), c.tensor(0).dtype())); }
void FillTensor(OpKernelContext& c) {
  c.Return(lazy::Expand(lazy::To(c.tensor(1), c.tensor(0).dtype()), Sizes(c.tensor(0))));
}
void FillInPlace(OpKernelContext& c) {
  const Tensor& self = c.tensor(0);
  WriteInPlace(self, c.op() == Op::fill_inplace_Scalar ? InvokeOp(Op::fill_Scalar, self, c.scalar(1))
                                                       : InvokeOp(Op::fill_Tensor, self, c.tensor(1)));
  c.Return(self);
}
void ZeroInPlace(OpKernelContext& c) {
  WriteInPlace(c.tensor(0), InvokeOp(Op::fill_Scalar, c.tensor(0), 0));
  c.Return(c.tensor(0));
}
void CopyFunctional(OpKernelContext& c) {
  c.Return(lazy::Expand(lazy::To(c.tensor(1), c.tensor(0).dtype()), Sizes(c.tensor(0))));
}
void CopyInPlace(OpKernelContext& c) {
  WriteInPlace(c.tensor(0), InvokeOp(Op::copy, c.tensor(0), c.tensor(1)));
  c.Return(c.tensor(0));
}

void Arange(OpKernelContext& c) {
  // end | start, end | start, end, step
  const size_t n = c.op() == Op::arange ? 1 : c.op() == Op::arange_start ? 2 : 3;
  const Scalar start = n == 1 ? Scalar(0) : c.scalar(0), end = c.scalar(n == 1 ? 0 : 1),
               step = n == 3 ? c.scalar(2) : Scalar(1);
  const bool is_float = start.is_float() || end.is_float() || step.is_float();
  Range(c, start, end, step, c.dtype(n, is_float ? kDefaultFloat : ElementType::kS64));
}
void ArangeOut(OpKernelContext& c) {
  Range(c, c.scalar(0), c.scalar(1), c.scalar(2), c.tensor(3).dtype());
  if (c.failed() || !c.outputs()[0].defined()) return;
  const Tensor result = c.outputs()[0];
  c.outputs().clear();
  WriteInPlace(c.tensor(3), result);
  c.Return(c.tensor(3));
}
void Eye(OpKernelContext& c) {
  const bool square = c.op() == Op::eye;
  c.Return(Record(c.device(), Op::eye_node,
                  {IValue(c.int_arg(0)), IValue(square ? c.int_arg(0) : c.int_arg(1)),
                   IValue(c.dtype(square ? 1 : 2, kDefaultFloat))}));
}
void Linspace(OpKernelContext& c) {
  const int64_t steps = c.int_arg(2);
  const double start = c.float_arg(0), end = c.float_arg(1);
  if (steps < 0) return c.Fail("number of steps must be non-negative");
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  c.Return(
      Record(c.device(), Op::iota, {IValue(steps), IValue(start), IValue(step), IValue(c.dtype(3, kDefaultFloat))}));
}

void ToCopy(OpKernelContext& c) {
  const ElementType type = c.dtype(1, c.tensor(0).dtype());
  c.Return(InvokeOp(Op::cast, c.tensor(0), type));
}
void Alias(OpKernelContext& c) { c.Return(Tensor(new TensorImpl(c.tensor(0).impl()->data))); }
void Detach(OpKernelContext& c) { c.Return(c.tensor(0).Detach()); }

}  // namespace hlokit::lazy::kernel
