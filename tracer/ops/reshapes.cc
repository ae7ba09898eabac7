// SPDX-License-Identifier: Apache-2.0
// Names for other views, and changes of shape composed of them.
#include <algorithm>
#include <numeric>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/grad_function.h"

namespace hlokit::lazy::kernel {

void Contiguous(OpKernelContext& c) { c.Return(c.tensor(0)); }
void Positive(OpKernelContext& c) {
  if (c.tensor(0).dtype() == ElementType::kPred) return c.Fail("The `+` operator, on a bool tensor is not supported.");
  c.Return(c.tensor(0));
}
void SwapAxes(OpKernelContext& c) { c.Return(InvokeOp(Op::transpose_int, c.tensor(0), c.int_arg(1), c.int_arg(2))); }
void ViewAs(OpKernelContext& c) { c.Return(lazy::View(c.tensor(0), Sizes(c.tensor(1)))); }
void ReshapeAs(OpKernelContext& c) { c.Return(lazy::Reshape(c.tensor(0), Sizes(c.tensor(1)))); }
void ExpandAs(OpKernelContext& c) { c.Return(lazy::Expand(c.tensor(0), Sizes(c.tensor(1)))); }
void BroadcastTo(OpKernelContext& c) { c.Return(lazy::Expand(c.tensor(0), c.ints(1))); }
void TypeAs(OpKernelContext& c) {
  const ElementType type = c.tensor(1).dtype();
  c.Return(c.tensor(0).dtype() == type ? c.tensor(0) : lazy::To(c.tensor(0), type));
}
void Ravel(OpKernelContext& c) { c.Return(lazy::Reshape(c.tensor(0), {c.tensor(0).numel()})); }

void BroadcastTensors(OpKernelContext& c) {
  IntList sizes;
  for (const Tensor& t : c.list(0)) {
    const Dims own = t.sizes();
    if (own.size() > sizes.size()) sizes.insert(sizes.begin(), own.size() - sizes.size(), 1);
    for (size_t i = 0; i < own.size(); ++i) {
      int64_t& size = sizes[sizes.size() - 1 - i];
      const int64_t mine = own[own.size() - 1 - i];
      if (size != mine && size != 1 && mine != 1) {
        return c.Fail(StrCat("The size of tensor a (", size, ") must match the size of tensor b (", mine,
                             ") at non-singleton dimension ", sizes.size() - 1 - i));
      }
      if (size == 1) size = mine;
    }
  }
  Outputs out;
  for (const Tensor& t : c.list(0)) out.push_back(lazy::Expand(t, sizes));
  c.Return(std::move(out));
}

// self, source dims, destination dims
void MovedimList(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const Dims from = c.ints(1), to = c.ints(2);
  if (from.size() != to.size()) {
    return c.Fail(StrCat("movedim: Invalid source or destination dims: source (", ListToString(from),
                         " dims) should contain the same number of dims as destination (", ListToString(to), " dims)"));
  }
  const int64_t rank = t.dim();
  IntList sources, targets;
  for (size_t i = 0; i < from.size(); ++i) {
    sources.push_back(c.Dim(from[i], rank));
    targets.push_back(c.Dim(to[i], rank));
  }
  if (c.failed()) return;
  const auto repeated = [](IntList dims) {
    std::sort(dims.begin(), dims.end());
    return std::adjacent_find(dims.begin(), dims.end()) != dims.end();
  };
  if (repeated(sources)) return c.Fail(StrCat("movedim: repeated dim in `source` (", ListToString(from), ")"));
  if (repeated(targets)) return c.Fail(StrCat("movedim: repeated dim in `destination` (", ListToString(to), ")"));
  if (rank == 0) return c.Return(lazy::Permute(t, {}));
  // Dimensions that do not move fill the remaining places in order.
  IntList order(static_cast<size_t>(rank), -1);
  for (size_t i = 0; i < sources.size(); ++i) order[targets[i]] = sources[i];
  int64_t next = 0;
  for (int64_t& place : order) {
    if (place >= 0) continue;
    while (std::find(sources.begin(), sources.end(), next) != sources.end()) ++next;
    place = next++;
  }
  c.Return(lazy::Permute(t, order));
}

void Unflatten(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  const int64_t dim = c.Dim(c.int_arg(1), t.dim());
  if (c.failed()) return;
  const Dims given = c.ints(2);
  if (t.dim() == 0) return c.Fail("unflatten: Dimension specified as 0 but tensor has no dimensions");
  if (given.empty()) return c.Fail("unflatten: sizes must be non-empty");
  IntList parts(given.begin(), given.end());
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& size : parts) {
    if (size == -1 && open == nullptr) {
      open = &size;
    } else if (size < 0 || __builtin_mul_overflow(known, size, &known)) {
      known = -1;
      break;
    }
  }
  if (open != nullptr && known > 0 && t.size(dim) % known == 0) *open = t.size(dim) / known;
  const bool fits = open != nullptr ? known > 0 && t.size(dim) % known == 0 : known == t.size(dim);
  if (!fits) {
    return c.Fail(StrCat("unflatten: Provided sizes ", ListToString(given), " don't multiply up to the size of dim ",
                         dim, " (", t.size(dim), ") in the input tensor"));
  }
  IntList sizes = Sizes(t);
  sizes.erase(sizes.begin() + dim);
  sizes.insert(sizes.begin() + dim, parts.begin(), parts.end());
  c.Return(lazy::View(t, sizes));
}

// ---- flips and turns ----

void Fliplr(OpKernelContext& c) {
  if (c.tensor(0).dim() < 2) return c.Fail("Input must be >= 2-d.");
  c.Return(lazy::Flip(c.tensor(0), {1}));
}
void Flipud(OpKernelContext& c) {
  if (c.tensor(0).dim() < 1) return c.Fail("Input must be >= 1-d.");
  c.Return(lazy::Flip(c.tensor(0), {0}));
}
void Rot90(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (c.ints(2).size() != 2) {
    return c.Fail(StrCat("expected total rotation dims == 2, but got dims = ", c.ints(2).size()));
  }
  if (t.dim() < 2) return c.Fail(StrCat("expected total dims >= 2, but got total dims = ", t.dim()));
  const int64_t a = c.Dim(c.ints(2)[0], t.dim()), b = c.Dim(c.ints(2)[1], t.dim());
  if (c.failed()) return;
  if (a == b) {
    return c.Fail(
        StrCat("expected rotation dims to be different, but got dim0 = ", c.ints(2)[0], " and dim1 = ", c.ints(2)[1]));
  }
  switch (((c.int_arg(1) % 4) + 4) % 4) {
    case 1:
      return c.Return(lazy::Transpose(lazy::Flip(t, {b}), a, b));
    case 2:
      return c.Return(lazy::Flip(t, {a, b}));
    case 3:
      return c.Return(lazy::Transpose(lazy::Flip(t, {a}), a, b));
    default:
      return c.Return(InvokeOp(Op::clone, t));
  }
}

}  // namespace hlokit::lazy::kernel
