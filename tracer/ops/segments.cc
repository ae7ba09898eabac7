// SPDX-License-Identifier: Apache-2.0
// Reductions of slices by index or by segment; norms of slices that are bounded.
#include <algorithm>
#include <limits>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"

namespace hlokit::lazy::kernel {

// self, dim, index, source, reduce, include_self: like scatter_reduce with the index of each slice for its elements.
void IndexReduce(OpKernelContext& c) {
  const Tensor &self = c.tensor(0), &index = c.tensor(2), &source = c.tensor(3);
  const int64_t dim = c.Dim(c.int_arg(1), self.dim());
  if (c.failed()) return;
  const std::string_view reduce = c.str(4);
  if (reduce != "prod" && reduce != "mean" && reduce != "amax" && reduce != "amin") {
    return c.Fail(
        StrCat("index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, "."));
  }
  if (index.dim() > 1) {
    return c.Fail(StrCat("index_reduce_(): Index is supposed to be a vector, but got dim: ", index.dim(),
                         " with type: ", ToString(index.dtype()), " and size: ", ListToString(index.sizes())));
  }
  if (index.dtype() != ElementType::kS64 && index.dtype() != ElementType::kS32) {
    return c.Fail("index_reduce_(): Expected dtype int32/int64 for index");
  }
  if (source.dtype() != self.dtype()) return c.Fail("index_reduce_(): self and source must have the same scalar type");
  const int64_t slices = source.dim() == 0 ? 1 : source.size(dim);
  if (index.numel() != slices) {
    return c.Fail("index_reduce_(): Number of indices should be equal to source.size(dim)");
  }
  if (source.dim() != self.dim()) return c.Fail("index_reduce_(): source and self have different ranks");
  IntList line(static_cast<size_t>(source.dim()), 1);
  if (source.dim() > 0) line[dim] = slices;
  const Tensor places = lazy::Expand(lazy::Reshape(index, line), Sizes(source));
  c.Return(InvokeOp(Op::scatter_reduce_two, self, dim, places, source, reduce, c.bool_arg(5)));
}

// data, reduce, lengths, indices, offsets, axis, unsafe, initial
void SegmentReduce(OpKernelContext& c) {
  const Tensor& data = c.tensor(0);
  const std::string_view reduce = c.str(1);
  if (data.numel() == 0 && data.dim() == 0) return c.Fail("segment_reduce(): Expected data.dim() >= 1");
  if (c.has(3)) return c.Fail("segment_reduce(): indices based reduction is not supported yet.");
  if (!c.has(2) && !c.has(4)) {
    return c.Fail("segment_reduce(): Either lengths or offsets must be defined.");
  }
  const Tensor& given = c.has(2) ? c.tensor(2) : c.tensor(4);
  const int64_t axis = c.Dim(c.int_arg(5), data.dim());
  if (c.failed()) return;
  if (axis != 0 || given.dim() != 1) {
    return c.Fail("segment_reduce(): only segments of axis 0 with lengths or offsets of one dimension are supported");
  }
  const bool sum = reduce == "sum", mean = reduce == "mean";
  std::string_view scatter = sum || mean ? "sum" : reduce == "max" ? "amax" : reduce == "min" ? "amin" : reduce;
  if (scatter != "sum" && scatter != "amax" && scatter != "amin" && scatter != "prod") {
    return c.Fail(StrCat("unsupported reduction given! ", reduce));
  }
  if (!IsFloat(data.dtype())) return c.Fail("segment_reduce(): expected a tensor of floats");
  const Tensor offsets = c.has(4) && !c.has(2) ? lazy::To(given, ElementType::kS64) : Tensor();
  const Tensor lengths =
      offsets.defined() ? lazy::Slice(offsets, 0, 1, offsets.size(0)) - lazy::Slice(offsets, 0, 0, offsets.size(0) - 1)
                        : lazy::To(given, ElementType::kS64);
  if (!lengths.defined()) return c.Return(lengths);
  const int64_t segments = lengths.size(0), n = data.size(0);
  // The segment of each element: the number of segments that end at or before it.
  const Tensor ends =
      offsets.defined() ? lazy::Slice(offsets, 0, 1, offsets.size(0)) : InvokeOp(Op::cumsum, lengths, 0);
  const Tensor segment = lazy::Sum(lazy::Ge(lazy::Unsqueeze(lazy::Arange(n), 1), ends), {1});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double none = sum || mean ? 0 : scatter == "amax" ? -kInfinity : scatter == "amin" ? kInfinity : 1;
  IntList sizes = Sizes(data), line(static_cast<size_t>(data.dim()), 1);
  // Elements after the last segment go to a row of their own.
  sizes[0] = segments + 1;
  line[0] = n;
  const Tensor start = lazy::Full(sizes, c.has(7) ? c.scalar(7) : Scalar(none), data.dtype());
  const Tensor places = lazy::Expand(lazy::Reshape(segment, line), Sizes(data));
  Tensor result = InvokeOp(Op::scatter_reduce_two, start, 0, places, data, scatter, true);
  result = lazy::Slice(result, 0, 0, segments);
  if (mean) {
    line[0] = segments;
    const Tensor count = lazy::Reshape(lengths, line);
    const Tensor divided = result / InvokeOp(Op::clamp, count, 1);
    const double empty = c.has(7) ? c.float_arg(7) : std::numeric_limits<double>::quiet_NaN();
    result = lazy::Where(lazy::Gt(count, 0), divided, Scalar(empty));
  }
  c.Return(lazy::To(result, data.dtype()));
}

// self, p, dim, maxnorm: scales the slices along `dim` whose norm is larger.
void Renorm(OpKernelContext& c) {
  const Tensor& self = c.tensor(0);
  const double p = c.float_arg(1), largest = c.float_arg(3);
  if (!(p > 0)) return c.Fail("non-positive-norm not supported");
  if (!(largest >= 0)) return c.Fail(StrCat("expected maxnorm to be >= 0 but got ", FormatDouble(largest, 9)));
  if (self.dim() < 2) return c.Fail(StrCat("input needs at least 2 dimensions, got ", self.dim(), " dimensions"));
  const int64_t dim = c.Dim(c.int_arg(2), self.dim());
  if (c.failed()) return;
  IntList others;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dim) others.push_back(d);
  }
  const Tensor norm = InvokeOp(Op::linalg_vector_norm, self, c.scalar(1), others, true);
  const Tensor factor =
      lazy::Where(lazy::Gt(norm, largest), lazy::Reciprocal(lazy::Add(norm, 1e-7)) * Scalar(largest), Scalar(1.0));
  c.Return(self * factor);
}

}  // namespace hlokit::lazy::kernel
