// SPDX-License-Identifier: Apache-2.0
// Ragged dot: one dimension of the left operand is divided into groups whose sizes are operand 2. If it is a free
// dimension, each group of rows is multiplied with its own right operand. If it is contracted, there is a product for
// each group. If it is a batch dimension, the groups limit its extent. Elements outside of all groups are zero.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/emit.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/kernels/contractions/matrix_product.h"
#include "interp/exact/kernels/contractions/packed_operands.h"
#include "interp/exact/kernels/contractions/strided_source.h"
#include "interp/exact/kernels/index_operand.h"
#include "interp/exact/machine/run_context.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp {
namespace {

struct RaggedDotParams : ThunkParams {
  bool contracting = false;
  StridedSource lhs;  // of one problem: the ragged dimension is the first of its group, with its full size
  StridedSource rhs;
  int64_t ragged_size = 0;
  int64_t ragged_lhs_stride = 0;
  int64_t ragged_rhs_stride = 0;  // contracting
  int64_t group_rhs_stride = 0;   // free
  // Problems: batch dimensions and, if the ragged dimension is free, the free dimensions before it.
  DimGroup problem_lhs, problem_rhs, problem_sizes;
  int64_t problems = 1;
  int64_t groups = 0;
  ElementType size_type = ElementType::kS32;
  int64_t size_stride = 0;
  int64_t m = 0;  // rows of one step of the ragged dimension (free), or of a problem (contracting)
  int64_t n = 0;
  int64_t k = 0;  // contracting: of one step of the ragged dimension
  ElementType result = ElementType::kF32;
  int64_t result_count = 0;
};

// Returns a group of the given dimensions without dropping or collapsing them, because the ragged dimension's size
// changes.
DimGroup Group(std::initializer_list<std::pair<int64_t, int64_t>> first, const DimGroup& rest) {
  DimGroup group;
  for (const auto& [size, stride] : first) {
    group.sizes.push_back(size);
    group.strides.push_back(stride);
  }
  group.sizes.insert(group.sizes.end(), rest.sizes.begin(), rest.sizes.end());
  group.strides.insert(group.strides.end(), rest.strides.begin(), rest.strides.end());
  return group;
}

// Ends of the groups: running sums of their sizes, which wrap in the type of the sizes.
class GroupEnds {
 public:
  explicit GroupEnds(const RaggedDotParams& params) : p_(params), ends_(static_cast<size_t>(params.groups)) {}

  void Load(const std::byte* sizes, int64_t offset) {
    const int bits = BitsOf(p_.size_type);
    uint64_t sum = 0;
    for (int64_t g = 0; g < p_.groups; ++g) {
      sum +=
          static_cast<uint64_t>(LoadIndex(p_.size_type, sizes + (offset + g * p_.size_stride) * BytesOf(p_.size_type)));
      const uint64_t low = sum << (64 - bits);
      ends_[g] = IsSigned(p_.size_type) ? static_cast<int64_t>(low) >> (64 - bits)
                                        : static_cast<int64_t>(std::min<uint64_t>(low >> (64 - bits), INT64_MAX));
    }
  }
  // Returns the bounds of group g in the ragged dimension; empty if end <= begin.
  int64_t begin(int64_t g) const { return g == 0 ? 0 : std::max<int64_t>(ends_[g - 1], 0); }
  int64_t end(int64_t g) const { return std::min(ends_[g], p_.ragged_size); }
  // Returns the end of the last group.
  int64_t total() const { return p_.groups == 0 ? 0 : std::max<int64_t>(end(p_.groups - 1), 0); }

