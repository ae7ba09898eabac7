// SPDX-License-Identifier: Apache-2.0
// Derivatives of reductions, scans and sorting.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/core/str_cat.h"
#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::derivative {
namespace {

void NotForComplex(BackwardContext& c) {
  c.Fail(
      absl::UnimplementedError(StrCat("derivative for ", SymbolOf(c.op()), " of complex numbers is not implemented")));
}

// Returns the dimensions of an argument that may be absent or empty: nonnegative, sorted.
IntList DimsOf(BackwardContext& c, size_t i, int64_t rank) {
  IntList dims;
  for (int64_t d : c.ints(i)) {
    if (rank != 0) dims.push_back(d < 0 ? d + rank : d);
  }
  if (dims.empty()) {
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  }
  std::sort(dims.begin(), dims.end());
  return dims;
}

// Restores reduced dimensions as size 1.
Tensor Kept(const Tensor& t, Shape shape, const IntList& dims) {
  IntList sizes = Sizes(shape);
  for (int64_t d : dims) sizes[d] = 1;
  return t.defined() && t.sizes() != Dims(sizes) ? Reshape(t, sizes) : t;
}
Tensor Spread(const Tensor& t, Shape shape, const IntList& dims) { return Expand(Kept(t, shape, dims), Sizes(shape)); }

int64_t Count(Shape shape, const IntList& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= shape.dim(d);
  return n;
}
IntList OneDim(BackwardContext& c, size_t i, Shape shape) {
  const int64_t rank = shape.rank();
  return rank == 0 ? IntList{} : IntList{c.int_arg(i) < 0 ? c.int_arg(i) + rank : c.int_arg(i)};
}

// Returns the gradient of a product along dimension `dim` of x [.., n, ..]: for each element the product of all others,
// without division, so that zeros are no special case. `kept_g` has size 1 there.
Tensor ProductGradient(const Tensor& kept_g, const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  if (n == 0) return ZerosLike(x);
  IntList one = IntList(x.sizes().begin(), x.sizes().end());
  one[dim] = 1;
  const Tensor ones = Full(one, 1, x.dtype());
  const auto exclusive = [&](const Tensor& t) {
    return n == 1 ? ones : InvokeOp(Op::cumprod, lazy::Cat({ones, Slice(t, dim, 0, n - 1)}, dim), dim);
  };
  const Tensor before = exclusive(x);
  const Tensor after = Flip(exclusive(Flip(x, {dim})), {dim});
  return kept_g * (before * after);
}

// Returns zeros of the argument's shape with g scattered to `index` along `dim`.
Tensor ScatterTo(BackwardContext& c, const Tensor& g, const Tensor& index, int64_t dim) {
  return ScatterAdd(Zeros(c.shape(0).dims(), g.dtype()), dim, index, g);
}

}  // namespace

void SumAll(BackwardContext& c) { c.set(0, Expand(c.grad_output(), Sizes(c.shape(0)))); }
void Sum(BackwardContext& c) {
  const Shape s = c.shape(0);
  c.set(0, Spread(c.grad_output(), s, DimsOf(c, 1, s.rank())));
}
void Mean(BackwardContext& c) {
  const Shape s = c.shape(0);
  const IntList dims = DimsOf(c, 1, s.rank());
  c.set(0, Spread(c.grad_output(), s, dims) / Scalar(Count(s, dims)));
}
void ProdAll(BackwardContext& c) {
  const Tensor x = To(c.in(0), c.grad_output().dtype());
  const int64_t n = x.numel();
  c.set(0, Reshape(ProductGradient(Reshape(c.grad_output(), {1}), Reshape(x, {n}), 0), Sizes(c.shape(0))));
}
void ProdDim(BackwardContext& c) {
  const IntList dims = OneDim(c, 1, c.shape(0));
  if (dims.empty()) return c.set(0, c.grad_output());
  c.set(0, ProductGradient(Kept(c.grad_output(), c.shape(0), dims), To(c.in(0), c.grad_output().dtype()), dims[0]));
}
void AmaxAmin(BackwardContext& c) {
  const Shape s = c.shape(0);
  const IntList dims = DimsOf(c, 1, s.rank());
  const Tensor hit = To(Eq(c.in(0), Kept(c.out(), s, dims)), c.grad_output().dtype());
  c.set(0, hit * Kept(c.grad_output(), s, dims) / Sum(hit, dims, true));
}
void MaxMinAll(BackwardContext& c) {
  // NaN counts as the largest and the smallest value.
  const Tensor hit =
      To(InvokeOp(Op::logical_or, Eq(c.in(0), c.out()), InvokeOp(Op::isnan, c.in(0))), c.grad_output().dtype());
  c.set(0, hit * (c.grad_output() / Sum(hit)));
}
void Median(BackwardContext& c) {
  // NaN is equal to NaN here.
  const Tensor x = c.in(0), median = c.out();
  const Tensor both = And(InvokeOp(Op::isnan, x), InvokeOp(Op::isnan, median));
  const Tensor hit = To(Or(Eq(x, median), both), c.grad_output().dtype());
  c.set(0, hit * (c.grad_output() / Sum(hit)));
}
void MaxMinDim(BackwardContext& c) {
  if (!c.grad_output(0).defined()) return;
  const IntList dims = OneDim(c, 1, c.shape(0));
  if (dims.empty()) return c.set(0, c.grad_output(0));
  c.set(0, ScatterTo(c, Kept(c.grad_output(0), c.shape(0), dims), Kept(c.out(1), c.shape(0), dims), dims[0]));
}
void Cummax(BackwardContext& c) {
  if (!c.grad_output(0).defined()) return;
  const IntList dims = OneDim(c, 1, c.shape(0));
  c.set(0, dims.empty() ? c.grad_output(0) : ScatterTo(c, c.grad_output(0), c.out(1), dims[0]));
}

