// SPDX-License-Identifier: Apache-2.0
// T5, an encoder and a decoder, with the parameter names of Hugging Face's.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/graph/deterministic_init.h"
#include "tracer/models/blocks.h"
#include "tracer/models/model.h"
#include "tracer/nn/layers.h"

namespace hlokit::lazy::models {
namespace {

using nn::Embedding;
using nn::Linear;
using nn::ModuleScope;
using nn::RmsNorm;

constexpr int64_t kBuckets = 32;
constexpr int64_t kMaxDistance = 128;

// Returns the bucket of a distance from the query to the key: small ones have their own, larger ones share one by their
// logarithm. Of both directions if `bidirectional`, otherwise only of keys before the query.
int64_t BucketOf(int64_t distance, bool bidirectional) {
  int64_t bucket = 0, buckets = kBuckets;
  if (bidirectional) {
    buckets /= 2;
    if (distance > 0) bucket = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return bucket + distance;
  const double part = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                      std::log(static_cast<double>(kMaxDistance) / static_cast<double>(exact));
  return bucket + std::min(exact + static_cast<int64_t>(part * static_cast<double>(buckets - exact)), buckets - 1);
}

struct T5Attention {
  Linear q, k, v, o;
  Embedding relative;  // in the first layer of a stack

  T5Attention() = default;
  T5Attention(const ModuleScope& s, const ModelConfig& c, bool with_bias)
      : q(s["q"], c.hidden, c.hidden, false),
        k(s["k"], c.hidden, c.hidden, false),
        v(s["v"], c.hidden, c.hidden, false),
        o(s["o"], c.hidden, c.hidden, false) {
    if (with_bias) relative = Embedding(s["relative_attention_bias"], kBuckets, c.heads);
  }
  Tensor operator()(const Tensor& x, const Tensor& memory, int64_t heads, const AttentionOptions& options) const {
    const Tensor queries = SplitHeads(q(x), heads);
    const Tensor keys = SplitHeads(k(memory), heads);
    return o(MergeHeads(Attention(queries, keys, SplitHeads(v(memory), heads), options)));
  }
};

struct T5Block {
  RmsNorm self_norm;
  T5Attention self;
  RmsNorm cross_norm;
  T5Attention cross;  // of the decoder
  RmsNorm ffn_norm;
  Linear wi, wo;

  T5Block(const ModuleScope& s, const ModelConfig& c, bool decodes, bool is_first) {
    const ModuleScope l = s["layer"];
    self = T5Attention(l[0]["SelfAttention"], c, is_first);
    self_norm = RmsNorm(l[0]["layer_norm"], c.hidden, 1e-6);
    if (decodes) {
      cross = T5Attention(l[1]["EncDecAttention"], c, false);
      cross_norm = RmsNorm(l[1]["layer_norm"], c.hidden, 1e-6);
    }
    const ModuleScope f = l[decodes ? 2 : 1];
    wi = Linear(f["DenseReluDense"]["wi"], c.hidden, c.ffn_hidden, false);
    wo = Linear(f["DenseReluDense"]["wo"], c.ffn_hidden, c.hidden, false);
    ffn_norm = RmsNorm(f["layer_norm"], c.hidden, 1e-6);
  }
};

class T5 : public Model {
 public:
  T5(const ModelConfig& c, nn::ParameterRegistry* r) : config_(c) {
    const ModuleScope s(r);
    shared_ = Embedding(s["shared"], c.vocab, c.hidden);
    for (int64_t i = 0; i < c.layers; ++i) encoder_.emplace_back(s["encoder"]["block"][i], c, false, i == 0);
    encoder_norm_ = RmsNorm(s["encoder"]["final_layer_norm"], c.hidden, 1e-6);
    for (int64_t i = 0; i < c.layers; ++i) decoder_.emplace_back(s["decoder"]["block"][i], c, true, i == 0);
    decoder_norm_ = RmsNorm(s["decoder"]["final_layer_norm"], c.hidden, 1e-6);
    above_ = Above(r, c.seq);
    both_ = Buckets(r, c.seq, true);
    before_ = Buckets(r, c.seq, false);
    // Takes tokens of the source and those of the target, shifted by one. Between the encoder's blocks: hidden states,
    // tokens of the target, bias of attention; between the decoder's: encoded source, hidden states, bias.
    AddStage([this](Tensors x, bool training) {
      x.push_back(Bias(encoder_[0], both_));
      x[0] = Dropped(shared_(x[0]), training);
      return x;
    });
    for (size_t i = 0; i < encoder_.size(); ++i) {
      AddStage([this, i](Tensors x, bool training) {
        const T5Block& b = encoder_[i];
        AttentionOptions within = Attending(training);
        within.bias = x[2];
        const Tensor h = b.self_norm(x[0]);
        x[0] = FeedForward(b, x[0] + Dropped(b.self(h, h, config_.heads, within), training), training);
        return x;
      });
    }
    AddStage([this](Tensors x, bool training) {
      x[0] = Dropped(encoder_norm_(x[0]), training);
      x[2] = Bias(decoder_[0], before_);
      x[1] = Dropped(shared_(x[1]), training);
      return x;
    });
    for (size_t i = 0; i < decoder_.size(); ++i) {
      AddStage([this, i](Tensors x, bool training) {
        const T5Block& b = decoder_[i];
        const AttentionOptions across = Attending(training);
        AttentionOptions within = across;
        within.bias = x[2];
        within.above = above_;
        const Tensor h = b.self_norm(x[1]);
        x[1] = x[1] + Dropped(b.self(h, h, config_.heads, within), training);
        x[1] = x[1] + Dropped(b.cross(b.cross_norm(x[1]), x[0], config_.heads, across), training);
        x[1] = FeedForward(b, x[1], training);
        return x;
      });
    }
    AddStage([this](Tensors x, bool training) {
      const double scale = std::pow(static_cast<double>(config_.hidden), -0.5);
      const Tensor h = Dropped(decoder_norm_(x[1]), training) * Scalar(scale);
      x[0] = InvokeOp(Op::linear, h, shared_.weight);
      x.resize(1);
      return x;
    });
  }

  std::pair<Tensor, Tensor> Predictions(const Tensor& logits, const Batch& batch) const override {
    const int64_t n = config_.batch * config_.seq;
    return {Reshape(logits, {n, config_.vocab}), Reshape(batch.labels, {n})};
  }
  bool predicts_tokens() const override { return true; }

  std::vector<BatchArray> BatchArrays() const override {
    // The target's tokens, from the one before `from` on; before the first there is 0.
    const auto target = [&](std::string_view name, int64_t from) -> BatchArray {
      const auto fill = [seq = config_.seq, vocab = config_.vocab, from](int64_t first, Literal* out) {
        const absl::Span<int64_t> values = out->values<int64_t>();
        for (size_t i = 0; i < values.size(); ++i) {
          const int64_t t = static_cast<int64_t>(i) % seq - from;
          const auto number = static_cast<uint32_t>(first * seq + static_cast<int64_t>(i) - from);
          values[i] = t < 0 ? 0 : HashWord(1002, number) % static_cast<uint32_t>(vocab);
        }
      };
      return {name, S64Shape({config_.batch, config_.seq}), config_.vocab, fill};
    };
    return {RandomTokens(config_), target("decoder_input_ids", 1), target("labels", 0)};
  }

 private:
  Tensor Dropped(const Tensor& x, bool training) const { return Dropout(x, config_.dropout, training); }
  AttentionOptions Attending(bool training) const {
    AttentionOptions attention;
    attention.scale = 1;  // the initial weights take account of it
    attention.dropout = config_.dropout;
    attention.training = training;
    return attention;
  }
  Tensor FeedForward(const T5Block& b, const Tensor& x, bool training) const {
    return x + Dropped(b.wo(Dropped(Relu(b.wi(b.ffn_norm(x))), training)), training);
  }
  // [query][key]
  static Tensor Buckets(nn::ParameterRegistry* registry, int64_t n, bool bidirectional) {
    return registry->Constant(S64Shape({n, n}), [n, bidirectional](Literal* out) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) out->values<int64_t>()[i * n + j] = BucketOf(j - i, bidirectional);
      }
    });
  }
  static Tensor Bias(const T5Block& first, const Tensor& buckets) {
    return Unsqueeze(Permute(first.self.relative(buckets), {2, 0, 1}), 0);
  }

  ModelConfig config_;
  Embedding shared_;
  std::vector<T5Block> encoder_, decoder_;
  RmsNorm encoder_norm_, decoder_norm_;
  Tensor above_, both_, before_;
};

}  // namespace

std::unique_ptr<Model> MakeT5(const ModelConfig& c, nn::ParameterRegistry* registry) {
  return std::make_unique<T5>(c, registry);
}

}  // namespace hlokit::lazy::models
