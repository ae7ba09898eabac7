// SPDX-License-Identifier: Apache-2.0
// Linear algebra in terms of products, solutions of linear systems and decompositions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy::kernel {
namespace {

Tensor Transposed(const Tensor& t) { return lazy::Transpose(t, -2, -1); }
Tensor Adjoint(const Tensor& t) {
  return IsComplex(t.dtype()) ? InvokeOp(Op::conj_physical, Transposed(t)) : Transposed(t);
}

// Returns identity matrices of the sizes and type of `like`.
Tensor IdentityLike(const Tensor& like) {
  return lazy::Expand(InvokeOp(Op::eye, like.size(-1), like.dtype()), Sizes(like));
}

bool IsSquare(OpKernelContext& c, const Tensor& t, std::string_view name) {
  if (t.dim() < 2) {
    c.Fail(StrCat(name, ": The input tensor A must have at least 2 dimensions."));
  } else if (t.size(-1) != t.size(-2)) {
    c.Fail(StrCat(name, ": A must be batches of square matrices, but they are ", t.size(-2), " by ", t.size(-1),
                  " matrices"));
  }
  return !c.failed();
}

}  // namespace

// ---- determinants, inverses, linear systems ----

void Det(OpKernelContext& c) { c.Return(InvokeOp(Op::linalg_det, c.tensor(0))); }
void Slogdet(OpKernelContext& c) { c.Return(InvokeOpMultiOutput(Op::linalg_slogdet, c.tensor(0))); }
void Logdet(OpKernelContext& c) {
  const Outputs parts = InvokeOpMultiOutput(Op::linalg_slogdet, c.tensor(0));
  c.Return(lazy::MaskedFill(parts[1], lazy::Lt(parts[0], 0), std::numeric_limits<double>::quiet_NaN()));
}
void Inverse(OpKernelContext& c) {
  const Tensor& a = c.tensor(0);
  if (IsSquare(c, a, "linalg.inv")) c.Return(InvokeOp(Op::linear_solve, a, IdentityLike(a)));
}
// A, B, left: B is a vector (a batch of vectors) if its sizes are those of A without the last one.
void LinalgSolve(OpKernelContext& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  if (!IsSquare(c, a, "linalg.solve")) return;
  const bool left = c.bool_arg(2);
  const bool vector =
      b.dim() == 1 || (b.dim() == a.dim() - 1 && b.sizes() == a.sizes().subspan(0, a.sizes().size() - 1));
  if (vector && !left) {
    return c.Fail(
        "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this "
        "case linalg.solve is equivalent to B / A.squeeze(-1)");
  }
  if (vector) return c.Return(lazy::Squeeze(InvokeOp(Op::linear_solve, a, lazy::Unsqueeze(b, -1)), -1));
  if (left) return c.Return(InvokeOp(Op::linear_solve, a, b));
  if (b.dim() < 2 || b.size(-1) != a.size(-1)) {
    return c.Fail(StrCat("linalg.solve: Incompatible shapes of A and B for the equation XA = B (", a.size(-2), "x",
                         a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")"));
  }
  c.Return(Transposed(InvokeOp(Op::linear_solve, Transposed(a), Transposed(b))));
}

// ---- forms that also return the decomposition or a number for errors, always 0 where there is none to find ----

namespace {

Tensor NoError(const Tensor& matrices) {
  IntList batch = Sizes(matrices);
  if (batch.size() >= 2) batch.resize(batch.size() - 2);
  return lazy::Full(batch, 0, ElementType::kS32);
}

}  // namespace