namespace {

// Returns d var: 2 (x - mean) / (n - correction).
Tensor VarGradient(BackwardContext& c, const Tensor& g) {
  const Shape s = c.shape(0);
  const IntList dims = DimsOf(c, 1, s.rank());
  const int64_t correction = c.has(2) ? c.int_arg(2) : 1;
  const double divisor = static_cast<double>(Count(s, dims) - correction);
  const Tensor x = c.in(0);
  return Kept(g, s, dims) * Scalar(2.0 / divisor) * (x - Mean(x, dims, true));
}

}  // namespace

void Var(BackwardContext& c) {
  if (IsComplex(c.shape(0).element_type())) return NotForComplex(c);
  c.set(0, VarGradient(c, c.grad_output()));
}
void Std(BackwardContext& c) {
  if (IsComplex(c.shape(0).element_type())) return NotForComplex(c);
  // g / (2 std), 0 where the deviation is 0.
  const Tensor slope = c.grad_output() / (c.out() * Scalar(2));
  c.set(0, VarGradient(c, MaskedFill(slope, Eq(c.out(), 0), 0)));
}
void VectorNorm(BackwardContext& c) {
  const Shape s = c.shape(0);
  if (IsComplex(s.element_type())) return NotForComplex(c);
  const IntList dims = DimsOf(c, 2, s.rank());
  const Tensor x = To(c.in(0), c.grad_output().dtype());
  const Tensor norm = Kept(c.out(), s, dims), g = Kept(c.grad_output(), s, dims);
  const double p = c.float_arg(1);
  if (p == 0) return c.set(0, ZerosLike(x));
  if (p == 1) return c.set(0, g * Sgn(x));
  if (p == 2) return c.set(0, g * MaskedFill(x / norm, Eq(norm, 0), 0));
  if (std::isinf(p)) {
    const Tensor hit = To(Eq(Abs(x), norm), g.dtype());
    return c.set(0, Sgn(x) * (hit * (g / Sum(hit, dims, true))));
  }
  // sign(x) |x|^(p-1) / norm^(p-1)
  const Tensor slope = Sgn(x) * Pow(Abs(x), p - 1) / Pow(norm, p - 1);
  c.set(0, g * MaskedFill(MaskedFill(slope, Eq(norm, 0), 0), Eq(x, 0), 0));
}
void LogSumExp(BackwardContext& c) {
  const Shape s = c.shape(0);
  const IntList dims = DimsOf(c, 1, s.rank());
  c.set(0, Kept(c.grad_output(), s, dims) * Exp(c.in(0) - Kept(c.out(), s, dims)));
}

// ---- scans ----

namespace {

Tensor ReverseCumsum(const Tensor& t, int64_t dim) { return Flip(InvokeOp(Op::cumsum, Flip(t, {dim}), dim), {dim}); }

}  // namespace

void Cumsum(BackwardContext& c) {
  const IntList dims = OneDim(c, 1, c.shape(0));
  c.set(0, dims.empty() ? c.grad_output() : ReverseCumsum(c.grad_output(), dims[0]));
}
void Cumprod(BackwardContext& c) {
  const IntList dims = OneDim(c, 1, c.shape(0));
  if (dims.empty()) return c.set(0, c.grad_output());
  const int64_t dim = dims[0], n = c.shape(0).dim(dim);
  const Tensor x = To(c.in(0), c.grad_output().dtype());
  if (n == 0) return c.set(0, ZerosLike(x));
  // d out_j / d x_i = (product of x_k, k < i) (product of x_k, i < k <= j) for j >= i. The second factor is a table
  // [.., i, j, ..]: a running product over ones up to i and x after it. Without division, zeros are no special case.
  IntList one(x.sizes().begin(), x.sizes().end());
  one[dim] = 1;
  const Tensor ones = Full(one, 1, x.dtype());
  const Tensor before = n == 1 ? ones : InvokeOp(Op::cumprod, lazy::Cat({ones, Slice(x, dim, 0, n - 1)}, dim), dim);
  IntList table(x.sizes().begin(), x.sizes().end());
  table.insert(table.begin() + dim, n);
  IntList column(table.size(), 1), row(table.size(), 1);
  column[dim] = n;   // i
  row[dim + 1] = n;  // k
  const Tensor i = Reshape(Arange(n), column), k = Reshape(Arange(n), row);
  const Tensor wide = Expand(Unsqueeze(x, dim), table);
  const Tensor after = InvokeOp(Op::cumprod, Where(Gt(k, i), wide, 1), dim + 1);
  const Tensor reached = Where(Ge(k, i), after, 0);
  c.set(0, before * Sum(Unsqueeze(c.grad_output(), dim) * reached, {dim + 1}));
}

// ---- sorting ----

void SortOp(BackwardContext& c) {
  if (!c.grad_output(0).defined()) return;
  const IntList dims = OneDim(c, c.op() == Op::sort_stable ? 2 : 1, c.shape(0));
  c.set(0, dims.empty() ? c.grad_output(0) : ScatterTo(c, c.grad_output(0), c.out(1), dims[0]));
}
void TopK(BackwardContext& c) {
  if (!c.grad_output(0).defined()) return;
  const IntList dims = OneDim(c, 2, c.shape(0));
  c.set(0, dims.empty() ? c.grad_output(0) : ScatterTo(c, c.grad_output(0), c.out(1), dims[0]));
}

}  // namespace hlokit::lazy::derivative