 private:
  const RaggedDotParams& p_;
  std::vector<int64_t> ends_;
};

// Multiplies rows [begin, begin + size) of one problem with the right operand of group g.
void MultiplyRows(const RaggedDotParams& p, const std::byte* lhs_data, const std::byte* rhs_data, int64_t problem,
                  int64_t g, int64_t begin, int64_t size, std::byte* out, RunContext& context) {
  StridedSource lhs = p.lhs;
  lhs.free = Group({{size, p.ragged_lhs_stride}}, p.lhs.free);
  const ProductShape shape = {1, size * p.m, p.n, p.k};
  if (shape.m * shape.n == 0) return;
  const std::byte* a = lhs_data + begin * p.ragged_lhs_stride * p.lhs.conversion.from_bytes();
  const std::byte* b = rhs_data + g * p.group_rhs_stride * p.rhs.conversion.from_bytes();
  std::byte* to = out + (problem * p.ragged_size + begin) * p.m * p.n * BytesOf(p.result);
  MultiplyMatrices(shape, StridedPanels(lhs, a), StridedPanels(p.rhs, b), p.result, to, context);
}

// Computes the product of group g, contracted over [begin, begin + size) of the ragged dimension.
void MultiplyGroup(const RaggedDotParams& p, const std::byte* lhs_data, const std::byte* rhs_data, int64_t problem,
                   int64_t g, int64_t begin, int64_t size, std::byte* out, RunContext& context) {
  StridedSource lhs = p.lhs;
  StridedSource rhs = p.rhs;
  lhs.contracting = Group({{size, p.ragged_lhs_stride}}, p.lhs.contracting);
  rhs.contracting = Group({{size, p.ragged_rhs_stride}}, p.rhs.contracting);
  const ProductShape shape = {1, p.m, p.n, size * p.k};
  if (shape.m * shape.n == 0) return;
  const std::byte* a = lhs_data + begin * p.ragged_lhs_stride * p.lhs.conversion.from_bytes();
  const std::byte* b = rhs_data + begin * p.ragged_rhs_stride * p.rhs.conversion.from_bytes();
  std::byte* to = out + (g * p.problems + problem) * p.m * p.n * BytesOf(p.result);
  MultiplyMatrices(shape, StridedPanels(lhs, a), StridedPanels(rhs, b), p.result, to, context);
}

void RunRaggedDot(const RaggedDotParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  std::memset(out[0], 0, static_cast<size_t>(p.result_count * BytesOf(p.result)));
  GroupEnds ends(p);
  std::vector<int64_t> group_of(p.contracting ? 0 : static_cast<size_t>(p.ragged_size));
  for (int64_t problem = 0; problem < p.problems && !context.failed(); ++problem) {
    const std::byte* lhs_data = in[0] + p.problem_lhs.Offset(problem) * p.lhs.conversion.from_bytes();
    const std::byte* rhs_data = in[1] + p.problem_rhs.Offset(problem) * p.rhs.conversion.from_bytes();
    ends.Load(in[2], p.problem_sizes.Offset(problem));
    if (p.contracting) {
      for (int64_t g = 0; g < p.groups; ++g) {
        const int64_t begin = ends.begin(g), end = ends.end(g);
        // Sums that wrap are as far apart as a difference overflows.
        if (begin < end) MultiplyGroup(p, lhs_data, rhs_data, problem, g, begin, end - begin, out[0], context);
      }
      continue;
    }
    // With negative sizes a row may be in several groups; the first one wins.
    std::fill(group_of.begin(), group_of.end(), -1);
    int64_t left = p.ragged_size;
    for (int64_t g = 0; g < p.groups && left > 0; ++g) {
      for (int64_t row = ends.begin(g); row < ends.end(g); ++row) {
        if (group_of[row] >= 0) continue;
        group_of[row] = g;
        --left;
      }
    }
    for (int64_t begin = 0; begin < p.ragged_size;) {
      int64_t end = begin + 1;
      while (end < p.ragged_size && group_of[end] == group_of[begin]) ++end;
      if (group_of[begin] >= 0) {
        MultiplyRows(p, lhs_data, rhs_data, problem, group_of[begin], begin, end - begin, out[0], context);
      }
      begin = end;
    }
  }
}

// Zeros the part of the result outside of all groups, for groups of a batch dimension.
struct BatchTailParams : ThunkParams {
  RaggedDotParams sizes;  // the groups
  int64_t outer = 1;      // result dimensions before the ragged one
  int64_t inner = 1;      // bytes of one slice of it
};

void RunBatchTail(const BatchTailParams& p, const std::byte* const* in, std::byte* const* out, RunContext&) {
  const int64_t bytes = p.sizes.ragged_size * p.inner;
  if (out[0] != in[0]) std::memcpy(out[0], in[0], static_cast<size_t>(p.outer * bytes));
  GroupEnds ends(p.sizes);
  for (int64_t i = 0; i < p.outer; ++i) {
    ends.Load(in[1], p.sizes.problem_sizes.Offset(i));
    const int64_t covered = ends.total() * p.inner;
    std::memset(out[0] + i * bytes + covered, 0, static_cast<size_t>(bytes - covered));
  }
}

void EmitRaggedBatch(CompiledComputationBuilder& b, absl::Span<const View> views, const DotDims& dims, int64_t ragged) {
  const std::optional<View> product = EmitDotTo(b, views[0], views[1], dims, b.shape());
  if (!product) return;
  const Shape shape = b.shape();
  const View& sizes = views[2];
  const Dims strides = StridesOf(sizes);
  const int64_t at = std::find(dims.lhs_batch.begin(), dims.lhs_batch.end(), ragged) - dims.lhs_batch.begin();
  auto params = std::make_unique<BatchTailParams>();
  params->sizes.ragged_size = shape.dim(at);
  params->sizes.groups = sizes.shape.dim(sizes.shape.rank() - 1);
  params->sizes.size_type = sizes.type();
  params->sizes.size_stride = strides.back();
  const bool by_problem = sizes.shape.rank() != 1;
  if (by_problem && sizes.shape.rank() != at + 1) {
    b.FailMismatch("group sizes for each of the batch dimensions up to the ragged one");
    return;
  }
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (d < at) {
      params->outer *= shape.dim(d);
      params->sizes.problem_sizes.sizes.push_back(shape.dim(d));
      params->sizes.problem_sizes.strides.push_back(by_problem ? strides[d] : 0);
    } else if (d > at) {
      params->inner *= shape.dim(d);
    }
  }
  params->inner *= BytesOf(shape.element_type());
  const View operands[] = {b.MakeDense(*product), sizes};
  constexpr InPlaceReuse kInPlace[] = {{0, 0}};
  b.Emit(kKernel<RunBatchTail>, std::move(params), operands, kInPlace);
}

