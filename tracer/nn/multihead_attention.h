// SPDX-License-Identifier: Apache-2.0
// torch.nn.MultiheadAttention, with the names of its parameters.
#ifndef HLOKIT_TRACER_NN_MULTIHEAD_ATTENTION_H_
#define HLOKIT_TRACER_NN_MULTIHEAD_ATTENTION_H_

#include <cstdint>

#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/tensor.h"
#include "tracer/nn/layers.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;
  bool bias = true;
  bool add_bias_kv = false;    // adds a learned key and value to those of the input
  bool add_zero_attn = false;  // adds a key and value of zeros
  int64_t kdim = 0;            // 0: as the query
  int64_t vdim = 0;
  bool batch_first = false;
};

struct AttentionMasks {
  // [batch, keys]. In both, true: masked; a number is added to the scores.
  Tensor key_padding_mask;
  Tensor attn_mask;  // [queries, keys] or [batch * heads, queries, keys]
};

struct AttentionOutput {
  Tensor output;
  Tensor weights;  // [batch, queries, keys], the mean over heads, or with heads before queries
};

class MultiheadAttention {
 public:
  MultiheadAttention(const ModuleScope& s, int64_t embed_dim, int64_t num_heads,
                     const MultiheadAttentionOptions& options = {});
  // query, key, value: [length, batch, features], or [batch, length, features] with batch_first.
  AttentionOutput operator()(const LocatedTensor& query, const Tensor& key, const Tensor& value, bool training,
                             const AttentionMasks& masks = {}, bool average_attn_weights = true) const;

 private:
  // Returns projected inputs as [batch, heads, length, width].
  Tensor Heads(const Tensor& projected) const;
  // Returns the masks as numbers to add to scores [batch, heads, queries, keys]; undefined if there are none.
  Tensor Mask(const AttentionMasks& masks, const Tensor& like, int64_t batch, int64_t keys) const;

  int64_t embed_dim_, num_heads_;
  MultiheadAttentionOptions options_;
  Tensor q_weight_, k_weight_, v_weight_, in_bias_, bias_k_, bias_v_;
  Linear out_proj_;
};

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_MULTIHEAD_ATTENTION_H_
