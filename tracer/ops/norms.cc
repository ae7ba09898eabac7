// SPDX-License-Identifier: Apache-2.0
// Norms of vectors and matrices.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy::kernel {
namespace {

struct MatrixDims {
  int64_t rows = -2, columns = -1;
};

std::optional<MatrixDims> MatrixDimsOf(OpKernelContext& c, const Tensor& t, Dims dims) {
  if (dims.size() != 2) {
    c.Fail(StrCat("linalg.matrix_norm: dim must be a 2-tuple. Got ", ListToString(dims)));
    return std::nullopt;
  }
  if (t.dim() < 2) {
    c.Fail("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
    return std::nullopt;
  }
  const MatrixDims at = {c.Dim(dims[0], t.dim()), c.Dim(dims[1], t.dim())};
  if (!c.failed() && at.rows == at.columns) {
    c.Fail(StrCat("linalg.matrix_norm: dims must be different. Got (", dims[0], ", ", dims[1], ")"));
  }
  return c.failed() ? std::nullopt : std::optional(at);
}

// Returns the singular values of the matrices, along a last dimension.
Tensor SingularValues(const Tensor& t, MatrixDims at) {
  const Tensor matrices = InvokeOp(Op::movedim_intlist, t, IntList{at.rows, at.columns}, IntList{-2, -1});
  return InvokeOpMultiOutput(Op::linalg_svd, matrices, false)[1];
}

Tensor WithSizesOne(const Tensor& t, MatrixDims at, bool keepdim) {
  if (!keepdim) return t;
  return lazy::Unsqueeze(lazy::Unsqueeze(t, std::min(at.rows, at.columns)), std::max(at.rows, at.columns));
}

// ord 1, -1, 2, -2, inf, -inf, or one of torch's names for a norm.
void MatrixNorm(OpKernelContext& c, Tensor t, std::optional<double> order, std::string_view name, Dims dims,
                bool keepdim, IValue type) {
  if (const ElementType* dtype = type.get<ElementType>()) t = lazy::To(t, *dtype);
  if (t.defined() && !IsFloat(t.dtype())) {
    return c.Fail(StrCat("linalg.matrix_norm: Expected a floating point or complex tensor as input. Got ",
                         TorchTypeName(t.dtype())));
  }
  const std::optional<MatrixDims> at = MatrixDimsOf(c, t, dims);
  if (!at) return;
  if (!order && name == "fro") {
    return c.Return(InvokeOp(Op::linalg_vector_norm, t, 2, IntList{at->rows, at->columns}, keepdim));
  }
  if (!order && name == "nuc") return c.Return(WithSizesOne(lazy::Sum(SingularValues(t, *at), {-1}), *at, keepdim));
  if (!order) {
    return c.Fail(StrCat("linalg.matrix_norm: Order ", name, " not supported."));
  }
  const double size = std::abs(*order);
  const Op best = *order > 0 ? Op::amax : Op::amin;
  if (size == 2) {
    return c.Return(WithSizesOne(InvokeOp(best, SingularValues(t, *at), IntList{-1}), *at, keepdim));
  }
  if (size != 1 && !std::isinf(size)) {
    return c.Fail(StrCat("linalg.matrix_norm: Order ", FormatDouble(*order, 9), " not supported."));
  }
  const int64_t summed = size == 1 ? at->rows : at->columns, kept = size == 1 ? at->columns : at->rows;
  const Tensor sums = lazy::Sum(lazy::Abs(t), {summed}, true);
  const Tensor norm = InvokeOp(best, sums, IntList{kept}, true);
  c.Return(keepdim ? norm : lazy::Squeeze(lazy::Squeeze(norm, std::max(summed, kept)), std::min(summed, kept)));
}

}  // namespace

// self, ord, dim, keepdim, dtype
void LinalgMatrixNorm(OpKernelContext& c) {
  const bool named = c.op() == Op::linalg_matrix_norm_str_ord;
  MatrixNorm(c, c.tensor(0), named ? std::nullopt : std::optional(c.float_arg(1)), c.str(1), c.ints(2), c.bool_arg(3),
             c.args()[4]);
}
void LinalgNorm(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const bool named = c.op() == Op::linalg_norm_ord_str;
  IntList dims(c.ints(2).begin(), c.ints(2).end());
  const bool has_order = named || c.has(1);
  if (c.has(2) && dims.size() != 1 && dims.size() != 2) {
    return c.Fail(StrCat("linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", ListToString(dims)));
  }
  if (!c.has(2) && has_order && t.dim() != 1 && t.dim() != 2) {
    return c.Fail(
        StrCat("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", t.dim(), "D."));
  }
  const bool matrix = has_order && (c.has(2) ? dims.size() == 2 : t.dim() == 2);
  if (matrix) {
    if (!c.has(2)) dims = {0, 1};
    return MatrixNorm(c, t, named ? std::nullopt : std::optional(c.float_arg(1)), c.str(1), dims, c.bool_arg(3),
                      c.args()[4]);
  }
  if (named) {
    return c.Fail(StrCat("linalg.norm: Order ", c.str(1), " not supported for vectors."));
  }
  c.Return(
      InvokeOp(Op::linalg_vector_norm, t, has_order ? c.scalar(1) : Scalar(2), c.args()[2], c.args()[3], c.args()[4]));
}
void FrobeniusNorm(OpKernelContext& c) { c.Return(InvokeOp(Op::linalg_vector_norm, c.tensor(0), 2)); }
void FrobeniusNormDim(OpKernelContext& c) {
  if (c.ints(1).size() > 2) {
    return c.Fail(StrCat("Expected at most 2 dimensions, but got ", c.ints(1).size(), " dimensions instead."));
  }
  c.Return(InvokeOp(Op::linalg_vector_norm, c.tensor(0), 2, c.args()[1], c.args()[2]));
}

}  // namespace hlokit::lazy::kernel