// A copy of an operand for each group, with zeros outside of the group.
struct GroupCopiesParams : ThunkParams {
  RaggedDotParams groups;  // their number and sizes
  Dims dims;               // of the operand
  Dims size_strides;       // of the sizes, by dimension of the operand; 0 where they do not depend on it
  int64_t ragged = 0;      // dimension of the operand
  int64_t bytes = 0;       // of an element
};

void RunGroupCopies(const GroupCopiesParams& p, const std::byte* const* in, std::byte* const* out,
                    RunContext& context) {
  const int64_t count = ElementCount(p.dims);
  std::memset(out[0], 0, static_cast<size_t>(p.groups.groups * count * p.bytes));
  GroupEnds ends(p.groups);
  Dims index(p.dims.size(), 0);
  int64_t loaded = -1;
  for (int64_t i = 0; i < count; ++i) {
    if ((i & 0xffff) == 0xffff && !context.CheckTime()) return;
    int64_t sizes = 0;
    for (size_t d = 0; d < index.size(); ++d) sizes += index[d] * p.size_strides[d];
    if (sizes != loaded) ends.Load(in[1], sizes);
    loaded = sizes;
    for (int64_t g = 0; g < p.groups.groups; ++g) {
      if (index[p.ragged] < ends.begin(g) || index[p.ragged] >= ends.end(g)) continue;
      std::memcpy(out[0] + (g * count + i) * p.bytes, in[0] + i * p.bytes, static_cast<size_t>(p.bytes));
    }
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < p.dims[d]) break;
      index[d] = 0;
    }
  }
}

