// SPDX-License-Identifier: Apache-2.0
// Concatenation and splitting by rows, columns and depth; grids.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/literal_scalar.h"

namespace hlokit::lazy::kernel {
namespace {

Tensor AtLeast(const Tensor& t, int64_t rank) {
  if (t.dim() >= rank) return t;
  if (t.dim() == 0) return lazy::Reshape(t, IntList(static_cast<size_t>(rank), 1));
  if (rank == 2) return lazy::Unsqueeze(t, 0);
  // Three dimensions: a vector is a row of points, a matrix gets a depth of 1.
  return t.dim() == 1 ? lazy::Unsqueeze(lazy::Unsqueeze(t, 0), 2) : lazy::Unsqueeze(t, 2);
}

Tensors AllAtLeast(const Tensors& tensors, int64_t rank) {
  Tensors out;
  for (const Tensor& t : tensors) out.push_back(AtLeast(t, rank));
  return out;
}

void AtLeastSequence(OpKernelContext& c, int64_t rank) {
  const Tensors raised = AllAtLeast(c.list(0), rank);
  c.Return(Outputs(raised.begin(), raised.end()));
}

bool HasTensors(OpKernelContext& c, std::string_view name) {
  if (!c.list(0).empty()) return true;
  c.Fail(StrCat(name, " expects a non-empty TensorList"));
  return false;
}

Outputs SplitAt(const Tensor& t, Dims indices, int64_t dim) {
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + t.size(dim) : i, 0, t.size(dim)); };
  Outputs parts;
  int64_t start = 0;
  for (int64_t index : indices) {
    parts.push_back(lazy::Slice(t, dim, start, std::max(start, clamp(index))));
    start = clamp(index);
  }
  parts.push_back(lazy::Slice(t, dim, start, t.size(dim)));
  return parts;
}

// Splits into `sections` parts whose sizes differ by at most 1.
void SplitSections(OpKernelContext& c, const Tensor& t, int64_t sections, int64_t dim) {
  constexpr int64_t kMaxSections = 1 << 20;
  if (sections <= 0) return c.Fail(StrCat("number of sections must be larger than 0, got ", sections));
  if (sections > kMaxSections) return c.Fail(StrCat("at most ", kMaxSections, " sections are supported"));
  Outputs parts;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t size = t.size(dim) / sections + (i < t.size(dim) % sections ? 1 : 0);
    parts.push_back(lazy::Slice(t, dim, start, start + size));
    start += size;
  }
  c.Return(std::move(parts));
}

// hsplit, vsplit, dsplit: along `dim`, into equal parts or at indices.
void SplitAlong(OpKernelContext& c, std::string_view name, int64_t min_rank, int64_t dim, bool by_sections) {
  const Tensor& t = c.tensor(0);
  if (t.dim() < min_rank) {
    return c.Fail(StrCat("torch.", name, " requires a tensor with at least ", Counted(min_rank, "dimension"),
                         ", but got a tensor with ", t.dim(), " dimensions!"));
  }
  if (!by_sections) return c.Return(SplitAt(t, c.ints(1), dim));
  const int64_t sections = c.int_arg(1);
  if (sections == 0 || t.size(dim) % sections != 0) {
    return c.Fail(StrCat("torch.", name, " attempted to split along dimension ", dim,
                         ", but the size of the dimension ", t.size(dim), " is not divisible by the split_size ",
                         sections, "!"));
  }
  SplitSections(c, t, sections, dim);
}

bool SplitDim(OpKernelContext& c, size_t arg, int64_t* dim) {
  if (c.tensor(0).dim() == 0) {
    c.Fail("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
    return false;
  }
  *dim = c.Dim(c.int_arg(arg), c.tensor(0).dim());
  return !c.failed();
}

}  // namespace

void Atleast1d(OpKernelContext& c) { c.Return(AtLeast(c.tensor(0), 1)); }
void Atleast2d(OpKernelContext& c) { c.Return(AtLeast(c.tensor(0), 2)); }
void Atleast3d(OpKernelContext& c) { c.Return(AtLeast(c.tensor(0), 3)); }
void Atleast1dSequence(OpKernelContext& c) { AtLeastSequence(c, 1); }
void Atleast2dSequence(OpKernelContext& c) { AtLeastSequence(c, 2); }
void Atleast3dSequence(OpKernelContext& c) { AtLeastSequence(c, 3); }