// LU, pivots, info
void LuFactor(OpKernelContext& c) {
  if (!c.bool_arg(1)) return c.Fail("linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  const Outputs parts = InvokeOpMultiOutput(Op::lu_node, c.tensor(0));
  c.Return(parts[0], parts[1]);
  if (c.op() == Op::linalg_lu_factor_ex) c.Return(parts[3]);
}
void DetWithLu(OpKernelContext& c) {
  const Outputs parts = InvokeOpMultiOutput(Op::lu_node, c.tensor(0));
  c.Return(InvokeOp(Op::linalg_det, c.tensor(0)), parts[0], parts[1]);
}
void SlogdetWithLu(OpKernelContext& c) {
  const Outputs parts = InvokeOpMultiOutput(Op::lu_node, c.tensor(0));
  const Outputs values = InvokeOpMultiOutput(Op::linalg_slogdet, c.tensor(0));
  c.Return(values[0], values[1]);
  c.Return(parts[0], parts[1]);
}
void SolveWithLu(OpKernelContext& c) {
  const Outputs parts = InvokeOpMultiOutput(Op::lu_node, c.tensor(0));
  c.Return(InvokeOp(Op::linalg_solve, c.tensor(0), c.tensor(1), c.bool_arg(2)));
  c.Return(parts[0], parts[1], parts[3]);
}
void InverseEx(OpKernelContext& c) {
  const Outputs parts = InvokeOpMultiOutput(Op::lu_node, c.tensor(0));
  c.Return(InvokeOp(Op::linalg_inv, c.tensor(0)), parts[3]);
}
void CholeskyEx(OpKernelContext& c) {
  c.Return(InvokeOp(Op::linalg_cholesky, c.tensor(0), c.bool_arg(1)), NoError(c.tensor(0)));
}
void EighWithVectors(OpKernelContext& c) {
  const Outputs parts = InvokeOpMultiOutput(Op::linalg_eigh, c.args()[0], c.args()[1]);
  c.Return(parts[0], c.bool_arg(2) ? parts[1] : lazy::Zeros({0}, c.tensor(0).dtype()));
}
void SvdWithVectors(OpKernelContext& c) {
  const Outputs parts = InvokeOpMultiOutput(Op::linalg_svd, c.args()[0], c.args()[1]);
  if (c.bool_arg(2)) return c.Return(parts[0], parts[1], parts[2]);
  const Tensor none = lazy::Zeros({0}, c.tensor(0).dtype());
  c.Return(none, parts[1], none);
}
void Svdvals(OpKernelContext& c) { c.Return(InvokeOpMultiOutput(Op::linalg_svd, c.args()[0], false)[1]); }

void CholeskySolve(OpKernelContext& c) {
  const Tensor &b = c.tensor(0), &factor = c.tensor(1);
  if (b.dim() < 2)
    return c.Fail(StrCat("b should have at least 2 dimensions, but has ", b.dim(), " dimensions instead"));
  if (factor.dim() < 2) {
    return c.Fail(StrCat("u should have at least 2 dimensions, but has ", factor.dim(), " dimensions instead"));
  }
  const Tensor lower = c.bool_arg(2) ? Adjoint(factor) : factor;
  const Tensor y = InvokeOp(Op::linalg_solve_triangular, lower, b, false, true, false);
  c.Return(InvokeOp(Op::linalg_solve_triangular, Adjoint(lower), y, true, true, false));
}
void CholeskyInverse(OpKernelContext& c) {
  const Tensor& factor = c.tensor(0);
  if (IsSquare(c, factor, "cholesky_inverse")) {
    c.Return(InvokeOp(Op::cholesky_solve, IdentityLike(factor), factor, c.bool_arg(1)));
  }
}
void MatrixPower(OpKernelContext& c) {
  Tensor power = c.tensor(0);
  int64_t n = c.int_arg(1);
  if (!IsSquare(c, power, "linalg.matrix_power")) return;
  if (n == 0) return c.Return(InvokeOp(Op::clone, IdentityLike(power)));
  constexpr int64_t kMaxPower = int64_t{1} << 30;
  if (n > kMaxPower || n < -kMaxPower) return c.Fail("the exponent is out of range");
  if (n < 0) {
    power = InvokeOp(Op::linalg_inv, power);
    n = -n;
  }
  // Squares for each binary digit.
  Tensor product;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) product = product.defined() ? lazy::Matmul(product, power) : power;
    if (n > 1) power = lazy::Matmul(power, power);
    if (!power.defined()) break;
  }
  c.Return(product);
}

// ---- eigenvalues, pseudoinverses ----

