// SPDX-License-Identifier: Apache-2.0
#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::derivative {

// q, k, v, causal
void SplashAttention(BackwardContext& c) {
  const Outputs gradients = InvokeOpMultiOutput(Op::splash_attention_backward, c.in(0), c.in(1), c.in(2), c.out(),
                                                c.grad_output(), c.bool_arg(3));
  for (size_t i = 0; i < 3; ++i) c.set(i, gradients[i]);
}

}  // namespace hlokit::lazy::derivative
