// SPDX-License-Identifier: Apache-2.0
// Ops that make tensors, fill them, copy them.
#include <cmath>

#include "tracer/dispatch/call.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/grad_function.h"
#include "tracer/graph/promotion.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::kernel {
namespace {

// A constant (or a parameter, when the number is none of 0, 1, -1) broadcast to the sizes.
Tensor Filled(Call& c, Dims sizes, Scalar value, ElementType type) {
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
  const IrRef scalar = device.ScalarNode(value, type);
  if (sizes.empty()) return device.NewTensor(scalar);
  return Record(&device, Op::expand_node, {Value(device.NewTensor(scalar)), Value(sizes)})[0];
}

// float for a float, s64 for an int, pred for a bool.
ElementType TypeOrOwn(Call& c, size_t i, Scalar s) { return c.dtype(i, TypeOf(s)); }

void Range(Call& c, Scalar start, Scalar end, Scalar step, ElementType type) {
  const double span = (end.ToDouble() - start.ToDouble()) / step.ToDouble();
  if (step.ToDouble() == 0 || !std::isfinite(step.ToDouble()) || span < 0 || !(span < 1e12))
    return c.Fail("the range has the wrong sign or no end");
  if (!IsFloat(type)) {  // numbers of the type, whatever was given
    start = start.ToInt();
    step = step.ToInt();
  }
  c.Return(Record(c.device(), Op::iota,
                  {Value(static_cast<int64_t>(std::ceil(span))), Value(start), Value(step), Value(type)}));
}

}  // namespace

void None(Call& c) { c.Fail("cannot be called"); }

void Full(Call& c) { c.Return(Filled(c, c.ints(0), c.s(1), TypeOrOwn(c, 2, c.s(1)))); }
void Zeros(Call& c) { c.Return(Filled(c, c.ints(0), 0, c.dtype(1, kDefaultFloat))); }
void Ones(Call& c) { c.Return(Filled(c, c.ints(0), 1, c.dtype(1, kDefaultFloat))); }
void ZerosLike(Call& c) { c.Return(Filled(c, c.t(0).sizes(), 0, c.dtype(1, c.t(0).dtype()))); }
void OnesLike(Call& c) { c.Return(Filled(c, c.t(0).sizes(), 1, c.dtype(1, c.t(0).dtype()))); }
void FullLike(Call& c) { c.Return(Filled(c, c.t(0).sizes(), c.s(1), c.dtype(2, c.t(0).dtype()))); }
void NewZeros(Call& c) { c.Return(Filled(c, c.ints(1), 0, c.dtype(2, c.t(0).dtype()))); }
void ScalarTensor(Call& c) { c.Return(Filled(c, {}, c.s(0), c.dtype(1, kDefaultFloat))); }
void FillScalar(Call& c) { c.Return(Filled(c, c.t(0).sizes(), c.s(1), c.t(0).dtype())); }
void FillTensor(Call& c) { c.Return(lazy::Expand(lazy::To(c.t(1), c.t(0).dtype()), Sizes(c.t(0)))); }
void FillInPlace(Call& c) {
  const Tensor& self = c.t(0);
  WriteInPlace(self, c.op() == Op::fill_inplace_Scalar ? Run(Op::fill_Scalar, self, c.s(1))
                                                       : Run(Op::fill_Tensor, self, c.t(1)));
  c.Return(self);
}
void ZeroInPlace(Call& c) {
  WriteInPlace(c.t(0), Run(Op::fill_Scalar, c.t(0), 0));
  c.Return(c.t(0));
}
void CopyFunctional(Call& c) { c.Return(lazy::Expand(lazy::To(c.t(1), c.t(0).dtype()), Sizes(c.t(0)))); }
void CopyInPlace(Call& c) {
  WriteInPlace(c.t(0), lazy::Expand(lazy::To(c.t(1), c.t(0).dtype()), Sizes(c.t(0))));
  c.Return(c.t(0));
}

void Arange(Call& c) {
  // end | start, end | start, end, step
  const size_t n = c.op() == Op::arange ? 1 : c.op() == Op::arange_start ? 2 : 3;
  const Scalar start = n == 1 ? Scalar(0) : c.s(0), end = c.s(n == 1 ? 0 : 1), step = n == 3 ? c.s(2) : Scalar(1);
  const bool is_float = start.is_float() || end.is_float() || step.is_float();
  Range(c, start, end, step, c.dtype(n, is_float ? kDefaultFloat : ElementType::kS64));
}
void ArangeOut(Call& c) {
  Range(c, c.s(0), c.s(1), c.s(2), c.t(3).dtype());
  if (c.failed() || !c.outputs()[0].defined()) return;
  const Tensor result = c.outputs()[0];
  c.outputs().clear();
  WriteInPlace(c.t(3), result);
  c.Return(c.t(3));
}
void Eye(Call& c) {
  const bool square = c.op() == Op::eye;
  c.Return(Record(c.device(), Op::eye_node,
                  {Value(c.i(0)), Value(square ? c.i(0) : c.i(1)), Value(c.dtype(square ? 1 : 2, kDefaultFloat))}));
}
void Linspace(Call& c) {
  const int64_t steps = c.i(2);
  const double start = c.d(0), end = c.d(1);
  if (steps < 0) return c.Fail("number of steps must be non-negative");
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  c.Return(Record(c.device(), Op::iota, {Value(steps), Value(start), Value(step), Value(c.dtype(3, kDefaultFloat))}));
}

void ToCopy(Call& c) {
  const ElementType type = c.dtype(1, c.t(0).dtype());
  c.Return(Run(Op::cast, c.t(0), type));
}
void Alias(Call& c) { c.Return(Tensor(new TensorImpl(c.t(0).impl()->data))); }
void Detach(Call& c) { c.Return(c.t(0).Detach()); }

}  // namespace hlokit::lazy::kernel