void Eigvalsh(OpKernelContext& c) { c.Return(InvokeOpMultiOutput(Op::linalg_eigh, c.args()[0], c.args()[1])[0]); }
// self, rcond: singular values up to rcond times the largest one count as 0.
void Pinverse(OpKernelContext& c) {
  const Tensor& a = c.tensor(0);
  if (a.dim() < 2) {
    return c.Fail("linalg.pinv: The input tensor A must have at least 2 dimensions.");
  }
  if (a.numel() == 0) {
    IntList sizes = Sizes(a);
    std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
    return c.Return(lazy::Zeros(sizes, a.dtype()));
  }
  const Outputs parts = InvokeOpMultiOutput(Op::linalg_svd, a, false);
  const Tensor& s = parts[1];
  if (!s.defined()) return c.Return(s);
  const Tensor limit = InvokeOp(Op::amax, s, IntList{-1}, true) * Scalar(c.float_arg(1));
  const Tensor inverse = lazy::MaskedFill(lazy::Reciprocal(s), lazy::Le(s, limit), 0);
  c.Return(lazy::Matmul(Transposed(parts[2]) * lazy::Unsqueeze(inverse, -2), Transposed(parts[0])));
}

// ---- products ----

void Ger(OpKernelContext& c) { c.Return(InvokeOp(Op::outer, c.tensor(0), c.tensor(1))); }
void Inner(OpKernelContext& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  if (a.dim() == 0 || b.dim() == 0) return c.Return(a * b);
  if (a.size(-1) != b.size(-1)) {
    return c.Fail(StrCat("inner() the last dimension must match on both input tensors but got shapes ",
                         ListToString(a.sizes()), " and ", ListToString(b.sizes())));
  }
  c.Return(InvokeOp(Op::tensordot, a, b, IntList{-1}, IntList{-1}));
}
void Tensordot(OpKernelContext& c) {
  const Tensor operands[] = {c.tensor(0), c.tensor(1)};
  const Dims given[] = {c.ints(2), c.ints(3)};
  if (given[0].size() != given[1].size()) {
    return c.Fail("both dimension lists should have same length");
  }
  Tensor matrices[2];
  IntList sizes, contracted[2];
  for (size_t i = 0; i < 2; ++i) {
    for (int64_t d : given[i]) contracted[i].push_back(c.Dim(d, operands[i].dim()));
  }
  if (c.failed()) return;
  for (size_t i = 0; i < 2; ++i) {
    IntList sorted = contracted[i];
    std::sort(sorted.begin(), sorted.end());
    const auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
    if (repeated != sorted.end())
      return c.Fail(StrCat("dim ", *repeated, " appears multiple times in the list of dims"));
  }
  Tensor a = operands[0], b = operands[1];
  for (size_t k = 0; k < given[0].size(); ++k) {
    const int64_t i = contracted[0][k], j = contracted[1][k];
    // A size of 1 is broadcast: the other operand is summed.
    if (a.size(i) == 1 && b.size(j) != 1) {
      b = lazy::Sum(b, {j}, true);
    } else if (b.size(j) == 1 && a.size(i) != 1) {
      a = lazy::Sum(a, {i}, true);
    } else if (a.size(i) != b.size(j)) {
      return c.Fail(StrCat("contracted dimensions need to match, but first has size ", a.size(i), " in dim ",
                           given[0][k], " and second has size ", b.size(j), " in dim ", given[1][k]));
    }
  }
  int64_t inner = 1;
  bool too_large = false;
  for (int64_t d : contracted[0]) too_large |= __builtin_mul_overflow(inner, a.size(d), &inner);
  const Tensor parts[] = {a, b};
  for (size_t i = 0; i < 2; ++i) {
    IntList order;
    int64_t outer = 1;
    for (int64_t d = 0; d < parts[i].dim(); ++d) {
      if (std::find(contracted[i].begin(), contracted[i].end(), d) != contracted[i].end()) continue;
      order.push_back(d);
      sizes.push_back(parts[i].size(d));
      too_large |= __builtin_mul_overflow(outer, parts[i].size(d), &outer);
    }
    if (too_large) return c.Fail("the product has too many elements");
    order.insert(i == 0 ? order.end() : order.begin(), contracted[i].begin(), contracted[i].end());
    const Tensor ordered = parts[i].dim() == 0 ? parts[i] : lazy::Permute(parts[i], order);
    matrices[i] = lazy::Reshape(ordered, i == 0 ? IntList{outer, inner} : IntList{inner, outer});
  }
  c.Return(lazy::Reshape(lazy::Mm(matrices[0], matrices[1]), sizes));
}
void Kron(OpKernelContext& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  const int64_t rank = std::max(a.dim(), b.dim());
  IntList of_a, of_b, sizes;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t i = d - (rank - a.dim()), j = d - (rank - b.dim());
    of_a.insert(of_a.end(), {i < 0 ? 1 : a.size(i), 1});
    of_b.insert(of_b.end(), {1, j < 0 ? 1 : b.size(j)});
    int64_t size = 0;
    if (__builtin_mul_overflow(of_a[2 * d], of_b[2 * d + 1], &size)) return c.Fail("the product has too many elements");
    sizes.push_back(size);
  }
  c.Return(lazy::Reshape(lazy::Reshape(a, of_a) * lazy::Reshape(b, of_b), sizes));
}

