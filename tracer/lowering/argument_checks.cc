// SPDX-License-Identifier: Apache-2.0
#include "tracer/lowering/argument_checks.h"

#include <algorithm>
#include <string>

#include "ir/core/str_cat.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy {
namespace {

bool Fail(LoweringContext& n, const std::string& message) {
  n.emitter().Fail(absl::InvalidArgumentError(message));
  return false;
}

bool IsDimension(const ArgSpec& spec) {
  return spec.type == ArgType::kInt &&
         (spec.name == "dim" || spec.name == "dim0" || spec.name == "dim1" || spec.name == "dim2");
}

bool MeetsConstraint(LoweringContext& n, const ArgSpec& spec, const XlaOp& x) {
  const ArgConstraint& constraint = spec.constraint;
  if (x.rank() < constraint.min_rank || x.rank() > constraint.max_rank) {
    const std::string most = Counted(constraint.max_rank, "dimension");
    const std::string wanted = constraint.max_rank == ArgConstraint::kAnyRank
                                   ? StrCat("at least ", constraint.min_rank, " dimensions")
                               : constraint.min_rank == constraint.max_rank ? most
                                                                            : StrCat(constraint.min_rank, " to ", most);
    return Fail(n, StrCat("`", spec.name, "` must have ", wanted, ", but has ", x.rank()));
  }
  if (constraint.integer && !IsInteger(x.type())) {
    return Fail(n, StrCat("`", spec.name, "` must be a tensor of integers, but is ", ToString(x.type())));
  }
  if (constraint.rank_of_first && std::max<int64_t>(x.rank(), 1) != std::max<int64_t>(n.in(0).rank(), 1)) {
    return Fail(n, "Index tensor must have the same number of dimensions as self tensor");
  }
  if (constraint.type_of_first && x.type() != n.in(0).type()) {
    return Fail(n, StrCat("expected dtype ", ToString(n.in(0).type()), " for `", spec.name, "` but got dtype ",
                          ToString(x.type())));
  }
  return true;
}

}  // namespace

bool CheckArguments(LoweringContext& n) {
  const Schema& schema = SchemaOf(n.op());
  for (size_t i = 0; i < schema.args.size() && i < n.arg_count(); ++i) {
    const ArgSpec& spec = schema.args[i];
    if (IsDimension(spec) && n.has(i) && n.has_operand(0)) {
      const int64_t rank = std::max<int64_t>(n.in(0).rank(), 1), dim = n.int_arg(i);
      if (dim < -rank || dim >= rank) {
        return Fail(n, StrCat("Dimension out of range (expected to be in range of [", -rank, ", ", rank - 1,
                              "], but got ", dim, ")"));
      }
    }
    if (ListsSizes(spec) && n.has(i)) {
      const size_t given = n.ints(i).size(), wanted = static_cast<size_t>(spec.list_size);
      if (given != wanted) return Fail(n, StrCat("expected ", wanted, " numbers in `", spec.name, "`, found ", given));
    }
    if (spec.type == ArgType::kInt && spec.name == "reduction" && (n.int_arg(i) < 0 || n.int_arg(i) > 2)) {
      return Fail(n, StrCat("`reduction` is 0 (none), 1 (mean) or 2 (sum), not ", n.int_arg(i)));
    }
  }
  for (size_t i = 0; i < schema.args.size(); ++i) {
    const ArgSpec& spec = schema.args[i];
    if (spec.constraint == ArgConstraint() || !n.has_operand(i)) continue;
    if (!MeetsConstraint(n, spec, n.in(i))) return false;
  }
  return true;
}

}  // namespace hlokit::lazy
