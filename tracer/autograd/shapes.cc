// SPDX-License-Identifier: Apache-2.0
// Derivatives of ops that move elements, and of indexing.
#include <algorithm>
#include <numeric>

#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::derivative {
namespace {

int64_t Wrap(int64_t dim, int64_t rank) { return dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim; }
Tensor ZerosWithDims(Shape s, const Tensor& g) { return Zeros(s.dims(), g.dtype()); }

}  // namespace

void ViewLike(BackwardContext& c) { c.set(0, Reshape(c.grad_output(), Sizes(c.shape(0)))); }
void ExpandLike(BackwardContext& c) { c.set(0, SumToSize(c.grad_output(), c.shape(0).dims())); }
void Permute(BackwardContext& c) {
  const Dims dims = c.ints(1);
  const int64_t rank = static_cast<int64_t>(dims.size());
  IntList inverse(dims.size());
  for (int64_t i = 0; i < rank; ++i) inverse[Wrap(dims[i], rank)] = i;
  c.set(0, Permute(c.grad_output(), inverse));
}
void TransposeInt(BackwardContext& c) { c.set(0, Transpose(c.grad_output(), c.int_arg(1), c.int_arg(2))); }
void T(BackwardContext& c) { c.set(0, T(c.grad_output())); }

void SliceTensor(BackwardContext& c) {
  const Tensor zeros = ZerosWithDims(c.shape(0), c.grad_output());
  const auto bound = [&](size_t i) { return c.has(i) ? IValue(c.int_arg(i)) : IValue(); };
  c.set(0, InvokeOp(Op::slice_scatter, zeros, c.grad_output(), c.int_arg(1), bound(2), bound(3), c.int_arg(4)));
}
void SelectInt(BackwardContext& c) {
  c.set(0, InvokeOp(Op::select_scatter, ZerosWithDims(c.shape(0), c.grad_output()), c.grad_output(), c.int_arg(1),
                    c.int_arg(2)));
}
namespace {

// Concatenates gradients of chunks, with zeros for undefined ones.
Tensor Joined(BackwardContext& c, int64_t dim, bool stack) {
  Tensors parts;
  for (size_t k = 0; k < c.output_count(); ++k) parts.push_back(c.grad_output_or_zeros(k));
  return InvokeOp(stack ? Op::stack : Op::cat, parts, dim);
}

}  // namespace

void Split(BackwardContext& c) { c.set(0, Joined(c, Wrap(c.int_arg(2), c.shape(0).rank()), false)); }
void Unbind(BackwardContext& c) { c.set(0, Joined(c, Wrap(c.int_arg(1), c.shape(0).rank()), true)); }
void Cat(BackwardContext& c) {
  const int64_t dim = Wrap(c.int_arg(1), c.out_shape().rank());
  int64_t start = 0;
  for (size_t k = 0; k < c.list_size(0); ++k) {
    const Shape s = c.shape(0, k);
    if (s.rank() == 1 && s.element_count() == 0 && c.out_shape().rank() != 1) {
      c.set(0, ZerosWithDims(s, c.grad_output()), k);
      continue;
    }
    if (c.needs(0, k)) c.set(0, Narrow(c.grad_output(), dim, start, s.dim(dim)), k);
    start += s.dim(dim);
  }
}
void Stack(BackwardContext& c) {
  const int64_t dim = Wrap(c.int_arg(1), c.out_shape().rank());
  for (size_t k = 0; k < c.list_size(0); ++k) {
    if (c.needs(0, k)) c.set(0, Select(c.grad_output(), dim, static_cast<int64_t>(k)), k);
  }
}
void Flip(BackwardContext& c) { c.set(0, Flip(c.grad_output(), c.ints(1))); }
void Roll(BackwardContext& c) {
  IntList back;
  for (int64_t shift : c.ints(1)) back.push_back(-shift);
  c.set(0, InvokeOp(Op::roll, c.grad_output(), back, c.ints(2)));
}
void Repeat(BackwardContext& c) {
  // Folds each dimension into (repeats, size) and sums over the repeats.
  const Dims repeats = c.ints(1);
  const Shape s = c.shape(0);
  const size_t added = repeats.size() - static_cast<size_t>(s.rank());
  IntList folded, summed;
  for (size_t i = 0; i < repeats.size(); ++i) {
    summed.push_back(static_cast<int64_t>(folded.size()));
    folded.push_back(repeats[i]);
    folded.push_back(i < added ? 1 : s.dim(static_cast<int64_t>(i - added)));
  }
  c.set(0, Reshape(Sum(Reshape(c.grad_output(), folded), summed), Sizes(s)));
}
void TrilTriu(BackwardContext& c) { c.set(0, InvokeOp(c.op(), c.grad_output(), c.int_arg(1))); }
void ConstantPad(BackwardContext& c) {
  IntList back;
  for (int64_t p : c.ints(1)) back.push_back(-p);
  c.set(0, InvokeOp(Op::constant_pad_nd, c.grad_output(), back, 0));
}