void Hstack(OpKernelContext& c) {
  if (!HasTensors(c, "hstack")) return;
  Tensors parts = AllAtLeast(c.list(0), 1);
  const int64_t dim = parts[0].dim() == 1 ? 0 : 1;
  c.Return(lazy::Cat(std::move(parts), dim));
}
void Vstack(OpKernelContext& c) {
  if (HasTensors(c, "vstack")) c.Return(lazy::Cat(AllAtLeast(c.list(0), 2), 0));
}
void Dstack(OpKernelContext& c) {
  if (HasTensors(c, "dstack")) c.Return(lazy::Cat(AllAtLeast(c.list(0), 3), 2));
}
void ColumnStack(OpKernelContext& c) {
  if (!HasTensors(c, "column_stack")) return;
  Tensors columns;
  for (const Tensor& t : c.list(0)) columns.push_back(t.dim() < 2 ? lazy::Reshape(t, {t.numel(), 1}) : t);
  c.Return(lazy::Cat(std::move(columns), 1));
}

void Hsplit(OpKernelContext& c) {
  SplitAlong(c, "hsplit", 1, c.tensor(0).dim() == 1 ? 0 : 1, c.op() == Op::hsplit_int);
}
void Vsplit(OpKernelContext& c) { SplitAlong(c, "vsplit", 2, 0, c.op() == Op::vsplit_int); }
void Dsplit(OpKernelContext& c) { SplitAlong(c, "dsplit", 3, 2, c.op() == Op::dsplit_int); }
void TensorSplitSections(OpKernelContext& c) {
  int64_t dim = 0;
  if (SplitDim(c, 2, &dim)) SplitSections(c, c.tensor(0), c.int_arg(1), dim);
}
void TensorSplitIndices(OpKernelContext& c) {
  int64_t dim = 0;
  if (SplitDim(c, 2, &dim)) c.Return(SplitAt(c.tensor(0), c.ints(1), dim));
}

namespace {

// `columns_first`: "xy" indexing, in which the first two dimensions of the grids change places.
void Grid(OpKernelContext& c, bool columns_first) {
  Tensors inputs = c.list(0);
  if (inputs.empty()) return c.Fail("meshgrid expects a non-empty TensorList");
  for (const Tensor& t : inputs) {
    if (t.dim() > 1) return c.Fail("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: a matrix");
    if (t.dtype() != inputs[0].dtype()) return c.Fail("torch.meshgrid expects all tensors to have the same dtype");
  }
  columns_first = columns_first && inputs.size() >= 2;
  if (columns_first) std::swap(inputs[0], inputs[1]);
  IntList sizes;
  for (const Tensor& t : inputs) sizes.push_back(t.numel());
  Outputs grids;
  for (size_t i = 0; i < inputs.size(); ++i) {
    IntList line(inputs.size(), 1);
    line[i] = inputs[i].numel();
    grids.push_back(lazy::Expand(lazy::Reshape(inputs[i], line), sizes));
  }
  if (columns_first) std::swap(grids[0], grids[1]);
  c.Return(std::move(grids));
}

}  // namespace

void Meshgrid(OpKernelContext& c) { Grid(c, false); }
void MeshgridIndexing(OpKernelContext& c) {
  if (c.str(1) != "ij" && c.str(1) != "xy") {
    return c.Fail(StrCat("torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", c.str(1)));
  }
  Grid(c, c.str(1) == "xy");
}
void CartesianProd(OpKernelContext& c) {
  for (const Tensor& t : c.list(0)) {
    if (t.dim() != 1) return c.Fail(StrCat("Expect a 1D vector, but got shape ", ListToString(t.sizes())));
  }
  if (c.list(0).size() == 1) return c.Return(c.list(0)[0]);
  Tensors columns;
  for (const Tensor& grid : InvokeOpMultiOutput(Op::meshgrid, c.list(0))) {
    columns.push_back(lazy::Reshape(grid, {grid.numel()}));
  }
  c.Return(InvokeOp(Op::stack, columns, 1));
}
void BlockDiag(OpKernelContext& c) {
  int64_t columns = 0;
  for (const Tensor& t : c.list(0)) {
    if (t.dim() > 2)
      return c.Fail(StrCat("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input has ", t.dim(),
                           " dimensions"));
    columns += AtLeast(t, 2).size(1);
  }
  Tensors rows;
  int64_t before = 0;
  for (const Tensor& t : c.list(0)) {
    const Tensor block = AtLeast(t, 2);
    const IntList pad = {before, columns - before - block.size(1)};
    rows.push_back(InvokeOp(Op::constant_pad_nd, block, pad, 0));
    before += block.size(1);
  }
  if (rows.empty()) return c.Return(lazy::Zeros({1, 0}, ElementType::kF32));
  c.Return(lazy::Cat(std::move(rows), 0));
}

}  // namespace hlokit::lazy::kernel
