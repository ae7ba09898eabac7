// SPDX-License-Identifier: Apache-2.0
// Losses of margins between scores or distances, and the similarities that they compare.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

// Returns max(0, t).
Tensor Hinge(const Tensor& t) { return InvokeOp(Op::clamp, t, 0); }

Tensor PairDistance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  return InvokeOp(Op::norm_ScalarOpt_dim, lazy::Add(a - b, eps), p, IntList{-1}, keepdim);
}

}  // namespace

// x1, x2, dim, eps
void CosineSimilarity(OpKernelContext& c) {
  const ElementType type = Promote(c.tensor(0).dtype(), c.tensor(1).dtype());
  if (!IsFloat(type)) {
    return c.Fail(StrCat("expected common dtype to be floating point, yet common dtype is ", TypeName(type)));
  }
  const int64_t dim = c.Dim(c.int_arg(2), std::max(c.tensor(0).dim(), c.tensor(1).dim()));
  if (c.failed()) return;
  // Dimensions are those of the broadcast tensors.
  const Tensor sum = c.tensor(0) + c.tensor(1);
  if (!sum.defined()) return c.Return(sum);
  const auto unit = [&](const Tensor& given) {
    const Tensor x = lazy::Expand(given.to(type), Sizes(sum));
    const Tensor norm = InvokeOp(Op::linalg_vector_norm, x, 2, IntList{dim}, true);
    // Clamped outside of the derivative.
    const Tensor raise = Hinge(lazy::Rsub(norm.Detach(), c.scalar(3)));
    return x / (norm + raise);
  };
  const Tensor product = unit(c.tensor(0)) * unit(c.tensor(1));
  c.Return(product.dim() == 0 ? product : lazy::Sum(product, {dim}));
}
// x1, x2, p, eps, keepdim
void PairwiseDistance(OpKernelContext& c) {
  c.Return(PairDistance(c.tensor(0), c.tensor(1), c.float_arg(2), c.float_arg(3), c.bool_arg(4)));
}

// input1, input2, target, margin, reduction
void CosineEmbeddingLoss(OpKernelContext& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1), &t = c.tensor(2);
  if (t.dim() > 1) return c.Fail("0D or 1D target tensor expected, multi-target not supported");
  if (a.dim() != t.dim() + 1 || b.dim() != t.dim() + 1) {
    return c.Fail(StrCat(t.dim(), "D target tensor expects ", t.dim() + 1,
                         "D input tensors, but found inputs with sizes ", ListToString(a.sizes()), " and ",
                         ListToString(b.sizes()), "."));
  }
  constexpr double kEps = 1e-12;
  const auto dot = [](const Tensor& x, const Tensor& y) { return lazy::Sum(x * y, {-1}); };
  const Tensor norms = lazy::Sqrt(lazy::Add(dot(a, a), kEps) * lazy::Add(dot(b, b), kEps));
  const Tensor cosine = dot(a, b) / norms;
  const Tensor same = lazy::Where(lazy::Eq(t, 1), lazy::Rsub(cosine, 1), 0);
  const Tensor different = lazy::Where(lazy::Eq(t, -1), Hinge(lazy::Sub(cosine, c.scalar(3))), 0);
  c.Return(Reduced(c, same + different, c.int_arg(4)));
}
// self, target, margin, reduction
void HingeEmbeddingLoss(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &t = c.tensor(1);
  const Tensor far = lazy::Where(lazy::Ne(t, 1), Hinge(lazy::Rsub(x, c.scalar(2))), 0);
  const Tensor near = lazy::Where(lazy::Ne(t, -1), x, 0);
  c.Return(Reduced(c, far + near, c.int_arg(3)));
}
// input1, input2, target, margin, reduction
void MarginRankingLoss(OpKernelContext& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1), &t = c.tensor(2);
  if (a.dim() != b.dim() || a.dim() != t.dim()) {
    return c.Fail(StrCat("margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: ",
                         ListToString(a.sizes()), ", input2: ", ListToString(b.sizes()),
                         ", target: ", ListToString(t.sizes()), " "));
  }
  c.Return(Reduced(c, Hinge(lazy::Add(-t * (a - b), c.scalar(3))), c.int_arg(4)));
}
// self, target, reduction: log(1 + exp(-target self))
void SoftMarginLoss(OpKernelContext& c) {
  if (!RequireFloat(c, 0)) return;
  c.Return(Reduced(c, InvokeOp(Op::log1p, lazy::Exp(-c.tensor(0) * c.tensor(1))), c.int_arg(2)));
}
// anchor, positive, negative, margin, p, eps, swap, reduction
void TripletMarginLoss(OpKernelContext& c) {
  const Tensor &anchor = c.tensor(0), &positive = c.tensor(1), &negative = c.tensor(2);
  if (anchor.dim() != positive.dim() || anchor.dim() != negative.dim()) {
    return c.Fail(StrCat("All inputs should have same dimension but got ", anchor.dim(), "D, ", positive.dim(),
                         "D and ", negative.dim(), "D inputs."));
  }
  const double p = c.float_arg(4), eps = c.float_arg(5);
  const Tensor near = PairDistance(anchor, positive, p, eps, false);
  Tensor far = PairDistance(anchor, negative, p, eps, false);
  if (c.bool_arg(6)) far = InvokeOp(Op::minimum, far, PairDistance(positive, negative, p, eps, false));
  c.Return(Reduced(c, Hinge(lazy::Add(near - far, c.scalar(3))), c.int_arg(7)));
}

