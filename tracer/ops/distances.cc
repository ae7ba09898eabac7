// SPDX-License-Identifier: Apache-2.0
// Distances between vectors, as norms of their differences.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"

namespace hlokit::lazy::kernel {
namespace {

// Returns the norms of the last dimension; no components have norm 0.
Tensor Lengths(const Tensor& difference, Scalar p) {
  if (difference.defined() && difference.size(-1) == 0) return lazy::Sum(difference, {-1});
  return InvokeOp(Op::linalg_vector_norm, difference, p, IntList{-1});
}

}  // namespace

// x1 [.., p, m], x2 [.., r, m] -> [.., p, r]. How torch computes it (compute_mode) does not matter here.
void Cdist(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  const std::string_view names[] = {"X1", "X2"};
  for (size_t i = 0; i < 2; ++i) {
    if (!IsFloat(c.tensor(i).dtype())) {
      return c.Fail(
          StrCat("cdist only supports floating-point dtypes, ", names[i], " got: ", ToString(c.tensor(i).dtype())));
    }
  }
  for (size_t i = 0; i < 2; ++i) {
    if (c.tensor(i).dim() < 2) {
      return c.Fail(StrCat("cdist only supports at least 2D tensors, ", names[i], " got: ", c.tensor(i).dim(), "D"));
    }
  }
  if (x.size(-1) != y.size(-1)) {
    return c.Fail(StrCat("X1 and X2 must have the same number of columns. X1: ", x.size(-1), " X2: ", y.size(-1)));
  }
  if (!(c.float_arg(2) >= 0)) return c.Fail("cdist only supports non-negative p values");
  c.Return(Lengths(lazy::Unsqueeze(x, -2) - lazy::Unsqueeze(y, -3), c.scalar(2)));
}

// Distances of all pairs of rows i < j.
void Pdist(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  if (x.dim() != 2) return c.Fail(StrCat("pdist only supports 2D tensors, got: ", x.dim(), "D"));
  if (!IsFloat(x.dtype())) return c.Fail("pdist only supports floating-point dtypes");
  if (!(c.float_arg(1) >= 0)) return c.Fail("pdist only supports non-negative p values");
  const Tensor pairs = InvokeOp(Op::triu_indices, x.size(0), x.size(0), 1);
  const Tensor first = lazy::IndexSelect(x, 0, lazy::Select(pairs, 0, 0));
  c.Return(Lengths(first - lazy::IndexSelect(x, 0, lazy::Select(pairs, 0, 1)), c.scalar(1)));
}

void Dist(OpKernelContext& c) { c.Return(InvokeOp(Op::linalg_vector_norm, c.tensor(0) - c.tensor(1), c.scalar(2))); }

}  // namespace hlokit::lazy::kernel
