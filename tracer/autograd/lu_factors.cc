// SPDX-License-Identifier: Apache-2.0
// Derivative of the LU factorization with pivoting, A = P L U.
#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::derivative {

void LuNode(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  if (c.shape(0).dim(c.shape(0).rank() - 1) != c.shape(0).dim(c.shape(0).rank() - 2)) {
    return c.Fail(absl::UnimplementedError("the derivative of the LU factors of matrices that are not square"));
  }
  if (!c.grad_output(0).defined()) return c.set(0, ZerosLike(c.in(0)));
  // d A = P (dL U + L dU): L' dA' U' has the gradient of L below the diagonal and that of U from there up.
  const Tensor lu = c.out(0), g = c.grad_output(0), identity = InvokeOp(Op::eye, lu.size(-1), lu.dtype());
  const auto transposed = [](const Tensor& t) { return Transpose(t, -2, -1); };
  const auto below = [](const Tensor& t) { return InvokeOp(Op::tril, t, -1); };
  const auto above = [](const Tensor& t) { return InvokeOp(Op::triu, t); };
  const Tensor lower = below(lu) + identity, upper = above(lu);
  const Tensor inner = below(Matmul(transposed(lower), below(g))) + above(Matmul(above(g), transposed(upper)));
  const Tensor left = InvokeOp(Op::linalg_solve_triangular, transposed(lower), inner, true, true, true);
  const Tensor product = InvokeOp(Op::linalg_solve_triangular, transposed(upper), left, false, false, false);
  // Row i of the product belongs to row permutation[i] of A.
  const Tensor order = Unsqueeze(c.out(2), -2), rows = Unsqueeze(Arange(lu.size(-1), ElementType::kS32), -1);
  c.set(0, Matmul(To(Eq(order, rows), lu.dtype()), product));
}

}  // namespace hlokit::lazy::derivative
