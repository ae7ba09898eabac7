// SPDX-License-Identifier: Apache-2.0
// Views and other changes of shape. Each records one node on its input.
#include <algorithm>
#include <numeric>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/grad_function.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::kernel {
namespace {

Tensor Node(OpKernelContext& c, Op op, std::initializer_list<IValue> args) {
  Outputs out = lazy::Record(c.device(), op, std::vector<IValue>(args));
  return out[0];
}
Tensor ViewAs(OpKernelContext& c, const Tensor& t, Dims sizes) { return Node(c, Op::view_node, {t, sizes}); }

// Infers a size of -1.
bool Infer(OpKernelContext& c, int64_t elements, IntList* sizes) {
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& size : *sizes) {
    if (size == -1 && open == nullptr) {
      open = &size;
    } else if (size < 0) {
      c.Fail("invalid shape dimension");
      return false;
    } else {
      known *= size;
    }
  }
  if (open != nullptr) {
    if (known == 0 || elements % known != 0) {
      c.Fail(StrCat("shape is invalid for input of size ", elements));
      return false;
    }
    *open = elements / known;
    known *= *open;
  }
  if (known != elements) {
    c.Fail(StrCat("shape is invalid for input of size ", elements));
    return false;
  }
  return true;
}

Tensor SliceOf(OpKernelContext& c, const Tensor& t, int64_t dim, int64_t start, int64_t length) {
  IntList starts(t.dim(), 0), sizes = Sizes(t);
  starts[dim] = start;
  sizes[dim] = length;
  return Node(c, Op::generic_slice, {t, starts, sizes});
}

Tensor PermuteOf(OpKernelContext& c, const Tensor& t, const IntList& dims) {
  return Node(c, Op::permute_node, {t, dims});
}

}  // namespace

