// SPDX-License-Identifier: Apache-2.0
// Diagonals, triangles and elements by flat index.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::kernel {

void DiagEmbed(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const int64_t offset = c.int_arg(1), rank = t.dim() + 1;
  int64_t row = c.Dim(c.int_arg(2), rank), column = c.Dim(c.int_arg(3), rank);
  if (c.failed()) return;
  if (row == column) return c.Fail("diagonal dimensions cannot be identical " + StrCat(row, ", ", column));
  if (offset < -(int64_t{1} << 30) || offset > (int64_t{1} << 30)) return c.Fail("the offset is out of range");
  // The last dimension becomes a diagonal of the last two; then those move to their places.
  const int64_t size = t.size(-1) + std::abs(offset);
  IntList square = Sizes(t);
  square.back() = size;
  square.push_back(size);
  const Tensor embedded = InvokeOp(Op::diagonal_scatter, lazy::Zeros(square, t.dtype()), t, offset, -2, -1);
  c.Return(InvokeOp(Op::movedim_intlist, embedded, IntList{-2, -1}, IntList{row, column}));
}
void Diag(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (t.dim() == 1) return c.Return(InvokeOp(Op::diag_embed, t, c.int_arg(1)));
  if (t.dim() != 2) return c.Fail("matrix or a vector expected");
  c.Return(InvokeOp(Op::diagonal_copy, t, c.int_arg(1)));
}
void Diagflat(OpKernelContext& c) {
  c.Return(InvokeOp(Op::diag_embed, lazy::Reshape(c.tensor(0), {c.tensor(0).numel()}), c.int_arg(1)));
}
void Trace(OpKernelContext& c) {
  if (c.tensor(0).dim() != 2) {
    return c.Fail(StrCat("trace: expected a matrix, but got tensor with dim ", c.tensor(0).dim()));
  }
  c.Return(lazy::Sum(InvokeOp(Op::diagonal, c.tensor(0))));
}

void FillDiagonalInPlace(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (t.dim() < 2) return c.Fail("dimensions must larger than 1");
  const int64_t shortest = *std::min_element(t.sizes().begin(), t.sizes().end());
  if (t.dim() > 2 && std::any_of(t.sizes().begin(), t.sizes().end(), [&](int64_t s) { return s != shortest; })) {
    return c.Fail("all dimensions of input must be of equal length");
  }
  // The flat places 0, step, 2 step, ... A tall matrix wraps around after an empty row.
  int64_t step = 0, stride = 1;
  for (int64_t d = t.dim(); d-- > 0; stride *= t.size(d)) step += stride;
  const bool wrap = c.bool_arg(2) && t.dim() == 2 && t.size(0) > t.size(1);
  const int64_t count = wrap ? (t.numel() + step - 1) / step : shortest;
  const Tensor flat = lazy::Reshape(t, {t.numel()});
  const Tensor places = lazy::Arange(count) * Scalar(step);
  const Tensor filled = InvokeOp(Op::index_fill_int_Scalar, flat, 0, places, c.scalar(1));
  WriteInPlace(t, lazy::Reshape(filled, Sizes(t)));
  c.Return(t);
}

namespace {

// Returns the coordinates of a triangle as [2, count], row-major: computed here, since they do not depend on values.
void TriangleIndices(OpKernelContext& c, bool lower) {
  const int64_t rows = c.int_arg(0), columns = c.int_arg(1), offset = c.int_arg(2);
  const ElementType type = c.dtype(3, ElementType::kS64);
  constexpr int64_t kMaxElements = int64_t{1} << 24;
  if (rows < 0) return c.Fail(StrCat("row must be non-negative, got", rows));
  if (columns < 0) return c.Fail(StrCat("col must be non-negative, got", columns));
  if (type != ElementType::kS64 && type != ElementType::kS32) {
    return c.Fail(StrCat("\"", lower ? "tril" : "triu", "_indices\" not implemented for this element type"));
  }
  if (columns > 0 && rows > kMaxElements / columns) return c.Fail("the matrix has too many elements");
  if (columns == 0) return c.Return(lazy::Zeros({2, 0}, type));
  std::vector<int64_t> places;
  for (const bool of_row : {true, false}) {
    for (int64_t i = 0; i < rows; ++i) {
      // Saturates: an offset beyond the matrix selects all of it or nothing.
      const int64_t edge = i + std::clamp<int64_t>(offset, -rows - columns, rows + columns);
      const int64_t first = lower ? 0 : std::clamp<int64_t>(edge, 0, columns);
      const int64_t last = lower ? std::clamp<int64_t>(edge + 1, 0, columns) : columns;
      for (int64_t j = first; j < last; ++j) places.push_back(of_row ? i : j);
    }
  }
  Literal literal = Literal::Zeros(c.device()->ArrayShape(type, {2, static_cast<int64_t>(places.size() / 2)}));
  const size_t width = static_cast<size_t>(BytesOf(type));
  for (size_t i = 0; i < places.size(); ++i) StoreScalar(type, places[i], literal.data() + i * width);
  const DeviceGuard guard(c.device());
  c.Return(c.device()->tracer()->FromLiteral(std::move(literal)));
}

}  // namespace

