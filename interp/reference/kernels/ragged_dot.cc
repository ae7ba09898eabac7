// Ragged dot: one dimension of the left side is cut into groups whose sizes operand 2 holds. If it is a free dimension,
// each group of rows meets a right side of its own; if it is contracted, there is a product for each group; if it is a
// batch dimension, the groups change nothing.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "interp/reference/kernels.h"
#include "interp/reference/kernels/emit.h"
#include "interp/reference/kernels/index_operand.h"
#include "interp/reference/kernels/matrix_product.h"
#include "interp/reference/kernels/strided_source.h"
#include "interp/reference/routine_builder.h"
#include "interp/reference/run_context.h"
#include "ir/attribute_views.h"

namespace hlokit::interp {
namespace {

struct RaggedDotPlan : Plan {
  bool contracting = false;
  StridedSource lhs;        // of one problem: the ragged dimension is the first of its group, with its full size
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

// Sizes of one dimension, which DimGroup would drop or join: kept apart because the ragged dimension's changes.
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

void RunRaggedDot(const Plan* plan, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const auto& p = *static_cast<const RaggedDotPlan*>(plan);
  const int64_t bytes = BytesOf(p.result);
  std::memset(out[0], 0, static_cast<size_t>(p.result_count * bytes));
  for (int64_t problem = 0; problem < p.problems && !context.failed(); ++problem) {
    const std::byte* lhs_data = in[0] + p.problem_lhs.Offset(problem) * p.lhs.conversion.from_bytes();
    const std::byte* rhs_data = in[1] + p.problem_rhs.Offset(problem) * p.rhs.conversion.from_bytes();
    int64_t begin = 0;
    for (int64_t g = 0; g < p.groups; ++g) {
      const int64_t at = p.problem_sizes.Offset(problem) + g * p.size_stride;
      // Groups that reach beyond the dimension end with it.
      const int64_t size =
          std::clamp<int64_t>(LoadIndex(p.size_type, in[2] + at * BytesOf(p.size_type)), 0, p.ragged_size - begin);
      StridedSource lhs = p.lhs;
      StridedSource rhs = p.rhs;
      ProductShape shape;
      std::byte* to;
      const std::byte* a = lhs_data + begin * p.ragged_lhs_stride * p.lhs.conversion.from_bytes();
      const std::byte* b = rhs_data;
      if (p.contracting) {
        lhs.contracting = Group({{size, p.ragged_lhs_stride}}, p.lhs.contracting);
        rhs.contracting = Group({{size, p.ragged_rhs_stride}}, p.rhs.contracting);
        shape = {1, p.m, p.n, size * p.k};
        b += begin * p.ragged_rhs_stride * p.rhs.conversion.from_bytes();
        to = out[0] + (g * p.problems + problem) * p.m * p.n * bytes;
      } else {
        lhs.free = Group({{size, p.ragged_lhs_stride}}, p.lhs.free);
        shape = {1, size * p.m, p.n, p.k};
        b += g * p.group_rhs_stride * p.rhs.conversion.from_bytes();
        to = out[0] + (problem * p.ragged_size + begin) * p.m * p.n * bytes;
      }
      begin += size;
      if (shape.m * shape.n * size == 0) continue;
      MultiplyMatrices(shape, StridedPanels(lhs, a), StridedPanels(rhs, b), p.result, to, context);
    }
  }
}

bool Contains(absl::Span<const int64_t> list, int64_t v) { return std::find(list.begin(), list.end(), v) != list.end(); }

}  // namespace

void PrepareRaggedDot(RoutineBuilder& b) {
  const Instruction instruction = b.instruction();
  const View views[] = {b.operand(0), b.operand(1), b.operand(2)};
  const DotDims dims = DotDims::Of(instruction);
  const absl::Span<const int64_t> ragged_dims = instruction.list_attr(Attr::kLhsRaggedDims);
  const absl::Span<const int64_t> group_dims = instruction.list_attr(Attr::kRhsGroupDims);
  const Shape lhs = views[0].shape;
  const Shape rhs = views[1].shape;
  const Shape sizes = views[2].shape;
  if (ragged_dims.size() != 1 || ragged_dims[0] < 0 || ragged_dims[0] >= lhs.rank() || sizes.rank() < 1 ||
      !IsIndexType(sizes.element_type()) || dims.lhs_batch.size() != dims.rhs_batch.size() ||
      dims.lhs_contracting.size() != dims.rhs_contracting.size()) {
    b.Fail("dimension numbers do not fit the operands");
    return;
  }
  const int64_t ragged = ragged_dims[0];
  if (Contains(dims.lhs_batch, ragged)) {
    EmitDot(b, views[0], views[1], dims);
    return;
  }
  auto plan = std::make_unique<RaggedDotPlan>();
  plan->contracting = Contains(dims.lhs_contracting, ragged);
  plan->result = b.shape().element_type();
  plan->result_count = b.shape().element_count();
  plan->ragged_size = lhs.dim(ragged);
  plan->groups = sizes.dim(sizes.rank() - 1);
  plan->size_type = sizes.element_type();
  const Dims lhs_strides = StridesOf(views[0]);
  const Dims rhs_strides = StridesOf(views[1]);
  const Dims size_strides = StridesOf(views[2]);
  plan->size_stride = size_strides.back();
  plan->ragged_lhs_stride = lhs_strides[ragged];

  // The dimensions that operand 2 may have before the groups.
  std::vector<int64_t> prefix(dims.lhs_batch.begin(), dims.lhs_batch.end());
  if (!plan->contracting) {
    for (int64_t d = 0; d < ragged; ++d) {
      if (!Contains(dims.lhs_batch, d) && !Contains(dims.lhs_contracting, d)) prefix.push_back(d);
    }
  }
  const bool sizes_by_problem = sizes.rank() != 1;
  if (sizes_by_problem && sizes.rank() != static_cast<int64_t>(prefix.size()) + 1) {
    b.Fail("group sizes that depend on contracted dimensions are not supported");
    return;
  }
  const auto add = [](DimGroup* group, int64_t size, int64_t stride) {
    group->sizes.push_back(size);
    group->strides.push_back(stride);
  };
  for (size_t i = 0; i < prefix.size(); ++i) {
    const int64_t size = lhs.dim(prefix[i]);
    plan->problems *= size;
    add(&plan->problem_lhs, size, lhs_strides[prefix[i]]);
    add(&plan->problem_rhs, size, i < dims.rhs_batch.size() ? rhs_strides[dims.rhs_batch[i]] : 0);
    add(&plan->problem_sizes, size, sizes_by_problem ? size_strides[i] : 0);
  }
  plan->m = 1;
  plan->n = 1;
  plan->k = 1;
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    if (d == ragged || Contains(prefix, d) || Contains(dims.lhs_contracting, d)) continue;
    add(&plan->lhs.free, lhs.dim(d), lhs_strides[d]);
    plan->m *= lhs.dim(d);
  }
  for (size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    const int64_t d = dims.lhs_contracting[i];
    if (d == ragged) {
      plan->ragged_rhs_stride = rhs_strides[dims.rhs_contracting[i]];
      continue;
    }
    add(&plan->lhs.contracting, lhs.dim(d), lhs_strides[d]);
    add(&plan->rhs.contracting, lhs.dim(d), rhs_strides[dims.rhs_contracting[i]]);
    plan->k *= lhs.dim(d);
  }
  for (int64_t d = 0; d < rhs.rank(); ++d) {
    if (Contains(dims.rhs_batch, d) || Contains(dims.rhs_contracting, d)) continue;
    if (Contains(group_dims, d)) {
      plan->group_rhs_stride = rhs_strides[d];
      continue;
    }
    add(&plan->rhs.free, rhs.dim(d), rhs_strides[d]);
    plan->n *= rhs.dim(d);
  }
  const int64_t expected = plan->contracting ? plan->groups * plan->problems * plan->m * plan->n
                                             : plan->problems * plan->ragged_size * plan->m * plan->n;
  if (!plan->lhs.conversion.Init(lhs.element_type(), plan->result) ||
      !plan->rhs.conversion.Init(rhs.element_type(), plan->result) || expected != plan->result_count) {
    b.Fail("types and sizes of the operands do not fit the result");
    return;
  }
  b.Emit(RunRaggedDot, std::move(plan), views);
}

}  // namespace hlokit::interp