void View(OpKernelContext& c) {
  IntList sizes(c.ints(1).begin(), c.ints(1).end());
  if (Infer(c, c.tensor(0).numel(), &sizes)) c.Return(ViewAs(c, c.tensor(0), sizes));
}
void Flatten(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const int64_t first = c.Dim(c.int_arg(1), t.dim()), last = c.Dim(c.int_arg(2), t.dim());
  if (c.failed()) return;
  if (t.dim() == 0) return c.Return(lazy::Reshape(t, {1}));
  if (first > last) return c.Fail("start_dim cannot come after end_dim");
  IntList sizes;
  int64_t joined = 1;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d < first || d > last) sizes.push_back(t.size(d));
    if (d >= first && d <= last) joined *= t.size(d);
    if (d == last) sizes.push_back(joined);
  }
  c.Return(lazy::Reshape(t, sizes));
}
void Expand(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  IntList sizes(c.ints(1).begin(), c.ints(1).end());
  const int64_t added = static_cast<int64_t>(sizes.size()) - t.dim();
  if (added < 0) return c.Fail("the number of sizes must be at least the number of dimensions");
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) {
    if (sizes[i] != -1) continue;
    if (i < added) return c.Fail("-1 cannot stand for a new dimension");
    sizes[i] = t.size(i - added);
  }
  c.Return(Node(c, Op::expand_node, {t, sizes}));
}
void Permute(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  IntList dims;
  for (int64_t d : c.ints(1)) dims.push_back(c.Dim(d, t.dim()));
  IntList sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return c.Fail("repeated dim in permute");
  }
  if (static_cast<int64_t>(dims.size()) != t.dim()) return c.Fail("number of dims does not match the tensor");
  if (!c.failed()) c.Return(PermuteOf(c, t, dims));
}
void TransposeInt(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  IntList dims(t.dim());
  std::iota(dims.begin(), dims.end(), 0);
  const int64_t a = c.Dim(c.int_arg(1), t.dim()), b = c.Dim(c.int_arg(2), t.dim());
  if (c.failed()) return;
  if (t.dim() > 0) std::swap(dims[a], dims[b]);
  c.Return(PermuteOf(c, t, dims));
}
void T(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (t.dim() > 2) return c.Fail("t() expects a tensor with <= 2 dimensions");
  c.Return(PermuteOf(c, t, t.dim() == 2 ? IntList{1, 0} : t.dim() == 1 ? IntList{0} : IntList{}));
}
void Unsqueeze(OpKernelContext& c) {
  IntList sizes = Sizes(c.tensor(0));
  const int64_t dim = c.Dim(c.int_arg(1), c.tensor(0).dim() + 1);
  if (c.failed()) return;
  sizes.insert(sizes.begin() + dim, 1);
  c.Return(ViewAs(c, c.tensor(0), sizes));
}
void Squeeze(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const bool one = c.args().size() > 1;
  const int64_t dim = one ? c.Dim(c.int_arg(1), t.dim()) : -1;
  if (c.failed()) return;
  IntList sizes;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.size(d) != 1 || (one && d != dim)) sizes.push_back(t.size(d));
  }
  c.Return(ViewAs(c, t, sizes));
}
void SliceTensor(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (t.dim() == 0) return c.Fail("slice() cannot be applied to a 0-dim tensor.");
  const int64_t dim = c.Dim(c.int_arg(1), t.dim());
  if (c.failed()) return;
  const int64_t size = t.size(dim), step = c.int_arg(4);
  if (step <= 0) return c.Fail("slice step must be positive");
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t start = c.has(2) ? clamp(c.int_arg(2)) : 0;
  const int64_t end = std::max(start, c.has(3) ? clamp(c.int_arg(3)) : size);
  if (step == 1) return c.Return(SliceOf(c, t, dim, start, end - start));
  c.Return(Node(c, Op::select_node, {t, dim, start, end, step}));
}
void SelectInt(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (t.dim() == 0) return c.Fail("select() cannot be applied to a 0-dim tensor.");
  const int64_t dim = c.Dim(c.int_arg(1), t.dim());
  if (c.failed()) return;
  const int64_t index = c.int_arg(2) < 0 ? c.int_arg(2) + t.size(dim) : c.int_arg(2);
  if (index < 0 || index >= t.size(dim)) {
    return c.Fail(
        StrCat("index ", c.int_arg(2), " out of range for tensor of size ", t.size(dim), " at dimension ", dim));
  }
  IntList sizes = Sizes(t);
  sizes.erase(sizes.begin() + dim);
  const Tensor part = Node(c, Op::select_node, {t, dim, index, index + 1, 1});
  if (part.defined())
    c.Return(ViewAs(c, part, sizes));
  else
    c.Return(part);
}
void Narrow(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (t.dim() == 0) return c.Fail("narrow() cannot be applied to a 0-dim tensor.");
  const int64_t dim = c.Dim(c.int_arg(1), t.dim()), length = c.int_arg(3);
  if (c.failed()) return;
  const int64_t size = t.size(dim), start = c.int_arg(2) < 0 ? c.int_arg(2) + size : c.int_arg(2);
  if (length < 0) return c.Fail("narrow(): length must be non-negative.");
  if (start < 0 || start > size || length > size - start) {
    return c.Fail(StrCat("start (", c.int_arg(2), ") + length (", length, ") exceeds dimension size (", size, ")."));
  }
  c.Return(lazy::Slice(t, dim, start, start + length));
}
void Movedim(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const int64_t from = c.Dim(c.int_arg(1), t.dim()), to = c.Dim(c.int_arg(2), t.dim());
  if (c.failed()) return;
  if (t.dim() == 0) return c.Return(lazy::Permute(t, {}));
  IntList dims;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d != from) dims.push_back(d);
  }
  dims.insert(dims.begin() + to, from);
  c.Return(lazy::Permute(t, dims));
}