namespace {

void CrossAlong(OpKernelContext& c, const Tensor& a, const Tensor& b, int64_t given) {
  if (a.dim() != b.dim()) {
    return c.Fail("linalg.cross: inputs must have the same number of dimensions.");
  }
  const int64_t dim = c.Dim(given, a.dim());
  if (c.failed()) return;
  if (a.dim() == 0 || a.size(dim) != 3 || b.size(dim) != 3) {
    return c.Fail(StrCat("linalg.cross: inputs dimension ", given, " must have length 3. Got ", a.size(dim), " and ",
                         b.size(dim)));
  }
  const auto rolled = [&](const Tensor& t, int64_t by) { return InvokeOp(Op::roll, t, IntList{-by}, IntList{dim}); };
  c.Return(rolled(a, 1) * rolled(b, 2) - rolled(a, 2) * rolled(b, 1));
}

}  // namespace

void Cross(OpKernelContext& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  if (c.has(2)) return CrossAlong(c, a, b, c.int_arg(2));
  // Without a dimension: the first one of size 3.
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) == 3) return CrossAlong(c, a, b, d);
  }
  c.Fail("no dimension of size 3 in input");
}
void LinalgCross(OpKernelContext& c) { CrossAlong(c, c.tensor(0), c.tensor(1), c.int_arg(2)); }

void ChainMatmul(OpKernelContext& c) {
  Tensor product;
  for (const Tensor& t : c.list(0)) {
    if (t.dim() != 2) return c.Fail(StrCat("Tensor dimension is ", t.dim(), ", expected 2 instead."));
    product = product.defined() ? lazy::Mm(product, t) : t;
    if (!product.defined()) return;
  }
  if (!product.defined()) return c.Fail("chain_matmul(): Expected one or more matrices");
  c.Return(product);
}
// The first and the last operand may be vectors.
void MultiDot(OpKernelContext& c) {
  const Tensors& list = c.list(0);
  if (list.size() < 2) return c.Fail(StrCat("multi_dot(): expected at least 2 tensors but got ", list.size()));
  for (size_t i = 0; i < list.size(); ++i) {
    const bool end = i == 0 || i + 1 == list.size();
    if (list[i].dim() == 2 || (end && list[i].dim() == 1)) continue;
    if (!end) return c.Fail(StrCat("multi_dot(): tensor ", i, " must be 2D but got ", list[i].dim(), "D"));
    return c.Fail(StrCat("multi_dot(): the ", i == 0 ? "first" : "last", " tensor must be 1D or 2D but got ",
                         list[i].dim(), "D"));
  }
  Tensor product = list[0];
  for (size_t i = 1; i < list.size() && product.defined(); ++i) product = lazy::Matmul(product, list[i]);
  c.Return(product);
}

}  // namespace hlokit::lazy::kernel