// ---- margins between classes ----

namespace {

// Reads scores [classes] or [batch, classes] as rows, and a target of the given number of dimensions more than none.
bool RequireScores(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  if (!RequireFloat(c, 0)) return false;
  if (c.tensor(1).dtype() != ElementType::kS64) {
    c.Fail(StrCat("expected scalar type Long but found ", TypeName(c.tensor(1).dtype())));
    return false;
  }
  if (x.dim() > 2 || (x.dim() == 2 && x.size(1) == 0) || (x.dim() == 1 && x.size(0) == 0)) {
    c.Fail(StrCat("Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
                  ListToString(x.sizes())));
    return false;
  }
  return true;
}

struct MultilabelMargin {
  Tensor each;       // the loss of each row
  Tensor is_target;  // 1 for the classes that are targets, else 0
};

// Rows of `target` list classes up to the first -1. The loss of a row is the mean over classes of the sum over its
// targets t and all others i of max(0, 1 - (x[t] - x[i])).
MultilabelMargin MultilabelMarginOf(const Tensor& x, const Tensor& target) {
  const int64_t classes = x.size(1);
  const Tensor before_end = InvokeOp(Op::cumprod, lazy::To(lazy::Ge(target, 0), ElementType::kS64), 1);
  const Tensor listed = lazy::Ne(before_end, 0);
  const Tensor index = lazy::Where(listed, target, 0);
  MultilabelMargin result;
  const Tensor counts = lazy::ScatterAdd(lazy::ZerosLike(target), 1, index, before_end);
  const Tensor is_target = lazy::Ne(counts, 0);
  const Tensor gap = lazy::Rsub(lazy::Unsqueeze(lazy::Gather(x, 1, index), 2) - lazy::Unsqueeze(x, 1), 1);
  const Tensor counted = lazy::And(lazy::Unsqueeze(listed, 2), lazy::Not(lazy::Unsqueeze(is_target, 1)));
  const Tensor sum = lazy::Sum(lazy::Where(counted, InvokeOp(Op::clamp, gap, 0), 0), {1, 2});
  result.each = lazy::Div(sum, static_cast<double>(classes));
  result.is_target = lazy::To(is_target, x.dtype());
  return result;
}

}  // namespace

