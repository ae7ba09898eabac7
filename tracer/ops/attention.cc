// SPDX-License-Identifier: Apache-2.0
// Scaled dot product attention: softmax(scale q k' + mask) v over the last two dimensions.
#include <cmath>
#include <limits>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

struct AttentionOptions {
  Tensor mask;  // undefined if none
  double dropout = 0;
  bool causal = false;
  IValue scale;  // None: 1 / sqrt of the query's last size
  bool grouped_heads = false;
};

bool CheckAttention(OpKernelContext& c, const AttentionOptions& o) {
  const Tensor &q = c.tensor(0), &k = c.tensor(1), &v = c.tensor(2);
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype()) {
    c.Fail(StrCat("Expected query, key, and value to have the same dtype, but got query.dtype: ", TypeName(q.dtype()),
                  " key.dtype: ", TypeName(k.dtype()), " and value.dtype: ", TypeName(v.dtype()), " instead."));
    return false;
  }
  if (!RequireFloat(c, 0)) return false;
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2) {
    c.Fail(StrCat("Expected query, key, and value to all be at least 2 dimensional, but got query.dim: ", q.dim(),
                  ", key.dim: ", k.dim(), " and value.dim: ", v.dim(), " instead."));
    return false;
  }
  if (o.mask.defined() && o.causal) {
    c.Fail("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    return false;
  }
  if (o.mask.defined() && o.mask.dtype() != ElementType::kPred && o.mask.dtype() != ElementType::kF32 &&
      o.mask.dtype() != q.dtype()) {
    c.Fail(StrCat("Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
                  TypeName(o.mask.dtype()), " and query.dtype: ", TypeName(q.dtype()), " instead."));
    return false;
  }
  return true;
}

// Repeats the heads (dimension -3) of keys or values for groups of heads of the query.
Tensor RepeatHeads(OpKernelContext& c, const Tensor& q, const Tensor& t) {
  if (t.size(-3) == 0 || q.size(-3) % t.size(-3) != 0) {
    c.Fail(StrCat("Number of heads in key and value must divide the number of heads in query, but got ", t.size(-3),
                  " and ", q.size(-3)));
    return Tensor();
  }
  return InvokeOp(Op::repeat_interleave_self_int, t, q.size(-3) / t.size(-3), int64_t{-3});
}

// Returns the masked scores.
Tensor AttentionScores(OpKernelContext& c, const Tensor& k, const AttentionOptions& o) {
  const Tensor& q = c.tensor(0);
  const double scale = o.scale.none() ? 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.size(-1), 1)))
                                      : o.scale.get<Scalar>()->ToDouble();
  Tensor scores = lazy::Matmul(q * Scalar(scale), lazy::Transpose(k, -2, -1));
  const double none = -std::numeric_limits<double>::infinity();
  if (o.causal) {
    const Tensor later = lazy::Lt(IotaAlong(c, q.size(-2), 0, 2), IotaAlong(c, k.size(-2), 1, 2));
    scores = lazy::MaskedFill(scores, later, none);
  } else if (o.mask.defined() && o.mask.dtype() == ElementType::kPred) {
    scores = lazy::MaskedFill(scores, lazy::Not(o.mask), none);
  } else if (o.mask.defined()) {
    scores = scores + o.mask.to(q.dtype());
  }
  return scores;
}

// Returns the softmax of scores. A row whose keys are all masked attends to nothing, where the softmax would be NaN.
Tensor AttentionWeights(const Tensor& scores, const AttentionOptions& o) {
  if (!o.mask.defined() || scores.size(-1) == 0) return lazy::Softmax(scores, -1);
  const Tensor most = InvokeOp(Op::amax, scores.Detach(), IntList{-1}, true);
  const Tensor nothing = lazy::Eq(most, -std::numeric_limits<double>::infinity());
  return lazy::MaskedFill(lazy::Softmax(lazy::MaskedFill(scores, nothing, 0), -1), nothing, 0);
}

struct Attention {
  Tensor output, weights, scores;  // undefined after an error
};

