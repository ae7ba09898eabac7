// SPDX-License-Identifier: Apache-2.0
// Parts that several models have.
#ifndef HLOKIT_TRACER_MODELS_BLOCKS_H_
#define HLOKIT_TRACER_MODELS_BLOCKS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "tracer/dispatch/functions.h"
#include "tracer/models/model.h"
#include "tracer/nn/layers.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::models {

Shape S64Shape(Dims dims);
Shape F32Shape(Dims dims);

// Returns `x` with elements zeroed at `rate` and the others scaled, in training; otherwise `x`.
// Attributed to the line of the call.
Tensor Dropout(const LocatedTensor& x, double rate, bool training);

// [batch, t, heads * width] -> [batch, heads, t, width], and back.
Tensor SplitHeads(const Tensor& x, int64_t heads);
Tensor MergeHeads(const Tensor& x);
// Repeats each of the key or value heads `times`, for the query heads that share it.
Tensor RepeatHeads(const Tensor& x, int64_t times);

struct AttentionOptions {
  Tensor bias;       // is added to the scores
  Tensor above;      // marks scores that are -inf
  double scale = 0;  // of the scores; 0: 1 / sqrt(width)
  double dropout = 0;
  bool training = false;
  // One kernel, xla::splash_attention, that can be simulated but not executed, if the scores have no bias and no
  // dropout, and their scale is the default; it masks all later keys, if `above` is defined.
  bool kernel = false;
};
// Returns softmax(scale q k' + bias) v. Keys and values may have fewer heads only in a kernel.
Tensor Attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);

// Returns 0, 1, ... n - 1.
Tensor Positions(nn::ParameterRegistry* registry, int64_t n);
// Returns the mask above[i][j] = j > i.
Tensor Above(nn::ParameterRegistry* registry, int64_t n);
// Rotary embedding: returns a function of angles by position and index in the first half of the width, twice.
Tensor RotaryTable(nn::ParameterRegistry* registry, int64_t n, int64_t width, double (*function)(double));
// Rotates pairs of elements by the angles of the tables.
Tensor Rotate(const Tensor& x, const Tensor& cos, const Tensor& sin);

struct SelfAttention {
  nn::Linear q, k, v, o;
  int64_t heads = 1;

  SelfAttention(const nn::ModuleScope& s, int64_t hidden, int64_t head_count)
      : q(s["q"], hidden, hidden),
        k(s["k"], hidden, hidden),
        v(s["v"], hidden, hidden),
        o(s["o"], hidden, hidden),
        heads(head_count) {}
  Tensor operator()(const Tensor& x, const AttentionOptions& options) const;
};

// Returns pseudo-random tokens as [batch, seq].
BatchArray RandomTokens(const ModelConfig& config);

// Next-token prediction.
class LanguageModel : public Model {
 public:
  explicit LanguageModel(const ModelConfig& c) : config_(c) {}

  std::pair<Tensor, Tensor> Predictions(const Tensor& logits, const Batch& batch) const override;
  bool predicts_tokens() const override { return true; }
  std::vector<BatchArray> BatchArrays() const override;

 protected:
  ModelConfig config_;
};

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_BLOCKS_H_
