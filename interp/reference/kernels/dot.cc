// Dot: batch, free and contracting dimensions of any number and order, as a batch of matrix products.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "interp/reference/kernels.h"
#include "interp/reference/kernels/matrix_product.h"
#include "interp/reference/kernels/strided_source.h"
#include "interp/reference/routine_builder.h"
#include "ir/attribute_views.h"

namespace hlokit::interp {
namespace {

struct DotPlan : Plan {
  ProductShape shape;
  StridedSource lhs;
  StridedSource rhs;
  ElementType result;
};

void RunDot(const Plan* plan, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const auto& p = *static_cast<const DotPlan*>(plan);
  if (p.shape.batch * p.shape.m * p.shape.n == 0) return;
  const StridedPanels lhs(p.lhs, in[0]);
  const StridedPanels rhs(p.rhs, in[1]);
  MultiplyMatrices(p.shape, lhs, rhs, p.result, out[0], context);
}

}  // namespace

void PrepareDot(RoutineBuilder& b) {
  const Instruction instruction = b.instruction();
  if (instruction.operand_count() != 2) {
    b.Fail("sparse dot is not supported");
    return;
  }
  for (int64_t precision : instruction.list_attr(Attr::kOperandPrecision)) {
    if (precision == static_cast<int64_t>(Precision::kPackedNibble)) {
      b.Fail("dot of packed nibbles is not supported");
      return;
    }
  }
  const View& lhs = b.operand(0);
  const View& rhs = b.operand(1);
  const DotDims dims = DotDims::Of(instruction);
  auto plan = std::make_unique<DotPlan>();
  plan->result = b.shape().element_type();
  if (!plan->lhs.Init(lhs, dims.lhs_batch, dims.lhs_contracting, plan->result) ||
      !plan->rhs.Init(rhs, dims.rhs_batch, dims.rhs_contracting, plan->result)) {
    b.Fail("dimensions or types do not fit the operands");
    return;
  }
  plan->shape = {plan->lhs.batch.count(), plan->lhs.free.count(), plan->rhs.free.count(), plan->lhs.contracting.count()};
  if (plan->rhs.batch.count() != plan->shape.batch || plan->rhs.contracting.count() != plan->shape.k ||
      plan->shape.batch * plan->shape.m * plan->shape.n != b.shape().element_count()) {
    b.Fail("the operands have different sizes");
    return;
  }
  const View operands[] = {lhs, rhs};
  b.Emit(RunDot, std::move(plan), operands);
}

}  // namespace hlokit::interp