namespace {

// Each part is a tensor and a node.
constexpr int64_t kMaxParts = 1 << 16;
constexpr int64_t kMaxListedParts = 1 << 12;  // each has a copy of the list of sizes
constexpr std::string_view kTooManyParts = "the tensor would have too many parts";

void SplitBySizes(OpKernelContext& c, const Tensor& t, int64_t dim, Dims sizes) {
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0) {
      return c.Fail(StrCat("split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=",
                           ListToString(sizes)));
    }
    if (__builtin_add_overflow(total, size, &total)) total = -1;
    if (total < 0 || total > t.size(dim)) break;
  }
  if (total != t.size(dim)) {
    return c.Fail(StrCat("split_with_sizes expects split_sizes to sum exactly to ", t.size(dim),
                         " (input tensor's size at dimension ", dim, "), but got split_sizes=", ListToString(sizes)));
  }
  Outputs parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    parts.push_back(SliceOf(c, t, dim, start, size));
    start += size;
  }
  c.Return(std::move(parts));
}

}  // namespace

void Split(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const int64_t dim = c.Dim(c.int_arg(2), t.dim()), size = c.int_arg(1);
  if (c.failed()) return;
  if (t.dim() == 0) return c.Fail("split expects at least a 1-dimensional tensor");
  if (size < 0 || (size == 0 && t.size(dim) != 0)) return c.Fail("split_size must be positive");
  IntList sizes;
  if (size == 0) sizes.push_back(0);
  if (size > 0 && t.size(dim) / size > kMaxParts) return c.Fail(kTooManyParts);
  for (int64_t at = 0; size > 0 && (at < t.size(dim) || at == 0); at += size) {
    sizes.push_back(std::min(size, t.size(dim) - at));
  }
  SplitBySizes(c, t, dim, sizes);
}
void SplitWithSizes(OpKernelContext& c) {
  if (c.tensor(0).dim() == 0) return c.Fail("split expects at least a 1-dimensional tensor");
  if (c.ints(1).size() > kMaxListedParts) return c.Fail(kTooManyParts);
  const int64_t dim = c.Dim(c.int_arg(2), c.tensor(0).dim());
  if (!c.failed()) SplitBySizes(c, c.tensor(0), dim, c.ints(1));
}
void Chunk(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const int64_t dim = c.Dim(c.int_arg(2), t.dim()), chunks = c.int_arg(1);
  if (c.failed() || chunks <= 0) return c.Fail("chunks must be positive");
  if (t.dim() != 0 && t.size(dim) == 0) {  // number of chunks for an empty dimension
    return c.Return(InvokeOpMultiOutput(
        Op::split_with_sizes, t, IntList(static_cast<size_t>(std::min<int64_t>(chunks, kMaxListedParts)), 0), dim));
  }
  c.Return(InvokeOpMultiOutput(Op::split_Tensor, t, (t.size(dim) - 1) / chunks + 1, dim));
}
void Unbind(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const int64_t dim = c.Dim(c.int_arg(1), t.dim());
  if (c.failed()) return;
  IntList sizes = Sizes(t);
  if (sizes.empty()) return c.Fail("dimension specified as 0 but tensor has no dimensions");
  if (t.size(dim) > kMaxParts) return c.Fail(kTooManyParts);
  sizes.erase(sizes.begin() + dim);
  Outputs parts;
  for (int64_t i = 0; i < t.size(dim); ++i) {
    const Tensor part = Node(c, Op::select_node, {t, dim, i, i + 1, 1});
    if (!part.defined()) return c.Return(part);
    parts.push_back(ViewAs(c, part, sizes));
  }
  c.Return(std::move(parts));
}
void Unfold(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const int64_t dim = c.Dim(c.int_arg(1), t.dim()), size = c.int_arg(2), step = c.int_arg(3);
  if (c.failed()) return;
  const int64_t max_size = t.dim() == 0 ? 1 : t.size(dim);
  if (step <= 0) return c.Fail(StrCat("step is ", step, " but must be > 0"));
  if (size < 0) return c.Fail(StrCat("size is ", size, " but must be >= 0"));
  if (size > max_size) {
    return c.Fail(StrCat("maximum size for tensor at dimension ", dim, " is ", max_size, " but size is ", size));
  }
  if (t.dim() == 0) return c.Return(size == 0 ? lazy::Zeros({0}, t.dtype()) : lazy::View(t, {1}));
  const int64_t windows = (t.size(dim) - size) / step + 1;
  if (windows > kMaxParts) return c.Fail(kTooManyParts);
  Tensors parts;
  for (int64_t i = 0; i < windows; ++i) {
    const int64_t at = i * step;
    const Tensor part = lazy::Unsqueeze(lazy::Slice(t, dim, at, at + size), dim);
    // [.., 1, size, ..] with the window's elements last.
    IntList order;
    for (int64_t d = 0; d < part.dim(); ++d) {
      if (d != dim + 1) order.push_back(d);
    }
    order.push_back(dim + 1);
    parts.push_back(lazy::Permute(part, order));
  }
  c.Return(lazy::Cat(parts, dim));
}