// Computes groups of a contracted dimension whose sizes depend on contracted dimensions before it: a product for each
// group, of copies of the operands with zeros elsewhere. `prefix`: the dimensions of the left operand on which the
// sizes depend, in order.
void EmitGroupsByTerm(CompiledComputationBuilder& b, absl::Span<const View> views, const DotDims& dims, int64_t ragged,
                      absl::Span<const int64_t> prefix) {
  const View& sizes = views[2];
  const Dims strides = StridesOf(sizes);
  const int64_t groups = sizes.shape.dim(sizes.shape.rank() - 1);
  const absl::Span<const int64_t> batch[] = {dims.lhs_batch, dims.rhs_batch};
  const absl::Span<const int64_t> contracting[] = {dims.lhs_contracting, dims.rhs_contracting};
  View copies[2];
  Dims shifted_batch[2], shifted_contracting[2];
  for (int side = 0; side < 2; ++side) {
    const View dense = b.MakeDense(views[side]);
    // Returns the dimension of this side that is paired with one of the left.
    const auto paired = [&](int64_t d) {
      const auto in_batch = absl::c_find(dims.lhs_batch, d);
      if (in_batch != dims.lhs_batch.end()) return batch[side][in_batch - dims.lhs_batch.begin()];
      return contracting[side][absl::c_find(dims.lhs_contracting, d) - dims.lhs_contracting.begin()];
    };
    auto params = std::make_unique<GroupCopiesParams>();
    params->groups.groups = groups;
    params->groups.size_type = sizes.type();
    params->groups.size_stride = strides.back();
    params->groups.ragged_size = views[0].shape.dim(ragged);
    params->dims.assign(dense.dims().begin(), dense.dims().end());
    params->size_strides.assign(params->dims.size(), 0);
    for (size_t i = 0; i < prefix.size(); ++i) params->size_strides[paired(prefix[i])] = strides[i];
    params->ragged = paired(ragged);
    params->bytes = BytesOf(dense.type());
    Dims copied = {groups};
    copied.insert(copied.end(), params->dims.begin(), params->dims.end());
    const Shape shape = b.program_shapes().Array(dense.type(), copied);
    const View operands[] = {dense, sizes};
    // The ragged dimension is contracted first.
    shifted_contracting[side].push_back(params->ragged + 1);
    copies[side] = b.EmitTo(kKernel<RunGroupCopies>, std::move(params), operands, {&shape, 1})[0];
    shifted_batch[side].push_back(0);
    for (int64_t d : batch[side]) shifted_batch[side].push_back(d + 1);
    for (int64_t d : contracting[side]) {
      if (d + 1 != shifted_contracting[side][0]) shifted_contracting[side].push_back(d + 1);
    }
  }
  EmitDot(b, copies[0], copies[1],
          {shifted_batch[0], shifted_contracting[0], shifted_batch[1], shifted_contracting[1]});
}

// Sets the dimensions of the products. `prefix`: the dimensions of the left operand on which the sizes of groups
// depend, in order.
void SetProducts(absl::Span<const View> views, const DotDims& dims, int64_t ragged,
                 absl::Span<const int64_t> group_dims, absl::Span<const int64_t> prefix, RaggedDotParams* params) {
  const Shape lhs = views[0].shape, rhs = views[1].shape;
  const Dims lhs_strides = StridesOf(views[0]), rhs_strides = StridesOf(views[1]), size_strides = StridesOf(views[2]);
  const bool sizes_by_problem = views[2].shape.rank() != 1;
  const auto add = [](DimGroup* group, int64_t size, int64_t stride) {
    group->sizes.push_back(size);
    group->strides.push_back(stride);
  };
  for (size_t i = 0; i < prefix.size(); ++i) {
    const int64_t size = lhs.dim(prefix[i]);
    params->problems *= size;
    add(&params->problem_lhs, size, lhs_strides[prefix[i]]);
    add(&params->problem_rhs, size, i < dims.rhs_batch.size() ? rhs_strides[dims.rhs_batch[i]] : 0);
    add(&params->problem_sizes, size, sizes_by_problem ? size_strides[i] : 0);
  }
  params->m = 1;
  params->n = 1;
  params->k = 1;
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    if (d == ragged || absl::c_linear_search(prefix, d) || absl::c_linear_search(dims.lhs_contracting, d)) continue;
    add(&params->lhs.free, lhs.dim(d), lhs_strides[d]);
    params->m *= lhs.dim(d);
  }
  for (size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    const int64_t d = dims.lhs_contracting[i];
    if (d == ragged) {
      params->ragged_rhs_stride = rhs_strides[dims.rhs_contracting[i]];
      continue;
    }
    add(&params->lhs.contracting, lhs.dim(d), lhs_strides[d]);
    add(&params->rhs.contracting, lhs.dim(d), rhs_strides[dims.rhs_contracting[i]]);
    params->k *= lhs.dim(d);
  }
  for (int64_t d = 0; d < rhs.rank(); ++d) {
    if (absl::c_linear_search(dims.rhs_batch, d) || absl::c_linear_search(dims.rhs_contracting, d)) continue;
    if (absl::c_linear_search(group_dims, d)) {
      params->group_rhs_stride = rhs_strides[d];
      continue;
    }
    add(&params->rhs.free, rhs.dim(d), rhs_strides[d]);
    params->n *= rhs.dim(d);
  }
}

}  // namespace

