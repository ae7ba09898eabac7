// SPDX-License-Identifier: Apache-2.0
// Rows of a weight, and sums, means and maxima of bags of them.
#include <limits>
#include <optional>
#include <string>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {

// weight, indices, padding_idx, scale_grad_by_freq, sparse
void Embedding(OpKernelContext& c) {
  const Tensor& weight = c.tensor(0);
  const Tensor& indices = c.tensor(1);
  if (weight.dim() != 2) return c.Fail("'weight' must be 2-D");
  IntList sizes = Sizes(indices);
  sizes.push_back(weight.size(1));
  const Tensor rows = lazy::IndexSelect(weight, 0, lazy::Reshape(indices, {indices.numel()}));
  c.Return(rows.defined() ? lazy::Reshape(rows, sizes) : rows);
}
void EmbeddingDenseBackward(OpKernelContext& c) { kernel::Record(c); }

namespace {

enum class BagMode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

struct Bags {
  Tensor weight;
  Tensor indices;  // s64 [n]
  Tensor bag;      // the number of the bag of each index, s64 [n]
  Tensor counted;  // indices other than padding, pred [n]; undefined if all count
  int64_t count = 0;
};

// Returns how many indices of each bag count.
Tensor BagSizes(const Bags& b, const Tensor& none) {
  const Tensor ones = b.counted.defined() ? lazy::To(b.counted, ElementType::kS64) : lazy::OnesLike(b.indices);
  return InvokeOp(Op::index_add, none, int64_t{0}, b.bag, ones);
}

Tensor SumOfBags(const Bags& b, const Tensor& per_sample_weights, bool scale_by_frequency) {
  const int64_t padding = -1;
  Tensor rows = InvokeOp(Op::embedding, b.weight, b.indices, padding, scale_by_frequency);
  if (per_sample_weights.defined()) rows = rows * lazy::Unsqueeze(per_sample_weights, 1);
  if (b.counted.defined()) rows = lazy::Where(lazy::Unsqueeze(b.counted, 1), rows, 0);
  const Tensor zeros = InvokeOp(Op::new_zeros, rows, IntList{b.count, b.weight.size(1)});
  return InvokeOp(Op::index_add, zeros, int64_t{0}, b.bag, rows);
}

// Returns the index whose row has the first maximum of each bag and column, 0 for an empty bag.
Tensor IndicesOfMaxima(OpKernelContext& c, const Bags& b) {
  const int64_t n = b.indices.size(0), columns = b.weight.size(1);
  const Tensor rows = lazy::IndexSelect(b.weight.Detach(), 0, b.indices);
  const Tensor bag = lazy::Expand(lazy::Unsqueeze(b.bag, 1), {n, columns});
  const Tensor zeros = InvokeOp(Op::new_zeros, rows, IntList{b.count, columns});
  Tensor source = rows;
  if (b.counted.defined()) {
    source = lazy::Where(lazy::Unsqueeze(b.counted, 1), rows, -std::numeric_limits<double>::infinity());
  }
  const Tensor most = InvokeOp(Op::scatter_reduce_two, zeros, int64_t{0}, bag, source, "amax", false);
  Tensor is_most = lazy::Eq(rows, lazy::Gather(most, 0, bag));
  if (b.counted.defined()) is_most = lazy::And(is_most, lazy::Unsqueeze(b.counted, 1));
  // The first position in the list of indices; n in a bag that has none.
  const Tensor position = lazy::Where(is_most, lazy::Expand(IotaAlong(c, n, 0, 2), {n, columns}), n);
  const Tensor last = lazy::Full({b.count, columns}, n, ElementType::kS64);
  const Tensor first = InvokeOp(Op::scatter_reduce_two, last, int64_t{0}, bag, position, "amin", true);
  const Tensor padded = InvokeOp(Op::constant_pad_nd, b.indices, IntList{0, 1}, 0);
  return lazy::Reshape(lazy::IndexSelect(padded, 0, lazy::Reshape(first, {b.count * columns})), {b.count, columns});
}

bool IsIndex(const Tensor& t) { return t.dtype() == ElementType::kS64 || t.dtype() == ElementType::kS32; }

// Checks the arguments and assigns indices to bags.
bool ReadBags(OpKernelContext& c, std::optional<int64_t> padding, bool include_last, Bags* b) {
  const Tensor &weight = c.tensor(0), &indices = c.tensor(1), &offsets = c.tensor(2);
  const int64_t mode = c.int_arg(4);
  std::string problem;
  if (weight.dim() != 2) {
    problem = "'weight' must be 2-D";
  } else if (!IsFloat(weight.dtype())) {
    problem = StrCat("\"embedding_bag\" not implemented for '", TypeName(weight.dtype()), "'");
  } else if (!IsIndex(indices) || !IsIndex(offsets)) {
    problem = "Expected indices and offsets to be tensors of integers";
  } else if (indices.dim() != 1) {
    problem = StrCat("input has to be 1D, but got ", indices.dim(), "D");
  } else if (offsets.dim() != 1) {
    problem = StrCat("offsets has to be 1D, but got ", offsets.dim(), "D");
  } else if (include_last && offsets.size(0) < 1) {
    problem = "include_last_offset: number of offsets should be at least 1";
  } else if (mode < 0 || mode > 2) {
    problem = StrCat("mode is 0 (sum), 1 (mean) or 2 (max), not ", mode);
  } else if (c.has(6) && mode != 0) {
    problem = "embedding_bag: per_sample_weights only supported with mode='sum'";
  } else if (c.has(6) && (c.tensor(6).dtype() != weight.dtype() || c.tensor(6).sizes() != indices.sizes())) {
    problem = "expected per_sample_weights to have the type of weight and the size of the indices";
  } else if (padding && (*padding < -weight.size(0) || *padding >= weight.size(0))) {
    problem = StrCat("padding_idx must be within the number of embeddings, -", weight.size(0), " through ",
                     weight.size(0) - 1, ", but got ", *padding);
  }
  if (!problem.empty()) {
    c.Fail(problem);
    return false;
  }
  b->weight = weight;
  b->indices = lazy::To(indices, ElementType::kS64);
  b->count = offsets.size(0) - (include_last ? 1 : 0);
  const int64_t n = indices.size(0);
  const Tensor starts = lazy::To(offsets, ElementType::kS64);
  // Bags start at their offsets: the number of starts up to an index, less one. An offset of n starts an empty bag.
  const Tensor marks = InvokeOp(Op::index_add, lazy::Full({n + 1}, 0, ElementType::kS64), int64_t{0},
                                lazy::Slice(starts, 0, 0, b->count), lazy::Full({b->count}, 1, ElementType::kS64));
  b->bag = lazy::Sub(InvokeOp(Op::cumsum, lazy::Slice(marks, 0, 0, n), int64_t{0}), 1);
  if (padding) b->counted = lazy::Ne(b->indices, *padding < 0 ? *padding + weight.size(0) : *padding);
  return true;
}

// -> output, offset2bag, bag_size, max_indices, as torch's CPU implementation returns them
void RunEmbeddingBag(OpKernelContext& c, std::optional<int64_t> padding) {
  Bags b;
  if (!ReadBags(c, padding, c.bool_arg(7), &b)) return;
  const BagMode mode = static_cast<BagMode>(c.int_arg(4));
  const ElementType type = c.tensor(2).dtype();
  const Tensor none = lazy::Full({b.count}, 0, ElementType::kS64);
  const auto results = [&](const Tensor& output, const Tensor& bag, const Tensor& sizes, const Tensor& places) {
    c.Return({output, bag.to(type), sizes.to(type), places.to(type)});
  };
  if (mode == BagMode::kSum) {
    const Tensor sum = SumOfBags(b, c.tensor(6), c.bool_arg(3));
    return results(sum, padding ? b.bag : lazy::Full({0}, 0, type), none, none);
  }
  const Tensor sizes = BagSizes(b, none);
  if (mode == BagMode::kMean) {
    const Tensor sum = SumOfBags(b, Tensor(), c.bool_arg(3));
    const Tensor divisor = lazy::To(InvokeOp(Op::clamp, sizes, 1), b.weight.dtype());
    return results(sum / lazy::Unsqueeze(divisor, 1), b.bag, sizes, sizes);
  }
  if (b.weight.size(0) == 0) return c.Fail("the maximum of an embedding without rows is not defined");
  const Tensor places = IndicesOfMaxima(c, b);
  const Tensor filled = lazy::Unsqueeze(lazy::Gt(sizes, 0), 1);
  results(lazy::Where(filled, lazy::Gather(b.weight, 0, places), 0), b.bag, sizes, places);
}

}  // namespace

// weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights?, include_last_offset[, padding_idx]
void EmbeddingBag(OpKernelContext& c) {
  if (c.op() == Op::embedding_bag) return RunEmbeddingBag(c, std::nullopt);
  if (c.op() == Op::embedding_bag_padding_idx) {
    return RunEmbeddingBag(c, c.has(8) ? std::optional<int64_t>(c.int_arg(8)) : std::nullopt);
  }
  // -1 is none.
  RunEmbeddingBag(c, c.int_arg(8) < 0 ? std::nullopt : std::optional<int64_t>(c.int_arg(8)));
}

}  // namespace hlokit::lazy::kernel