Attention Attend(OpKernelContext& c, const AttentionOptions& o) {
  Attention a;
  if (!CheckAttention(c, o)) return a;
  Tensor k = c.tensor(1), v = c.tensor(2);
  if (o.grouped_heads) {
    if (c.tensor(0).dim() < 3 || k.dim() < 3 || v.dim() < 3) {
      c.Fail("enable_gqa requires query, key and value of at least 3 dimensions");
      return a;
    }
    k = RepeatHeads(c, c.tensor(0), k);
    v = RepeatHeads(c, c.tensor(0), v);
  }
  a.scores = AttentionScores(c, k, o);
  a.weights = AttentionWeights(a.scores, o);
  if (o.dropout > 0) a.weights = InvokeOp(Op::dropout, a.weights, o.dropout, true);
  a.output = lazy::Matmul(a.weights, v);
  return a;
}

}  // namespace

// query, key, value, attn_mask?, dropout_p, is_causal, scale?, enable_gqa
void ScaledDotProductAttention(OpKernelContext& c) {
  c.Return(Attend(c, {c.tensor(3), c.float_arg(4), c.bool_arg(5), c.args()[6], c.bool_arg(7)}).output);
}
// query, key, value, attn_mask?, dropout_p, need_attn_weights, is_causal: torch 1.13's private name of the same
void ScaledDotProductAttentionWeights(OpKernelContext& c) {
  const Attention a = Attend(c, {c.tensor(3), c.float_arg(4), c.bool_arg(6), IValue(), false});
  if (!a.output.defined()) return c.Return(Tensor(), Tensor());
  c.Return(a.output, c.bool_arg(5) ? a.weights : Tensor());
}
// query, key, value, dropout_p, is_causal, return_debug_mask, scale? -> output, logsumexp and what its CUDA kernel
// keeps: sequence boundaries, lengths, a seed
void ScaledDotProductFlashAttention(OpKernelContext& c) {
  if (c.tensor(0).dim() != 4) return c.Fail("query, key and value must have 4 dimensions");
  const Attention a = Attend(c, {Tensor(), c.float_arg(3), c.bool_arg(4), c.args()[6], false});
  if (!a.output.defined()) return;
  const auto number = [&](int64_t value) {
    return ConstantTensor(c, {}, {static_cast<double>(value)}, ElementType::kS64);
  };
  c.Return({a.output, InvokeOp(Op::logsumexp, a.scores, IntList{-1}, false), Tensor(), Tensor(),
            number(c.tensor(0).size(2)), number(c.tensor(1).size(2)), number(0), number(0), Tensor()});
}
// query, key, value, dropout_p, is_causal, attn_mask?, scale? -> output, logsumexp; like torch's kernel in f32 inside
void ScaledDotProductFlashAttentionForCpu(OpKernelContext& c) {
  if (c.tensor(0).dim() != 4) return c.Fail("query, key and value must have 4 dimensions");
  const ElementType type = c.tensor(0).dtype();
  const bool narrow = type == ElementType::kBF16 || type == ElementType::kF16;
  for (size_t i = 0; narrow && i < 3; ++i) c.args()[i] = c.tensor(i).to(ElementType::kF32);
  Tensor mask = c.tensor(5);
  if (narrow && mask.defined() && mask.dtype() == type) mask = mask.to(ElementType::kF32);
  const Attention a = Attend(c, {mask, c.float_arg(3), c.bool_arg(4), c.args()[6], false});
  if (!a.output.defined()) return;
  c.Return(narrow ? a.output.to(type) : a.output, InvokeOp(Op::logsumexp, a.scores, IntList{-1}, false));
}
// query, key, value, attn_bias?, compute_log_sumexp, dropout_p, is_causal, scale? -> output, logsumexp, seed, offset
void ScaledDotProductEfficientAttention(OpKernelContext& c) {
  if (c.tensor(0).dim() != 4) return c.Fail("query, key and value must have 4 dimensions");
  const Attention a = Attend(c, {c.tensor(3), c.float_arg(5), c.bool_arg(6), c.args()[7], false});
  if (!a.output.defined()) return;
  const Tensor sums = c.bool_arg(4) ? InvokeOp(Op::logsumexp, a.scores, IntList{-1}, false) : Tensor();
  const auto zero = [&] { return ConstantTensor(c, {}, {0}, ElementType::kS64); };
  c.Return({a.output, sums, zero(), zero()});
}

}  // namespace hlokit::lazy::kernel