void Cat(OpKernelContext& c) {
  // Skips empty tensors of rank 1, as torch does for compatibility.
  Tensors parts;
  for (const Tensor& t : c.list(0)) {
    if (t.dim() != 1 || t.numel() != 0) parts.push_back(t);
  }
  if (parts.empty()) {
    if (c.list(0).empty()) return c.Fail("expected a non-empty list of Tensors");
    return c.Return(c.list(0)[0]);
  }
  const int64_t dim = c.Dim(c.int_arg(1), parts[0].dim());
  if (c.failed()) return;
  // Skipped tensors still take part in type promotion.
  ResultTypeState promotion;
  for (size_t i = 0; i < c.list(0).size(); ++i) {
    if (c.list(0)[i].dim() == 0) {
      return c.Fail(StrCat("zero-dimensional tensor (at position ", i, ") cannot be concatenated"));
    }
    promotion.Add(c.list(0)[i].shape());
  }
  if (parts.size() < c.list(0).size()) parts[0] = lazy::To(parts[0], promotion.result());
  c.Return(lazy::Record(c.device(), c.op(), {IValue(parts), IValue(dim)}));
}
void Roll(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (!c.ints(2).empty()) {
    if (c.ints(1).size() != c.ints(2).size()) return c.Fail("shifts and dimensions must align");
    for (int64_t dim : c.ints(2)) {
      if (t.dim() == 0) return c.Fail("Dimension specified as 0 but tensor has no dimensions");
      c.Dim(dim, t.dim());
    }
    if (!c.failed()) kernel::Record(c);
    return;
  }
  if (c.ints(1).size() != 1) return c.Fail("shifts and dimensions must align");
  if (t.dim() == 0) return c.Return(InvokeOp(Op::clone, t));
  // Without dimensions the flattened tensor is rolled.
  c.Return(lazy::Reshape(InvokeOp(Op::roll, lazy::Reshape(t, {t.numel()}), c.ints(1), Dims({0})), Sizes(t)));
}
void Tile(OpKernelContext& c) {
  IntList repeats(c.ints(1).begin(), c.ints(1).end());
  while (static_cast<int64_t>(repeats.size()) < c.tensor(0).dim()) repeats.insert(repeats.begin(), 1);
  c.Return(InvokeOp(Op::repeat, c.tensor(0), repeats));
}
void RepeatInterleave(OpKernelContext& c) {
  Tensor t = c.tensor(0);
  if (c.int_arg(1) < 0) return c.Fail("repeats can not be negative");
  if (!c.has(2) || t.dim() == 0) t = lazy::Reshape(t, {t.numel()});
  const int64_t dim = c.has(2) ? c.Dim(c.int_arg(2), t.dim()) : 0, n = c.int_arg(1);
  if (c.failed()) return;
  IntList wide = Sizes(t), joined = Sizes(t);
  wide.insert(wide.begin() + dim + 1, n);
  joined[dim] *= n;
  if (c.has(3) && c.int_arg(3) != joined[dim]) return c.Fail("allocated size does not match required size");
  c.Return(lazy::Reshape(lazy::Expand(lazy::Unsqueeze(t, dim + 1), wide), joined));
}

}  // namespace hlokit::lazy::kernel