void SliceScatter(BackwardContext& c) {
  const auto bound = [&](size_t i) { return c.has(i) ? IValue(c.int_arg(i)) : IValue(); };
  if (c.needs(0)) {
    const Tensor zeros = Zeros(c.shape(1).dims(), c.grad_output().dtype());
    c.set(0, InvokeOp(Op::slice_scatter, c.grad_output(), zeros, c.int_arg(2), bound(3), bound(4), c.int_arg(5)));
  }
  if (c.needs(1))
    c.set(1, InvokeOp(Op::slice_copy_Tensor, c.grad_output(), c.int_arg(2), bound(3), bound(4), c.int_arg(5)));
}
void SelectScatter(BackwardContext& c) {
  if (c.needs(0))
    c.set(0, InvokeOp(Op::select_scatter, c.grad_output(), Zeros(c.shape(1).dims(), c.grad_output().dtype()),
                      c.int_arg(2), c.int_arg(3)));
  if (c.needs(1)) c.set(1, InvokeOp(Op::select_copy_int, c.grad_output(), c.int_arg(2), c.int_arg(3)));
}
void Diagonal(BackwardContext& c) {
  c.set(0, InvokeOp(Op::diagonal_scatter, ZerosWithDims(c.shape(0), c.grad_output()), c.grad_output(), c.int_arg(1),
                    c.int_arg(2), c.int_arg(3)));
}
void DiagonalScatter(BackwardContext& c) {
  if (c.needs(0)) {
    c.set(0, InvokeOp(Op::diagonal_scatter, c.grad_output(), Zeros(c.shape(1).dims(), c.grad_output().dtype()),
                      c.int_arg(2), c.int_arg(3), c.int_arg(4)));
  }
  if (c.needs(1)) c.set(1, InvokeOp(Op::diagonal_copy, c.grad_output(), c.int_arg(2), c.int_arg(3), c.int_arg(4)));
}

namespace {

// Returns the indices of the elements of an as_strided view in the flattened tensor, [product of sizes].
Tensor StridedIndices(Dims size, Dims stride, int64_t offset) {
  Tensor places = Full(IntList(size.size(), 1), offset, ElementType::kS64);
  for (size_t d = 0; d < size.size(); ++d) {
    IntList sizes(size.size(), 1);
    sizes[d] = size[d];
    places = places + Reshape(Arange(size[d]) * Scalar(stride[d]), sizes);
  }
  int64_t count = 1;
  for (int64_t s : size) count *= s;
  return Reshape(places, {count});
}

}  // namespace

void AsStrided(BackwardContext& c) {
  // Indices may coincide: their gradients add up.
  const Shape s = c.shape(0);
  const Tensor places = StridedIndices(c.ints(1), c.ints(2), c.has(3) ? c.int_arg(3) : 0);
  const Tensor flat = Zeros({s.element_count()}, c.grad_output().dtype());
  c.set(0, Reshape(InvokeOp(Op::index_add, flat, 0, places, Reshape(c.grad_output(), {c.grad_output().numel()})),
                   Sizes(s)));
}
void AsStridedScatter(BackwardContext& c) {
  const IValue offset = c.has(4) ? IValue(c.int_arg(4)) : IValue();
  if (c.needs(0)) {
    const Tensor zeros = Zeros(c.shape(1).dims(), c.grad_output().dtype());
    c.set(0, InvokeOp(Op::as_strided_scatter, c.grad_output(), zeros, c.ints(2), c.ints(3), offset));
  }
  if (c.needs(1)) c.set(1, InvokeOp(Op::as_strided_copy, c.grad_output(), c.ints(2), c.ints(3), offset));
}

// ---- indexing ----

void IndexSelect(BackwardContext& c) {
  const Shape s = c.shape(0);
  const Tensor zeros = ZerosWithDims(s, c.grad_output());
  c.set(0, InvokeOp(Op::index_add, zeros, c.int_arg(1), c.in(2), c.grad_output()));
}
void IndexAdd(BackwardContext& c) {
  c.set(0, c.grad_output());
  if (c.needs(3)) {
    const Tensor part = Reshape(IndexSelect(c.grad_output(), c.int_arg(1), c.in(2)), Sizes(c.shape(3)));
    c.set(3, c.scalar(4).Is(1) ? part : part * c.scalar(4));
  }
}
void IndexCopy(BackwardContext& c) {
  if (c.needs(0))
    c.set(0, InvokeOp(Op::index_copy, c.grad_output(), c.int_arg(1), c.in(2),
                      Zeros(c.shape(3).dims(), c.grad_output().dtype())));
  if (c.needs(3)) c.set(3, Reshape(IndexSelect(c.grad_output(), c.int_arg(1), c.in(2)), Sizes(c.shape(3))));
}
void GatherOp(BackwardContext& c) {
  c.set(0, ScatterAdd(ZerosWithDims(c.shape(0), c.grad_output()), c.int_arg(1), c.in(2), c.grad_output()));
}
namespace {

// Returns the gradient of the scattered source: elements beyond the index were not used.
Tensor SourceGradient(BackwardContext& c) {
  const Tensor part = Gather(c.grad_output(), c.int_arg(1), c.in(2));
  const Shape s = c.shape(3);
  if (!part.defined() || part.sizes() == s.dims()) return part;
  IntList pad;
  for (int64_t d = s.rank(); d-- > 0;) pad.insert(pad.end(), {0, s.dim(d) - part.size(d)});
  return InvokeOp(Op::constant_pad_nd, part, pad, 0);
}

}  // namespace