void TrilIndices(OpKernelContext& c) { TriangleIndices(c, true); }
void TriuIndices(OpKernelContext& c) { TriangleIndices(c, false); }

// ---- by flat index ----

namespace {

bool IsLong(OpKernelContext& c, std::string_view name, const Tensor& index) {
  if (index.dtype() == ElementType::kS64) return true;
  c.Fail(StrCat(name, "(): Expected a long tensor for index, but got ", ToString(index.dtype())));
  return false;
}

}  // namespace

void Take(OpKernelContext& c) {
  const Tensor &t = c.tensor(0), &index = c.tensor(1);
  if (!IsLong(c, "take", index)) return;
  if (t.numel() == 0 && index.numel() != 0) return c.Fail("take(): tried to take from an empty tensor");
  const Tensor flat = lazy::Reshape(t, {t.numel()});
  const Tensor places = lazy::Reshape(index, {index.numel()});
  c.Return(lazy::Reshape(lazy::IndexSelect(flat, 0, places), Sizes(index)));
}
void Put(OpKernelContext& c) {
  const Tensor &t = c.tensor(0), &index = c.tensor(1), &source = c.tensor(2);
  if (!IsLong(c, "put_", index)) return;
  if (source.dtype() != t.dtype()) {
    return c.Fail(StrCat("put_(): self and source expected to have the same dtype, but got self.dtype = ",
                         ToString(t.dtype()), " and source.dtype = ", ToString(source.dtype())));
  }
  if (index.numel() != source.numel()) {
    return c.Fail(
        StrCat("put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
               source.numel(), ", index.numel() = ", index.numel()));
  }
  if (index.numel() == 0) return c.Return(InvokeOp(Op::clone, t));
  if (t.numel() == 0) return c.Fail("put_(): Tried to put elements into an empty tensor");
  const Tensor written =
      InvokeOp(Op::index_put, lazy::Reshape(t, {t.numel()}), Tensors{lazy::Reshape(index, {index.numel()})},
               lazy::Reshape(source, {source.numel()}), c.bool_arg(3));
  c.Return(lazy::Reshape(written, Sizes(t)));
}
void PutInPlace(OpKernelContext& c) {
  WriteInPlace(c.tensor(0), InvokeOp(Op::put, c.args()[0], c.args()[1], c.args()[2], c.args()[3]));
  c.Return(c.tensor(0));
}
void TakeAlongDim(OpKernelContext& c) {
  const Tensor &t = c.tensor(0), &index = c.tensor(1);
  if (!c.has(2)) {
    return c.Return(lazy::Gather(lazy::Reshape(t, {t.numel()}), 0, lazy::Reshape(index, {index.numel()})));
  }
  if (index.dtype() != ElementType::kS64) {
    return c.Fail("torch.take_along_dim(): dtype of indices should be Long");
  }
  if (t.dim() != index.dim()) {
    return c.Fail(
        StrCat("torch.take_along_dim(): input and indices should have the same number of dimensions, but got ", t.dim(),
               " dimensions for input, and ", index.dim(), " dimensions for indices"));
  }
  const int64_t dim = c.Dim(c.int_arg(2), t.dim());
  if (c.failed()) return;
  // Both are broadcast to each other, except along `dim`.
  IntList own = Sizes(t), wanted = Sizes(index);
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d == dim) continue;
    if (own[d] != wanted[d] && own[d] != 1 && wanted[d] != 1) {
      return c.Fail(StrCat("The size of tensor a (", own[d], ") must match the size of tensor b (", wanted[d],
                           ") at non-singleton dimension ", d));
    }
    own[d] = wanted[d] = own[d] == 1 ? wanted[d] : own[d];
  }
  c.Return(lazy::Gather(lazy::Expand(t, own), dim, lazy::Expand(index, wanted)));
}

}  // namespace hlokit::lazy::kernel
