#include "tracer/lowering/argument_checks.h"

#include <algorithm>
#include <string>

#include "ir/str_cat.h"
#include "tracer/promotion.h"
#include "tracer/schema.h"

namespace hlokit::lazy {
namespace {

constexpr int kAnyRank = 64;

struct RankRule {
  Op op;
  size_t arg;
  int min, max;
};

constexpr RankRule kRanks[] = {
    {Op::mm, 0, 2, 2},
    {Op::mm, 1, 2, 2},
    {Op::bmm, 0, 3, 3},
    {Op::bmm, 1, 3, 3},
    {Op::addmm, 1, 2, 2},
    {Op::addmm, 2, 2, 2},
    {Op::mv, 0, 2, 2},
    {Op::mv, 1, 1, 1},
    {Op::dot, 0, 1, 1},
    {Op::dot, 1, 1, 1},
    {Op::cholesky, 0, 2, kAnyRank},
    {Op::triangular_solve, 0, 2, kAnyRank},
    {Op::triangular_solve, 1, 2, kAnyRank},
    {Op::linalg_solve_triangular, 0, 2, kAnyRank},
    {Op::linalg_solve_triangular, 1, 2, kAnyRank},
    {Op::diagonal, 0, 2, kAnyRank},
    {Op::diagonal_copy, 0, 2, kAnyRank},
    {Op::diagonal_scatter, 0, 2, kAnyRank},
    {Op::select_scatter, 0, 1, kAnyRank},
    {Op::slice_scatter, 0, 1, kAnyRank},
    {Op::index_select, 2, 0, 1},
    {Op::index_add, 2, 0, 1},
    {Op::index_copy, 2, 0, 1},
    {Op::max_pool1d_with_indices, 0, 2, 3},
    {Op::max_pool2d_with_indices, 0, 3, 4},
    {Op::max_pool3d_with_indices, 0, 4, 5},
    {Op::max_pool2d_with_indices_backward, 1, 2, 5},
    {Op::avg_pool2d, 0, 3, 4},
    {Op::avg_pool3d, 0, 4, 5},
    {Op::avg_pool2d_backward, 1, 3, 5},
    {Op::adaptive_avg_pool2d, 0, 3, 4},
    {Op::adaptive_avg_pool2d_backward, 0, 3, 4},
    {Op::adaptive_avg_pool2d_backward, 1, 3, 4},
    {Op::upsample_nearest2d, 0, 4, 4},
    {Op::upsample_bilinear2d, 0, 4, 4},
    {Op::upsample_nearest2d_backward, 0, 4, 4},
    {Op::upsample_bilinear2d_backward, 0, 4, 4},
    {Op::nll_loss_forward, 0, 1, 2},
    {Op::nll_loss_forward, 1, 0, 1},
    {Op::nll_loss2d_forward, 0, 4, 4},
    {Op::nll_loss2d_forward, 1, 3, 3},
    {Op::nll_loss_backward, 1, 1, 2},
    {Op::nll_loss_backward, 2, 0, 1},
    {Op::nll_loss2d_backward, 1, 4, 4},
    {Op::nll_loss2d_backward, 2, 3, 3},
};

// Arguments that are places: integers; `same_rank`: of as many dimensions as argument 0.
struct IndexRule {
  Op op;
  size_t arg;
  bool same_rank = false;
};
constexpr IndexRule kIndices[] = {
    {Op::index_select, 2},
    {Op::index_add, 2},
    {Op::index_copy, 2},
    {Op::gather, 2, true},
    {Op::scatter_src, 2, true},
    {Op::scatter_value, 2, true},
    {Op::scatter_reduce, 2, true},
    {Op::scatter_add, 2, true},
    {Op::scatter_value_reduce, 2, true},
    {Op::scatter_reduce_two, 2, true},
    {Op::nll_loss_forward, 1},
    {Op::nll_loss2d_forward, 1},
    {Op::embedding_dense_backward, 1},
};

// Arguments of argument 0's type: no promotion here.
struct SameTypeRule {
  Op op;
  size_t arg;
};
constexpr SameTypeRule kSameTypes[] = {
    {Op::lerp_Scalar, 1},    {Op::lerp_Tensor, 1},        {Op::scatter_src, 3}, {Op::scatter_add, 3},
    {Op::scatter_reduce, 3}, {Op::scatter_reduce_two, 3}, {Op::index_put, 2},
};

bool Fail(NodeLowering& n, const std::string& message) {
  n.emitter().Fail(absl::InvalidArgumentError(message));
  return false;
}

bool IsDimension(const ArgSpec& spec) {
  return spec.type == ArgType::kInt &&
         (spec.name == "dim" || spec.name == "dim0" || spec.name == "dim1" || spec.name == "dim2");
}

}  // namespace

bool CheckArguments(NodeLowering& n) {
  const Schema& schema = SchemaOf(n.op());
  for (size_t i = 0; i < schema.args.size() && i < n.arg_count(); ++i) {
    const ArgSpec& spec = schema.args[i];
    if (IsDimension(spec) && n.has(i) && n.has_operand(0)) {
      const int64_t rank = std::max<int64_t>(n.in(0).rank(), 1), dim = n.i(i);
      if (dim < -rank || dim >= rank) {
        return Fail(n, StrCat("Dimension out of range (expected to be in range of [", -rank, ", ", rank - 1,
                              "], but got ", dim, ")"));
      }
    }
    if (spec.list_size >= 2 && (spec.name == "output_size" || spec.name == "input_size") && n.has(i)) {
      const size_t given = n.ints(i).size(), wanted = static_cast<size_t>(spec.list_size);
      if (given != wanted) return Fail(n, StrCat("`", spec.name, "` needs ", wanted, " numbers, but has ", given));
    }
    if (spec.type == ArgType::kInt && spec.name == "reduction" && (n.i(i) < 0 || n.i(i) > 2)) {
      return Fail(n, StrCat("`reduction` is 0 (none), 1 (mean) or 2 (sum), not ", n.i(i)));
    }
  }
  for (const RankRule& rule : kRanks) {
    if (rule.op != n.op() || !n.has_operand(rule.arg)) continue;
    const int64_t rank = n.in(rule.arg).rank();
    if (rank >= rule.min && rank <= rule.max) continue;
    const std::string wanted = rule.max == kAnyRank   ? StrCat("at least ", rule.min)
                               : rule.min == rule.max ? StrCat(rule.min)
                                                      : StrCat(rule.min, " to ", rule.max);
    return Fail(n, StrCat("`", schema.args[rule.arg].name, "` must have ", wanted,
                          rule.max == 1 ? " dimension" : " dimensions", ", but has ", rank));
  }
  for (const IndexRule& rule : kIndices) {
    if (rule.op != n.op() || !n.has_operand(rule.arg)) continue;
    const Hlo index = n.in(rule.arg);
    if (!IsInteger(index.type())) {
      return Fail(
          n, StrCat("`", schema.args[rule.arg].name, "` must be a tensor of integers, but is ", TextOf(index.type())));
    }
    if (rule.same_rank && std::max<int64_t>(index.rank(), 1) != std::max<int64_t>(n.in(0).rank(), 1)) {
      return Fail(n, "Index tensor must have the same number of dimensions as self tensor");
    }
  }
  for (const SameTypeRule& rule : kSameTypes) {
    if (rule.op != n.op() || !n.has_operand(rule.arg)) continue;
    const ElementType own = n.in(0).type(), other = n.in(rule.arg).type();
    if (own != other) {
      return Fail(n, StrCat("expected dtype ", TextOf(own), " for `", schema.args[rule.arg].name, "` but got dtype ",
                            TextOf(other)));
    }
  }
  return true;
}

}  // namespace hlokit::lazy
