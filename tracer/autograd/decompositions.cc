// SPDX-License-Identifier: Apache-2.0
// Derivatives of determinants, solutions of linear systems, eigenvalues and singular values.
#include <algorithm>

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
  c.set(0, Matrices(c.grad_output() * c.out()) * Adjoint(InvokeOp(Op::linalg_inv, c.in(0))));
}
void LinalgSlogdet(BackwardContext& c) {
  // The sign is constant where it has a derivative.
  if (!c.grad_output(1).defined()) return c.set(0, ZerosLike(c.in(0)));
  c.set(0, Matrices(c.grad_output(1)) * Adjoint(InvokeOp(Op::linalg_inv, c.in(0))));
}
void LinearSolve(BackwardContext& c) {
  const Tensor of_b = InvokeOp(Op::linear_solve, Adjoint(c.in(0)), c.grad_output());
  if (c.needs(0)) c.set(0, -Matmul(of_b, Adjoint(c.out())));
  if (c.needs(1)) c.set(1, of_b);
}
void CholeskySolve(BackwardContext& c) {
  // As in torch, the other triangle of the factor has a gradient too.
  const bool upper = c.bool_arg(2);
  const Tensor factor = c.in(1), of_b = InvokeOp(Op::cholesky_solve, c.grad_output(), factor, upper);
  c.set(0, of_b);
  if (!c.needs(1)) return;
  const Tensor product = Matmul(of_b, Adjoint(c.out())), both = product + Adjoint(product);
  c.set(1, -(upper ? Matmul(factor, both) : Matmul(both, factor)));
}
void LinalgEigh(BackwardContext& c) {
  const Tensor values = c.out(0), v = c.out(1);
  Tensor inner = WithDiagonal(c.grad_output_or_zeros(0));
  if (c.grad_output(1).defined()) {
    inner = inner + Matmul(Adjoint(v), c.grad_output(1)) * InverseDifferences(values);
  }
  c.set(0, Matmul(v, Matmul(inner, Adjoint(v))));
}
// U, S and V (svd) or its transpose (linalg_svd), without columns beyond the number of singular values.
void Svd(BackwardContext& c) {
  const Tensor u = c.out(0), s = c.out(1);
  const bool transposed = c.op() == Op::linalg_svd;
  const Tensor v = transposed ? Adjoint(c.out(2)) : c.out(2);
  const Tensor gu = c.grad_output(0);
  const Tensor gv = c.grad_output(2).defined() && transposed ? Adjoint(c.grad_output(2)) : c.grad_output(2);
  const int64_t k = s.size(-1);
  if ((gu.defined() || gv.defined()) && (u.size(-1) != k || v.size(-1) != k)) {
    return c.Fail(absl::UnimplementedError("the singular vectors of a full decomposition are not differentiable"));
  }
  const Tensor row = Unsqueeze(s, -2), column = Unsqueeze(s, -1);
  const Tensor left = u.size(-1) == k ? u : Slice(u, -1, 0, k), right = v.size(-1) == k ? v : Slice(v, -1, 0, k);
  const Tensor inverse = InverseDifferences(s * s);
  const auto skew = [](const Tensor& x) { return x - Adjoint(x); };
  Tensor inner = WithDiagonal(c.grad_output_or_zeros(1));
  if (gu.defined()) inner = inner + skew(Matmul(Adjoint(left), gu)) * inverse * row;
  if (gv.defined()) inner = inner + column * (skew(Matmul(Adjoint(right), gv)) * inverse);
  Tensor g = Matmul(left, Matmul(inner, Adjoint(right)));
  // The parts of the gradients outside of the spaces that the vectors span.
  if (gu.defined() && u.size(-2) > k) {
    g = g + Matmul((gu - Matmul(left, Matmul(Adjoint(left), gu))) / row, Adjoint(right));
  }
  if (gv.defined() && v.size(-2) > k) {
    g = g + Matmul(left, Adjoint((gv - Matmul(right, Matmul(Adjoint(right), gv))) / row));
  }
  c.set(0, g);
}
// Golub and Pereyra's formula for the pseudoinverse P of A, of constant rank.
void Pinverse(BackwardContext& c) {
  const Tensor a = c.in(0), p = c.out(), pt = Adjoint(p), gt = Adjoint(c.grad_output());
  if (a.size(-2) <= a.size(-1)) {
    const Tensor k = Matmul(gt, p), kpt = Matmul(k, pt);
    return c.set(0, kpt - Adjoint(Matmul(p, k)) - Matmul(Matmul(a, p), kpt) + Matmul(Matmul(pt, p), gt - Matmul(k, a)));
  }
  const Tensor k = Matmul(p, gt), ptk = Matmul(pt, k);
  c.set(0, ptk - Adjoint(Matmul(k, p)) + Matmul(Matmul(gt - Matmul(a, k), p), pt) - Matmul(Matmul(ptk, p), a));
}

}  // namespace hlokit::lazy::derivative
