// SPDX-License-Identifier: Apache-2.0
// Losses and their gradients. reduction: 0 none, 1 mean, 2 sum.
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

XlaOp Reduced(XlaOp loss, int64_t reduction) {
  if (reduction == 0) return loss;
  const XlaOp sum = Reduce(Opcode::kAdd, loss, AllDims(loss));
  return reduction == 2 ? sum : sum / static_cast<double>(loss.elements());
}

// Returns the gradient of each element of a loss: g, or g broadcast and divided for the mean.
XlaOp Spread(XlaOp g, XlaOp like, int64_t reduction) {
  g = BroadcastTo(g, like.dims());
  return reduction == 1 ? g / static_cast<double>(like.elements()) : g;
}

struct NllPlan {
  XlaOp one_hot;  // pred, dims of the log-probabilities
  XlaOp weight;   // of each element's class if it is the target and not ignored, else 0; dims as above
  DimVector classes;
};

// x [C], [N, C] or [N, C, ...]; the target has x's dimensions without the class.
NllPlan PlanNll(LoweringContext& n, XlaOp x, XlaOp target, size_t weight_arg, int64_t ignore_index) {
  XlaEmitter& e = n.emitter();
  const int64_t dim = x.rank() == 1 ? 0 : 1;
  NllPlan plan;
  plan.classes = {dim};
  const XlaOp wide_target = BroadcastReduced(lazy::Cast(target, ElementType::kS64), x, plan.classes);
  const XlaOp iota = IotaOf(e, ElementType::kS64, x.dims(), dim);
  plan.one_hot = Eq(iota, wide_target) & Ne(wide_target, Number(wide_target, ignore_index));
  const XlaOp weight =
      n.has(weight_arg) ? BroadcastInDim(lazy::Cast(n.in(weight_arg), x.type()), x.dims(), {dim}) : FullLike(x, 1);
  plan.weight = Select(plan.one_hot, weight, Number(x, 0));
  return plan;
}

XlaOp Sign(XlaOp x) { return Unary(Opcode::kSign, x); }

}  // namespace

// self, target, weight?, reduction, ignore_index -> output, total_weight
void NllLoss(LoweringContext& n) {
  const XlaOp x = Wide(n.in(0));
  const ElementType type = n.in(0).type();
  const int64_t reduction = n.int_arg(3);
  const NllPlan plan = PlanNll(n, x, n.in(1), 2, n.int_arg(4));
  // Log-probabilities of other classes may be -inf: they are masked by select, not multiplied.
  const XlaOp losses = Select(plan.one_hot, -x * plan.weight, Number(x, 0));
  const XlaOp each = Reduce(Opcode::kAdd, losses, plan.classes);
  if (reduction == 0) return n.Return(lazy::Cast(each, type), Constant(n.emitter(), type, 0));
  const XlaOp sum = Reduce(Opcode::kAdd, each, AllDims(each));
  const XlaOp total = Reduce(Opcode::kAdd, plan.weight, AllDims(plan.weight));
  n.Return(lazy::Cast(reduction == 1 ? sum / total : sum, type), lazy::Cast(total, type));
}
// grad, self, target, weight?, reduction, ignore_index, total_weight
void NllLossBackward(LoweringContext& n) {
  const XlaOp x = Wide(n.in(1)), g = Wide(n.in(0));
  const int64_t reduction = n.int_arg(4);
  const NllPlan plan = PlanNll(n, x, n.in(2), 3, n.int_arg(5));
  XlaOp scale = g;
  if (reduction == 1) {
    const XlaOp total = Wide(n.in(6));
    scale = g / Select(Eq(total, Number(total, 0)), Number(total, 1), total);
  }
  const XlaOp wide = reduction == 0 ? BroadcastReduced(scale, x, plan.classes) : BroadcastTo(scale, x.dims());
  n.Return(lazy::Cast(-wide * plan.weight, n.in(1).type()));
}

void MseLoss(LoweringContext& n) {
  const ElementType type = PromotedType(n.in(0), n.in(1));
  const XlaOp d = Wide(lazy::Cast(n.in(0), type)) - Wide(lazy::Cast(n.in(1), type));
  n.Return(lazy::Cast(Reduced(d * d, n.int_arg(2)), type));
}
void MseLossBackward(LoweringContext& n) {
  const XlaOp d = Wide(n.in(1)) - Wide(n.in(2));
  n.Return(lazy::Cast(d * 2.0 * Spread(Wide(n.in(0)), d, n.int_arg(3)), n.in(1).type()));
}
void SmoothL1Loss(LoweringContext& n) {
  const ElementType type = PromotedType(n.in(0), n.in(1));
  const XlaOp d = Abs(Wide(lazy::Cast(n.in(0), type)) - Wide(lazy::Cast(n.in(1), type)));
  const double beta = n.float_arg(3);
  const XlaOp loss = beta == 0 ? d : Select(Lt(d, Number(d, beta)), d * d * (0.5 / beta), d - 0.5 * beta);
  n.Return(lazy::Cast(Reduced(loss, n.int_arg(2)), type));
}
void SmoothL1LossBackward(LoweringContext& n) {
  const XlaOp d = Wide(n.in(1)) - Wide(n.in(2));
  const double beta = n.float_arg(4);
  const XlaOp slope = beta == 0 ? Sign(d) : Select(Lt(Abs(d), Number(d, beta)), d / beta, Sign(d));
  n.Return(lazy::Cast(slope * Spread(Wide(n.in(0)), d, n.int_arg(3)), n.in(1).type()));
}
void Bce(LoweringContext& n) {
  const XlaOp x = Wide(n.in(0)), t = Wide(n.in(1));
  // torch clamps logarithms at -100.
  const XlaOp log_x = Max(Log(x), Number(x, -100)), log_rest = Max(Unary(Opcode::kLog1p, -x), Number(x, -100));
  XlaOp loss = (t - 1.0) * log_rest - t * log_x;
  if (n.has(2)) loss = loss * Wide(n.in(2));
  n.Return(lazy::Cast(Reduced(loss, n.int_arg(3)), n.in(0).type()));
}
void BceBackward(LoweringContext& n) {
  const XlaOp x = Wide(n.in(1)), t = Wide(n.in(2));
  XlaOp slope = (x - t) / Max((1.0 - x) * x, Number(x, 1e-12));
  if (n.has(3)) slope = slope * Wide(n.in(3));
  n.Return(lazy::Cast(slope * Spread(Wide(n.in(0)), x, n.int_arg(4)), n.in(1).type()));
}

}  // namespace hlokit::lazy::lower
