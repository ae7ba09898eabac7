// SPDX-License-Identifier: Apache-2.0
// Derivatives of determinants, solutions of linear systems, eigenvalues and pseudoinverses.
#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::derivative {
namespace {

Tensor Adjoint(const Tensor& t) { return Transpose(t, -2, -1); }
Tensor Matrices(const Tensor& t) { return Unsqueeze(Unsqueeze(t, -1), -1); }
// Returns the matrices with the given diagonals.
Tensor WithDiagonal(const Tensor& t) { return InvokeOp(Op::diag_embed, t); }
// Returns 1 / (x_j - x_i) at (i, j), 0 on the diagonal.
Tensor InverseDifferences(const Tensor& x) {
  const Tensor difference = Unsqueeze(x, -2) - Unsqueeze(x, -1);
  const Tensor diagonal = InvokeOp(Op::eye, x.size(-1), ElementType::kPred);
  return MaskedFill(Reciprocal(MaskedFill(difference, diagonal, 1)), diagonal, 0);
}

}  // namespace

void LinalgDet(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  c.set(0, Matrices(c.grad_output() * c.out()) * Adjoint(InvokeOp(Op::linalg_inv, c.in(0))));
}
void LinalgSlogdet(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  // The sign is constant where it has a derivative.
  if (!c.grad_output(1).defined()) return c.set(0, ZerosLike(c.in(0)));
  c.set(0, Matrices(c.grad_output(1)) * Adjoint(InvokeOp(Op::linalg_inv, c.in(0))));
}
void LinearSolve(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  const Tensor of_b = InvokeOp(Op::linear_solve, Adjoint(c.in(0)), c.grad_output());
  if (c.needs(0)) c.set(0, -Matmul(of_b, Adjoint(c.out())));
  if (c.needs(1)) c.set(1, of_b);
}
void CholeskySolve(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  // As in torch, the other triangle of the factor has a gradient too.
  const bool upper = c.bool_arg(2);
  const Tensor factor = c.in(1), of_b = InvokeOp(Op::cholesky_solve, c.grad_output(), factor, upper);
  c.set(0, of_b);
  if (!c.needs(1)) return;
  const Tensor product = Matmul(of_b, Adjoint(c.out())), both = product + Adjoint(product);
  c.set(1, -(upper ? Matmul(factor, both) : Matmul(both, factor)));
}
void LinalgEigh(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  const Tensor values = c.out(0), v = c.out(1);
  Tensor inner = WithDiagonal(c.grad_output_or_zeros(0));
  if (c.grad_output(1).defined()) {
    inner = inner + Matmul(Adjoint(v), c.grad_output(1)) * InverseDifferences(values);
  }
  c.set(0, Matmul(v, Matmul(inner, Adjoint(v))));
}
// Golub and Pereyra's formula for the pseudoinverse P of A, of constant rank.
void Pinverse(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  const Tensor a = c.in(0), p = c.out(), pt = Adjoint(p), gt = Adjoint(c.grad_output());
  if (a.size(-2) <= a.size(-1)) {
    const Tensor k = Matmul(gt, p), kpt = Matmul(k, pt);
    return c.set(0, kpt - Adjoint(Matmul(p, k)) - Matmul(Matmul(a, p), kpt) + Matmul(Matmul(pt, p), gt - Matmul(k, a)));
  }
  const Tensor k = Matmul(p, gt), ptk = Matmul(pt, k);
  c.set(0, ptk - Adjoint(Matmul(k, p)) + Matmul(Matmul(gt - Matmul(a, k), p), pt) - Matmul(Matmul(ptk, p), a));
}

}  // namespace hlokit::lazy::derivative