void ScatterSrc(BackwardContext& c) {
  if (c.needs(0)) c.set(0, InvokeOp(Op::scatter_value, c.grad_output(), c.int_arg(1), c.in(2), 0));
  if (c.needs(3)) c.set(3, SourceGradient(c));
}
void ScatterValue(BackwardContext& c) {
  c.set(0, InvokeOp(Op::scatter_value, c.grad_output(), c.int_arg(1), c.in(2), 0));
}
void ScatterAdd(BackwardContext& c) {
  c.set(0, c.grad_output());
  if (c.needs(3)) c.set(3, SourceGradient(c));
}
void ScatterReduceTwo(BackwardContext& c) {
  const int64_t dim = c.int_arg(1);
  const Tensor index = c.in(2), g = c.grad_output();
  const std::string_view reduce = c.str(4);
  const bool include_self = c.bool_arg(5);
  const Tensor hits = ScatterAdd(Zeros(c.shape(0).dims(), g.dtype()), dim, index, Full(index.sizes(), 1, g.dtype()));
  Tensor self_part, src_part;
  if (reduce == "sum") {
    self_part = g;
    src_part = Gather(g, dim, index);
  } else if (reduce == "mean") {
    Tensor count = include_self ? Add(hits, 1) : hits;
    count = MaskedFill(count, Eq(count, 0), 1);
    self_part = g / count;
    src_part = Gather(g / count, dim, index);
  } else if (reduce == "prod") {
    const Tensor self = c.in(0), src = c.in(3), out = c.out();
    // As in torch, the product divided by each factor, with a single zero factor removed first.
    const Tensor masked_self = MaskedFill(self, Eq(self, 0), 1);
    const Tensor self_product = InvokeOp(Op::scatter_reduce_two, masked_self, dim, index, src, "prod", include_self);
    self_part = g * self_product / masked_self;
    const Tensor zero = Eq(src, 0);
    const Tensor zeros_there =
        Gather(ScatterAdd(ZerosLike(To(self, g.dtype())), dim, index, To(zero, g.dtype())), dim, index);
    const Tensor single = And(zero, Eq(zeros_there, 1));
    const Tensor masked_src = MaskedFill(src, single, 1);
    const Tensor without =
        Gather(InvokeOp(Op::scatter_reduce_two, self, dim, index, masked_src, "prod", include_self), dim, index);
    src_part = Where(single, Gather(g, dim, index) * without, Gather(g * out, dim, index) / MaskedFill(src, zero, 1));
    src_part = MaskedFill(src_part, And(zero, Not(single)), 0);
  } else {
    const Tensor value = Gather(c.out(), dim, index);
    const Tensor self_hit = To(Eq(c.in(0), c.out()), g.dtype());
    const Tensor src_hit = To(Eq(c.in(3), value), g.dtype());
    const Tensor start = include_self ? self_hit : ZerosLike(self_hit);
    Tensor count = ScatterAdd(start, dim, index, src_hit);
    count = MaskedFill(count, Eq(count, 0), 1);
    self_part = self_hit * g / count;
    src_part = src_hit * Gather(g / count, dim, index);
  }
  if (!include_self) self_part = Where(Gt(hits, 0), ZerosLike(g), g);
  c.set(0, self_part);
  c.set(3, src_part);
}

void Index(BackwardContext& c) {
  Tensors indices = c.list(1);
  c.set(0, InvokeOp(Op::index_put, ZerosWithDims(c.shape(0), c.grad_output()), indices, c.grad_output(), true));
}
void IndexPut(BackwardContext& c) {
  const Tensors indices = c.list(1);
  if (c.needs(0)) {
    c.set(0, c.bool_arg(3)
                 ? c.grad_output()
                 : InvokeOp(Op::index_put, c.grad_output(), indices, Zeros({}, c.grad_output().dtype()), false));
  }
  if (c.needs(2)) c.set(2, InvokeOp(Op::index_Tensor, c.grad_output(), indices));
}
void MaskedSelect(BackwardContext& c) {
  const Tensor zeros = ZerosWithDims(c.shape(0), c.grad_output());
  IntList sizes = Sizes(c.shape(0));
  const Tensor mask = c.in(1);
  // In the broadcast shape; summed to the argument's afterwards.
  const Tensor wide = Where(mask, zeros, zeros);
  c.set(0, InvokeOp(Op::masked_scatter, wide, mask, c.grad_output()));
}
void Embedding(BackwardContext& c) {
  c.set(0, InvokeOp(Op::embedding_dense_backward, c.grad_output(), c.in(1), c.shape(0).dim(0), c.int_arg(2),
                    c.bool_arg(3)));
}

}  // namespace hlokit::lazy::derivative
