// SPDX-License-Identifier: Apache-2.0
// Activations composed of other ops.
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {

void LogSigmoid(OpKernelContext& c) {
  if (RequireFloat(c, 0)) c.Return(InvokeOp(Op::log_sigmoid_forward, c.tensor(0)));
}
// self, dim, dtype?
void Softmin(OpKernelContext& c) {
  c.Return(InvokeOp(Op::softmax_int, lazy::Neg(c.tensor(0)), c.args()[1], c.args()[2]));
}
void Softshrink(OpKernelContext& c) {
  if (!RequireFloat(c, 0)) return;
  const Tensor& x = c.tensor(0);
  const double lambd = c.float_arg(1);
  if (!(lambd >= 0)) {
    return c.Fail(StrCat("lambda must be greater or equal to 0, but found to be ", FormatDouble(lambd, 6), "."));
  }
  const Tensor below = lazy::Where(lazy::Lt(x, -lambd), lazy::Add(x, lambd), 0);
  c.Return(lazy::Where(lazy::Gt(x, lambd), lazy::Sub(x, lambd), below));
}
void Hardshrink(OpKernelContext& c) {
  if (!RequireFloat(c, 0)) return;
  const Tensor& x = c.tensor(0);
  const double lambd = c.float_arg(1);
  // NaN passes.
  c.Return(lazy::MaskedFill(x, lazy::And(lazy::Ge(x, -lambd), lazy::Le(x, lambd)), 0));
}
// grad_output, self, lambd
void ShrinkBackward(OpKernelContext& c) {
  if (!RequireFloat(c, 1)) return;
  const Tensor& x = c.tensor(1);
  const double lambd = c.float_arg(2);
  c.Return(lazy::MaskedFill(c.tensor(0), lazy::And(lazy::Ge(x, -lambd), lazy::Le(x, lambd)), 0));
}
void Softsign(OpKernelContext& c) { c.Return(c.tensor(0) / lazy::Add(lazy::Abs(c.tensor(0)), 1)); }
void Tanhshrink(OpKernelContext& c) { c.Return(c.tensor(0) - lazy::Tanh(c.tensor(0))); }
void Swish(OpKernelContext& c) { c.Return(lazy::Silu(c.tensor(0))); }

}  // namespace hlokit::lazy::kernel
