// SPDX-License-Identifier: Apache-2.0
// Indexing ops with several nodes, and ops whose result size depends on values, which run on the host.
#include <algorithm>
#include <optional>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/grad_function.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/ops/host_values.h"

namespace hlokit::lazy::kernel {
namespace {

// Returns the coordinates of nonzero elements, row-major.
std::vector<std::vector<int64_t>> NonzeroIndices(const Literal& x) {
  const absl::Span<const int64_t> dims = x.shape().dims();
  const size_t width = static_cast<size_t>(BytesOf(x.shape().element_type()));
  std::vector<std::vector<int64_t>> places;
  std::vector<int64_t> at(dims.size(), 0);
  for (int64_t i = 0; i < x.element_count(); ++i) {
    if (LoadScalar(x.shape().element_type(), x.data() + static_cast<size_t>(i) * width).ToBool()) places.push_back(at);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  return places;
}

bool IsMask(const Tensor& t) { return t.dtype() == ElementType::kPred || t.dtype() == ElementType::kU8; }

// Returns the row-major indices that a mask selects. Nullopt after an error.
std::optional<std::vector<int64_t>> MarkedIndices(OpKernelContext& c, const Tensor& mask) {
  if (mask.defined() && !IsMask(mask)) {
    c.Fail("only boolean masks are supported");
    return std::nullopt;
  }
  const std::optional<Literal> value = FetchOnHost(c, mask);
  if (!value) return std::nullopt;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < value->element_count(); ++i) {
    if (value->values<uint8_t>()[i] != 0) places.push_back(i);
  }
  return places;
}

// Whether a mask has the sizes of a tensor's dimensions from `first` on.
bool FitsAt(const Tensor& mask, const Tensor& self, int64_t first) {
  if (first + mask.dim() > self.dim()) return false;
  for (int64_t d = 0; d < mask.dim(); ++d) {
    if (mask.size(d) != self.size(first + d)) return false;
  }
  return true;
}

// Converts indices to integers of one shape; masks become the coordinates that they select.
bool ExpandIndices(OpKernelContext& c, const Tensor& self, Tensors* indices) {
  Tensors flat;
  for (const Tensor& index : *indices) {
    if (!index.defined() || !IsMask(index)) {
      if (index.defined() && !IsInteger(index.dtype())) {
        c.Fail("tensors used as indices must be long, int, byte or bool tensors");
        return false;
      }
      flat.push_back(index);
      continue;
    }
    if (!FitsAt(index, self, static_cast<int64_t>(flat.size()))) {
      c.Fail("the shape of the mask does not match that of the indexed tensor");
      return false;
    }
    const std::optional<Literal> mask = FetchOnHost(c, index);
    if (!mask) return false;
    const std::vector<std::vector<int64_t>> places = NonzeroIndices(*mask);
    for (int64_t d = 0; d < index.dim(); ++d) {
      std::vector<int64_t> column;
      for (const std::vector<int64_t>& place : places) column.push_back(place[d]);
      flat.push_back(UploadS64(c, {static_cast<int64_t>(column.size())}, column));
    }
  }
  if (static_cast<int64_t>(flat.size()) > self.dim()) {
    c.Fail("too many indices for the tensor");
    return false;
  }
  IntList shape;
  for (const Tensor& index : flat) {
    if (!index.defined()) continue;
    const Dims sizes = index.sizes();
    IntList merged(std::max(shape.size(), sizes.size()), 1);
    for (size_t i = 0; i < merged.size(); ++i) {
      const int64_t a = i < shape.size() ? shape[shape.size() - 1 - i] : 1;
      const int64_t b = i < sizes.size() ? sizes[sizes.size() - 1 - i] : 1;
      if (a != b && a != 1 && b != 1) {
        c.Fail("shape mismatch: indexing tensors could not be broadcast together");
        return false;
      }
      merged[merged.size() - 1 - i] = a == 1 ? b : a;
    }
    shape = merged;
  }
  for (Tensor& index : flat) {
    if (index.defined() && Dims(shape) != index.sizes()) index = lazy::Expand(index, shape);
  }
  *indices = std::move(flat);
  return true;
}

bool NoIndex(const Tensors& indices) {
  return std::none_of(indices.begin(), indices.end(), [](const Tensor& t) { return t.defined(); });
}

}  // namespace

void Index(OpKernelContext& c) {
  Tensors indices = c.list(1);
  if (NoIndex(indices)) return c.Return(InvokeOp(Op::clone, c.tensor(0)));
  if (!ExpandIndices(c, c.tensor(0), &indices)) return;
  c.Return(lazy::Record(c.device(), c.op(), {c.args()[0], IValue(indices)}));
}
void IndexPut(OpKernelContext& c) {
  Tensors indices = c.list(1);
  if (c.tensor(2).dtype() != c.tensor(0).dtype()) {
    return c.Fail(StrCat("Index put requires the source and destination dtypes match, got ",
                         ToString(c.tensor(0).dtype()), " for the destination and ", ToString(c.tensor(2).dtype()),
                         " for the source."));
  }
  if (NoIndex(indices)) {  // the whole tensor
    const Tensor all = lazy::Expand(c.tensor(2), Sizes(c.tensor(0)));
    return c.Return(c.bool_arg(3) ? c.tensor(0) + all : InvokeOp(Op::clone, all));
  }
  // One mask over the whole tensor and one number: a select, whose size does not depend on the mask.
  if (indices.size() == 1 && indices[0].defined() && IsMask(indices[0]) && c.tensor(2).numel() == 1 && !c.bool_arg(3)) {
    Tensor mask = indices[0];
    IntList sizes = Sizes(mask);
    sizes.resize(c.tensor(0).dim(), 1);
    mask = lazy::Reshape(mask, sizes);
    return c.Return(lazy::To(lazy::Where(mask, lazy::Reshape(c.tensor(2), {}), c.tensor(0)), c.tensor(0).dtype()));
  }
  if (!ExpandIndices(c, c.tensor(0), &indices)) return;
  c.Return(lazy::Record(c.device(), c.op(), {c.args()[0], IValue(indices), c.args()[2], c.args()[3]}));
}
void IndexPutInPlace(OpKernelContext& c) {
  WriteInPlace(c.tensor(0), InvokeOp(Op::index_put, c.args()[0], c.args()[1], c.args()[2], c.args()[3]));
  c.Return(c.tensor(0));
}

// self, dim, index, value
void IndexFill(OpKernelContext& c) {
  const Tensor &self = c.tensor(0), &index = c.tensor(2);
  const bool number = c.op() == Op::index_fill_int_Scalar;
  if (!number && c.tensor(3).dim() != 0) {
    return c.Fail(StrCat("index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                         c.tensor(3).dim(), " dimension(s)."));
  }
  if (index.dtype() != ElementType::kS64) return c.Fail("index_fill_(): Expected dtype int64 for index.");
  if (index.dim() > 1) return c.Fail("Index has to be a vector/scalar");
  const int64_t dim = c.Dim(c.int_arg(1), self.dim());
  if (c.failed()) return;
  const Tensor x = self.dim() == 0 ? lazy::Reshape(self, {1}) : self;
  IntList sizes = Sizes(x);
  sizes[dim] = index.numel();
  const Tensor value =
      number ? lazy::Full(sizes, c.scalar(3), self.dtype()) : lazy::Expand(lazy::To(c.tensor(3), self.dtype()), sizes);
  const Tensor places = lazy::Reshape(index, {index.numel()});
  const Tensor filled = InvokeOp(Op::index_copy, x, dim, places, value);
  c.Return(self.dim() == 0 ? lazy::Reshape(filled, {}) : filled);
}

void SortOp(OpKernelContext& c) { kernel::Record(c); }
void Argsort(OpKernelContext& c) { c.Return(InvokeOpMultiOutput(Op::sort, c.tensor(0), c.args()[1], c.args()[2])[1]); }
void OneHot(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  int64_t classes = c.int_arg(1);
  if (x.dtype() != ElementType::kS64) return c.Fail("one_hot is only applicable to index tensors, of s64");
  if (classes < 0) {
    CountFallback(c);
    const std::optional<Literal> value = FetchOnHost(c, x);
    if (!value) return;
    classes = 0;
    for (int64_t v : value->values<int64_t>()) classes = std::max(classes, v + 1);
  }
  c.Return(lazy::To(lazy::Eq(lazy::Unsqueeze(x, -1), lazy::Arange(classes)), ElementType::kS64));
}

// ---- sizes that depend on values ----

void Nonzero(OpKernelContext& c) {
  CountFallback(c);
  const std::optional<Literal> value = FetchOnHost(c, c.tensor(0));
  if (!value) return;
  std::vector<int64_t> flat;
  const std::vector<std::vector<int64_t>> places = NonzeroIndices(*value);
  for (const std::vector<int64_t>& place : places) flat.insert(flat.end(), place.begin(), place.end());
  c.Return(UploadS64(c, {static_cast<int64_t>(places.size()), c.tensor(0).dim()}, flat));
}
void MaskedSelect(OpKernelContext& c) {
  CountFallback(c);
  // Broadcasts to a common shape, flattens, takes the selected elements.
  const Tensor shape_of = lazy::Where(c.tensor(1), c.tensor(0), c.tensor(0));
  if (!shape_of.defined()) return c.Return(shape_of);
  const Tensor mask = lazy::Expand(c.tensor(1), Sizes(shape_of));
  const std::optional<std::vector<int64_t>> places = MarkedIndices(c, mask);
  if (!places) return;
  const Tensor flat = lazy::Reshape(lazy::Expand(c.tensor(0), Sizes(shape_of)), {shape_of.numel()});
  c.Return(lazy::IndexSelect(flat, 0, UploadS64(c, {static_cast<int64_t>(places->size())}, *places)));
}
void MaskedScatter(OpKernelContext& c) {
  CountFallback(c);
  const Tensor& self = c.tensor(0);
  const Tensor mask = lazy::Expand(c.tensor(1), Sizes(self));
  const std::optional<std::vector<int64_t>> places = MarkedIndices(c, mask);
  if (!places) return;
  const int64_t count = static_cast<int64_t>(places->size());
  if (self.dtype() != c.tensor(2).dtype()) return c.Fail("expected self and source to have same dtypes");
  if (count > c.tensor(2).numel()) return c.Fail("the source has fewer elements than the mask marks");
  const Tensor source = lazy::Slice(lazy::Reshape(c.tensor(2), {c.tensor(2).numel()}), 0, 0, count);
  const Tensor flat = lazy::Reshape(self, {self.numel()});
  c.Return(lazy::Reshape(InvokeOp(Op::index_put, flat, Tensors{UploadS64(c, {count}, *places)}, source), Sizes(self)));
}

// The value as a source of the index's sizes. self, dim, index, value, reduce of scatter.value_reduce
void ScatterValue(OpKernelContext& c) {
  const Tensor source = InvokeOp(Op::full_like, c.tensor(2), c.scalar(3), c.tensor(0).dtype());
  if (!source.defined()) return c.Return(source);
  Args args = c.args();
  args[3] = source;
  if (c.op() == Op::scatter_value) return c.Return(lazy::Record(c.device(), Op::scatter_src, args));
  c.Return(Dispatch(Op::scatter_reduce, std::move(args)));
}

}  // namespace hlokit::lazy::kernel
