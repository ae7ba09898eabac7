// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/multihead_attention.h"

#include <limits>
#include <utility>

#include "tracer/dispatch/functions.h"

namespace hlokit::lazy::nn {
namespace {

// Returns a mask as numbers to add to scores, with a column of zeros for each key that is `added`.
Tensor Additive(const Tensor& mask, const Tensor& like, int64_t added) {
  Tensor numbers = mask;
  if (mask.dtype() == ElementType::kPred) {
    const Tensor zeros = InvokeOp(Op::new_zeros, like, mask.sizes());
    numbers = MaskedFill(zeros, mask, -std::numeric_limits<double>::infinity());
  }
  return added == 0 ? numbers : InvokeOp(Op::constant_pad_nd, numbers, IntList{0, added}, 0);
}

}  // namespace

MultiheadAttention::MultiheadAttention(const ModuleScope& s, int64_t embed_dim, int64_t num_heads,
                                       const MultiheadAttentionOptions& options)
    : embed_dim_(embed_dim), num_heads_(num_heads), options_(options) {
  const int64_t kdim = options.kdim == 0 ? embed_dim : options.kdim;
  const int64_t vdim = options.vdim == 0 ? embed_dim : options.vdim;
  if (kdim == embed_dim && vdim == embed_dim) {
    q_weight_ = s.Parameter("in_proj_weight", {3 * embed_dim, embed_dim}, ParameterKind::kWeight);
  } else {
    q_weight_ = s.Parameter("q_proj_weight", {embed_dim, embed_dim}, ParameterKind::kWeight);
    k_weight_ = s.Parameter("k_proj_weight", {embed_dim, kdim}, ParameterKind::kWeight);
    v_weight_ = s.Parameter("v_proj_weight", {embed_dim, vdim}, ParameterKind::kWeight);
  }
  if (options.bias) in_bias_ = s.Parameter("in_proj_bias", {3 * embed_dim}, ParameterKind::kBias);
  if (options.add_bias_kv) {
    bias_k_ = s.Parameter("bias_k", {1, 1, embed_dim}, ParameterKind::kWeight);
    bias_v_ = s.Parameter("bias_v", {1, 1, embed_dim}, ParameterKind::kWeight);
  }
  out_proj_ = Linear(s["out_proj"], embed_dim, embed_dim, options.bias);
}

Tensor MultiheadAttention::Heads(const Tensor& projected) const {
  const int64_t length = projected.size(0), batch = projected.size(1);
  return Permute(Reshape(projected, {length, batch, num_heads_, embed_dim_ / num_heads_}), {1, 2, 0, 3});
}

Tensor MultiheadAttention::Mask(const AttentionMasks& masks, const Tensor& like, int64_t batch, int64_t keys) const {
  Tensor sum;
  if (masks.attn_mask.defined()) {
    const Tensor mask = Additive(masks.attn_mask, like, keys - masks.attn_mask.size(-1));
    sum = mask.dim() == 3 ? Reshape(mask, {batch, num_heads_, mask.size(1), keys}) : mask;
  }
  if (masks.key_padding_mask.defined()) {
    const Tensor mask = Additive(masks.key_padding_mask, like, keys - masks.key_padding_mask.size(-1));
    const Tensor wide = Reshape(mask, {batch, 1, 1, keys});
    sum = sum.defined() ? sum + wide : wide;
  }
  return sum;
}

AttentionOutput MultiheadAttention::operator()(const LocatedTensor& query, const Tensor& key, const Tensor& value,
                                               bool training, const AttentionMasks& masks,
                                               bool average_attn_weights) const {
  const ScopedSourceLocation site(query.location);
  const auto steps_first = [&](const Tensor& t) { return options_.batch_first ? Transpose(t, 0, 1) : t; };
  const Tensor inputs[] = {steps_first(query.tensor), steps_first(key), steps_first(value)};
  Tensor projected[3];
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor separate = i == 1 ? k_weight_ : v_weight_;
    const Tensor weight =
        k_weight_.defined() ? (i == 0 ? q_weight_ : separate) : Narrow(q_weight_, 0, i * embed_dim_, embed_dim_);
    const Tensor bias = in_bias_.defined() ? Narrow(in_bias_, 0, i * embed_dim_, embed_dim_) : Tensor();
    projected[i] = lazy::Linear(inputs[i], weight, bias);
  }
  const int64_t queries = inputs[0].size(0), batch = inputs[0].size(1);
  if (bias_k_.defined()) {
    projected[1] = Cat({projected[1], Expand(bias_k_, {1, batch, embed_dim_})}, 0);
    projected[2] = Cat({projected[2], Expand(bias_v_, {1, batch, embed_dim_})}, 0);
  }
  if (options_.add_zero_attn) {
    for (Tensor* t : {&projected[1], &projected[2]})
      *t = InvokeOp(Op::constant_pad_nd, *t, IntList{0, 0, 0, 0, 0, 1}, 0);
  }
  const Tensor mask = Mask(masks, projected[0], batch, projected[1].size(0));
  const Outputs out =
      InvokeOpMultiOutput(Op::scaled_dot_product_attention_weights, Heads(projected[0]), Heads(projected[1]),
                          Heads(projected[2]), mask, training ? options_.dropout : 0.0, true);
  if (!out[0].defined()) return {};
  const Tensor joined = Reshape(Permute(out[0], {2, 0, 1, 3}), {queries, batch, embed_dim_});
  return {steps_first(out_proj_(joined)), average_attn_weights ? Mean(out[1], {1}) : out[1]};
}

}  // namespace hlokit::lazy::nn