// self, target, reduction -> output, is_target
void MultilabelMarginLossForward(OpKernelContext& c) {
  const Tensor &x = c.tensor(0), &target = c.tensor(1);
  if (!RequireScores(c)) return;
  if (target.sizes() != x.sizes() && !(x.dim() == 0 && target.numel() == 1)) {
    return c.Fail(StrCat("inconsistent size ", ListToString(target.sizes()), " for argument #2 'target'"));
  }
  const IntList rows = {x.dim() == 2 ? x.size(0) : 1, x.size(-1)};
  const MultilabelMargin m = MultilabelMarginOf(lazy::Reshape(x, rows), lazy::Reshape(target, rows));
  const Tensor each = x.dim() == 2 ? m.each : lazy::Reshape(m.each, {});
  const Tensor loss = Reduced(c, each, c.int_arg(2));
  if (!c.failed()) c.Return(loss, lazy::Reshape(m.is_target, Sizes(target)));
}
void MultilabelMarginLoss(OpKernelContext& c) {
  c.Return(InvokeOp(Op::multilabel_margin_loss_forward, c.tensor(0), c.tensor(1), c.int_arg(2)));
}
// self, target, p, margin, weight?, reduction: the mean over classes i other than the target t of
// (weight[t] max(0, margin - x[t] + x[i])^p)
void MultiMarginLoss(OpKernelContext& c) {
  const Tensor &given = c.tensor(0), &target = c.tensor(1);
  if (!RequireScores(c)) return;
  const double p = c.float_arg(2);
  if (p != 1 && p != 2) return c.Fail("only p == 1 and p == 2 supported");
  const int64_t batch = given.dim() == 2 ? given.size(0) : 1, classes = given.size(-1);
  if (target.dim() > 1 || target.numel() != batch) {
    return c.Fail(StrCat("inconsistent target size, got: ", ListToString(target.sizes())));
  }
  if (c.has(4) && (c.tensor(4).dim() > 1 || c.tensor(4).numel() != classes)) {
    return c.Fail(StrCat("inconsistent weight size, got: ", ListToString(c.tensor(4).sizes())));
  }
  const Tensor x = lazy::Reshape(given, {batch, classes}), index = lazy::Reshape(target, {batch, 1});
  Tensor gap = InvokeOp(Op::clamp, lazy::Add(x - lazy::Gather(x, 1, index), c.scalar(3)), 0);
  if (p == 2) gap = gap * gap;
  if (c.has(4))
    gap = gap * lazy::IndexSelect(lazy::Reshape(c.tensor(4), {classes}), 0, lazy::Reshape(index, {batch})).unsqueeze(1);
  const Tensor others = lazy::Ne(IotaAlong(c, classes, 1, 2) - index, 0);
  Tensor each = lazy::Div(lazy::Sum(lazy::Where(others, gap, 0), {1}), static_cast<double>(classes));
  if (target.dim() == 0) each = lazy::Reshape(each, {});
  c.Return(Reduced(c, each, c.int_arg(5)));
}

// input1 [.., i], input2 [.., j], weight [k, i, j], bias? [k] -> [.., k]
void Bilinear(OpKernelContext& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1), &w = c.tensor(2), &bias = c.tensor(3);
  if (a.dim() == 0 || a.dim() != b.dim()) {
    return c.Fail(StrCat("bilinear(): input dimensions do not match: got ", a.dim(), " and ", b.dim()));
  }
  for (int64_t d = 0; d + 1 < a.dim(); ++d) {
    if (a.size(d) == b.size(d)) continue;
    return c.Fail(
        StrCat("bilinear(): input batch dimensions do not match at dim ", d, ": got ", a.size(d), " and ", b.size(d)));
  }
  if (w.dim() != 3) return c.Fail("bilinear(): weight must have 3 dimensions");
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t size = (i == 0 ? a : b).size(-1);
    if (size == w.size(i + 1)) continue;
    return c.Fail(StrCat("bilinear(): input", i + 1, " size does not match weight size: got ", size, " but expected ",
                         w.size(i + 1)));
  }
  const int64_t outputs = w.size(0), inner = b.size(-1);
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != outputs)) {
    return c.Fail(
        StrCat("bilinear(): bias size does not match weight size: got ", bias.size(0), " but expected ", outputs));
  }
  IntList split = Sizes(a);
  split.back() = outputs;
  split.push_back(inner);
  const Tensor kernel = lazy::Reshape(lazy::Permute(w, {1, 0, 2}), {a.size(-1), outputs * inner});
  const Tensor left = lazy::Reshape(lazy::Matmul(a, kernel), split);
  const Tensor y = lazy::Sum(left * lazy::Unsqueeze(b, -2), {-1});
  c.Return(bias.defined() ? y + bias : y);
}

}  // namespace hlokit::lazy::kernel