void PrepareRaggedDot(CompiledComputationBuilder& b) {
  if (!OperandPackingOf(b)) return;
  const Instruction instruction = b.instruction();
  const View views[] = {b.operand(0), b.operand(1), b.operand(2)};
  const DotDims dims = DotDims::Of(instruction);
  const absl::Span<const int64_t> ragged_dims = instruction.list_attr(Attr::kLhsRaggedDims);
  const absl::Span<const int64_t> group_dims = instruction.list_attr(Attr::kRhsGroupDims);
  const Shape lhs = views[0].shape;
  const Shape rhs = views[1].shape;
  const Shape sizes = views[2].shape;
  if (ragged_dims.size() != 1 || ragged_dims[0] < 0 || ragged_dims[0] >= lhs.rank() || sizes.rank() < 1 ||
      !IsInteger(sizes.element_type()) || dims.lhs_batch.size() != dims.rhs_batch.size() ||
      dims.lhs_contracting.size() != dims.rhs_contracting.size()) {
    b.FailMismatch("dimension numbers in range of the operands, one ragged dimension and integer group sizes");
    return;
  }
  const int64_t ragged = ragged_dims[0];
  if (absl::c_linear_search(dims.lhs_batch, ragged)) {
    EmitRaggedBatch(b, views, dims, ragged);
    return;
  }
  auto params = std::make_unique<RaggedDotParams>();
  params->contracting = absl::c_linear_search(dims.lhs_contracting, ragged);
  params->result = b.shape().element_type();
  params->result_count = b.shape().element_count();
  params->ragged_size = lhs.dim(ragged);
  params->groups = sizes.dim(sizes.rank() - 1);
  params->size_type = sizes.element_type();
  params->size_stride = StridesOf(views[2]).back();
  params->ragged_lhs_stride = StridesOf(views[0])[ragged];

  // Dimensions of operand 2 before the group dimension.
  std::vector<int64_t> prefix(dims.lhs_batch.begin(), dims.lhs_batch.end());
  if (!params->contracting) {
    for (int64_t d = 0; d < ragged; ++d) {
      if (!absl::c_linear_search(dims.lhs_batch, d) && !absl::c_linear_search(dims.lhs_contracting, d))
        prefix.push_back(d);
    }
  }
  const bool sizes_by_problem = sizes.rank() != 1;
  std::vector<int64_t> by_term = prefix;
  for (int64_t d : dims.lhs_contracting) {
    if (!params->contracting || d == ragged) break;
    by_term.push_back(d);
  }
  if (sizes_by_problem && sizes.rank() != static_cast<int64_t>(by_term.size()) + 1) {
    b.FailMismatch("a group size for each of the dimensions of the same kind before the ragged one");
    return;
  }
  if (sizes_by_problem && by_term.size() > prefix.size()) {
    EmitGroupsByTerm(b, views, dims, ragged, by_term);
    return;
  }
  SetProducts(views, dims, ragged, group_dims, prefix, params.get());
  const int64_t expected = params->contracting ? params->groups * params->problems * params->m * params->n
                                               : params->problems * params->ragged_size * params->m * params->n;
  if (!params->lhs.conversion.Init(lhs.element_type(), params->result) ||
      !params->rhs.conversion.Init(rhs.element_type(), params->result) || expected != params->result_count) {
    b.FailMismatch("operands whose types convert to that of the result and whose sizes give its number of elements");
    return;
  }
  b.Emit(kKernel<RunRaggedDot>, std::move(params), views);
}

}  // namespace hlokit::interp
