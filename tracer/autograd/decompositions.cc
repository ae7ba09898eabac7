// SPDX-License-Identifier: Apache-2.0
// Derivatives of triangular systems and decompositions.
#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy::derivative {
namespace {

Tensor Swap(const Tensor& t) { return Transpose(t, -2, -1); }
Tensor Skew(const Tensor& t) { return t - Swap(t); }

}  // namespace

void TriangularSolve(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  // A x = b: the gradient of b solves the transposed system, that of A is -gb x', in A's triangle.
  const Tensor a = c.in(1), x = c.out(0), g = c.grad_output_or_zeros(0);
  const bool upper = c.bool_arg(2), transpose = c.bool_arg(3), unit = c.bool_arg(4);
  const Tensor gb = InvokeOpMultiOutput(Op::triangular_solve, g, a, upper, !transpose, unit)[0];
  c.set(0, gb);
  if (c.needs(1)) {
    Tensor ga = transpose ? -Matmul(x, Swap(gb)) : -Matmul(gb, Swap(x));
    ga = InvokeOp(upper ? Op::triu : Op::tril, ga, upper ? int64_t{unit} : -int64_t{unit});
    c.set(1, c.grad_output(1).defined() ? ga + c.grad_output(1) : ga);
  }
}
void SolveTriangular(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  const Tensor a = c.in(0), x = c.out();
  const bool upper = c.bool_arg(2), left = c.bool_arg(3), unit = c.bool_arg(4);
  const Tensor gb = InvokeOp(Op::linalg_solve_triangular, Swap(a), c.grad_output(), !upper, left, unit);
  c.set(1, gb);
  if (c.needs(0)) {
    const Tensor ga = left ? -Matmul(gb, Swap(x)) : -Matmul(Swap(x), gb);
    c.set(0, InvokeOp(upper ? Op::triu : Op::tril, ga, upper ? int64_t{unit} : -int64_t{unit}));
  }
}
// A = Q R with at least as many rows as columns: (gQ + Q sym(R gR' - gQ' Q)) R'^-1, sym copying the lower triangle up.
void Qr(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  const Tensor q = c.out(0), r = c.out(1);
  const Tensor gq = c.grad_output_or_zeros(0), gr = c.grad_output_or_zeros(1);
  if (q.size(-1) != r.size(-1)) {
    return c.Fail(absl::UnimplementedError("the derivative of qr requires a reduced Q and no more columns than rows"));
  }
  const Tensor m = Matmul(r, Swap(gr)) - Matmul(Swap(gq), q);
  const Tensor sym = InvokeOp(Op::tril, m, 0) + Swap(InvokeOp(Op::tril, m, -1));
  const Tensor rhs = gq + Matmul(q, sym);
  // Solves X R' = rhs as R X' = rhs'.
  c.set(0, Swap(InvokeOp(Op::linalg_solve_triangular, r, Swap(rhs), true)));
}
void Cholesky(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  // With L lower: phi = tril(L' g) with half of its diagonal; the gradient is L'^-1 phi L^-1, symmetrized.
  const bool upper = c.bool_arg(1);
  const Tensor l = upper ? Swap(c.out()) : c.out();
  const Tensor g = upper ? Swap(c.grad_output()) : c.grad_output();
  Tensor phi = InvokeOp(Op::tril, Matmul(Swap(l), g), 0);
  phi = phi - InvokeOp(Op::tril, InvokeOp(Op::triu, phi, 0), 0) * Scalar(0.5);
  const Tensor left = InvokeOp(Op::linalg_solve_triangular, Swap(l), phi, true);
  const Tensor both = InvokeOp(Op::linalg_solve_triangular, l, left, false, false);
  c.set(0, (both + Swap(both)) * Scalar(0.5));
}
// torch's formula, with E_jk = s_k^2 - s_j^2 off the diagonal:
//   U (skew(U' gU) / E) S V' + U S (skew(V' gV) / E) V' + U diag(gS) V'
//   + (I - U U') gU S^-1 V' if there are more rows, + U S^-1 gV' (I - V V') if there are more columns.
// Vectors beyond the singular values are not determined by the matrix and have no gradient.
void Svd(BackwardContext& c) {
  if (!HasRealMatrices(c)) return;
  const bool old_name = c.op() == Op::svd;
  if (old_name && !c.bool_arg(2)) {
    // Without vectors only the singular values are differentiable; the vectors are decomposed anew.
    const Outputs parts = InvokeOpMultiOutput(Op::linalg_svd, c.in(0), false);
    c.set(0, Matmul(parts[0] * InvokeOp(Op::unsqueeze, c.grad_output_or_zeros(1), -2), parts[2]));
    return;
  }
  const Tensor s = c.out(1);
  const int64_t rows = c.shape(0).dim(c.shape(0).rank() - 2), columns = c.shape(0).dim(c.shape(0).rank() - 1);
  const int64_t k = s.size(-1);
  const auto leading = [&](const Tensor& t) { return t.size(-1) == k ? t : Narrow(t, -1, 0, k); };
  const auto right = [&](const Tensor& t) { return leading(old_name ? t : Swap(t)); };
  const Tensor u = leading(c.out(0)), v = right(c.out(2)), vt = Swap(v);
  const Tensor row = InvokeOp(Op::unsqueeze, s, -2), column = InvokeOp(Op::unsqueeze, s, -1);
  const DeviceGuard guard(s.device());
  const Tensor identity = InvokeOp(Op::eye, k, s.dtype());
  Tensor middle;  // between U and V'
  const auto add = [](Tensor* sum, const Tensor& term) { *sum = sum->defined() ? *sum + term : term; };
  if (c.grad_output(1).defined()) {
    add(&middle, identity * InvokeOp(Op::unsqueeze, c.grad_output(1), -2));
  }
  const bool of_u = c.grad_output(0).defined(), of_v = c.grad_output(2).defined();
  Tensor gu, gv;
  if (of_u || of_v) {
    const Tensor e = row * row - column * column + identity;
    if (of_u) {
      gu = leading(c.grad_output(0));
      add(&middle, Skew(Matmul(Swap(u), gu)) / e * row);
    }
    if (of_v) {
      gv = right(c.grad_output(2));
      add(&middle, column * (Skew(Matmul(vt, gv)) / e));
    }
  }
  if (!middle.defined()) return c.set(0, ZerosLike(c.in(0)));
  Tensor gradient = Matmul(Matmul(u, middle), vt);
  if (of_u && rows > k) {
    const Tensor scaled = gu / row;
    gradient = gradient + Matmul(scaled - Matmul(u, Matmul(Swap(u), scaled)), vt);
  }
  if (of_v && columns > k) {
    const Tensor scaled = Swap(gv / row);
    gradient = gradient + Matmul(u, scaled - Matmul(Matmul(scaled, v), vt));
  }
  c.set(0, gradient);
}

}  // namespace hlokit::lazy::derivative
