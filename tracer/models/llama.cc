// SPDX-License-Identifier: Apache-2.0
// Llama and Mixtral, of any size: training, and generation with cached keys and values.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "tracer/autograd/node.h"
#include "tracer/models/blocks.h"
#include "tracer/models/model.h"
#include "tracer/nn/layers.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::models {
namespace {

using nn::Embedding;
using nn::Linear;
using nn::ModuleScope;
using nn::RmsNorm;

struct FeedForward {
  Linear gate, up, down;

  FeedForward() = default;
  FeedForward(const ModuleScope& s, const ModelConfig& c)
      : gate(s["gate"], c.hidden, c.ffn_hidden, false),
        up(s["up"], c.hidden, c.ffn_hidden, false),
        down(s["down"], c.ffn_hidden, c.hidden, false) {}
  Tensor operator()(const Tensor& x) const { return down(Silu(gate(x)) * up(x)); }
};

// Each token is computed by the two experts that the router prefers. Shapes are static, so every expert computes all
// tokens, and those that it was not chosen for get the weight 0.
struct Experts {
  static constexpr int64_t kChosen = 2;
  Linear router;
  std::vector<FeedForward> experts;

  Experts() = default;
  Experts(const ModuleScope& s, const ModelConfig& c) : router(s["router"], c.hidden, c.experts, false) {
    for (int64_t e = 0; e < c.experts; ++e) experts.emplace_back(s["experts"][e], c);
  }
  Tensor operator()(const Tensor& x) const {
    const auto count = static_cast<int64_t>(experts.size());
    const Tensor probabilities = InvokeOp(Op::softmax_int, router(x), -1, ElementType::kF32);
    const Outputs top = InvokeOpMultiOutput(Op::topk, probabilities, std::min(kChosen, count), -1);
    if (top.size() != 2 || !top[0].defined()) return Tensor();
    const Tensor shares = top[0] / Sum(top[0], {-1}, true);
    const Tensor chosen = To(InvokeOp(Op::one_hot, top[1], count), ElementType::kF32);  // [batch, t, chosen, experts]
    const Tensor weights = To(Sum(chosen * Unsqueeze(shares, -1), {-2}), x.dtype());
    Tensor sum;
    for (int64_t e = 0; e < count; ++e) {
      const Tensor part = experts[static_cast<size_t>(e)](x) * Slice(weights, -1, e, e + 1);
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  }
};

// Keys and values of all positions: [batch, kv_heads, seq, width].
struct LayerCache {
  Tensor keys, values;
};

class Llama : public LanguageModel {
 public:
  Llama(const ModelConfig& c, nn::ParameterRegistry* r) : LanguageModel(c) {
    const ModuleScope s(r);
    const int64_t width = c.hidden / c.heads, kv = width * c.kv_heads;
    tok_ = Embedding(s["tok"], c.vocab, c.hidden);
    for (int64_t i = 0; i < c.layers; ++i) {
      const ModuleScope b = s["blocks"][i];
      Block block{RmsNorm(b["rms1"], c.hidden),
                  Linear(b["q"], c.hidden, c.hidden, false),
                  Linear(b["k"], c.hidden, kv, false),
                  Linear(b["v"], c.hidden, kv, false),
                  Linear(b["o"], c.hidden, c.hidden, false),
                  RmsNorm(b["rms2"], c.hidden),
                  {},
                  {}};
      if (c.experts > 0) {
        block.moe = Experts(b, c);
      } else {
        block.ffn = FeedForward(b, c);
      }
      blocks_.push_back(std::move(block));
    }
    rms_ = RmsNorm(s["rms"], c.hidden);
    lm_ = Linear(s["lm"], c.hidden, c.vocab, false);
    cos_ = RotaryTable(r, c.seq, width, [](double angle) { return std::cos(angle); });
    sin_ = RotaryTable(r, c.seq, width, [](double angle) { return std::sin(angle); });
    if (c.type != ElementType::kF32) {
      cos_ = To(cos_, c.type);
      sin_ = To(sin_, c.type);
    }
    above_ = Above(r, c.seq);
    AddStage([this](Tensors x, bool) {
      x[0] = tok_(x[0]);
      return x;
    });
    for (size_t i = 0; i < blocks_.size(); ++i) {
      AddStage([this, i](Tensors x, bool training) {
        x[0] = Apply(blocks_[i], x[0], training);
        return x;
      });
    }
    AddStage([this](Tensors x, bool) {
      x[0] = lm_(rms_(x[0]));
      return x;
    });
  }

  // Returns the logits of tokens [batch, t] at `positions` [t], whose keys and values are added to the caches.
  Tensor CachedLogits(const Tensor& tokens, const Tensor& positions, std::vector<LayerCache>* caches) const {
    const Tensor cos = IndexSelect(cos_, 0, positions), sin = IndexSelect(sin_, 0, positions);
    AttentionOptions attention;
    attention.above = IndexSelect(above_, 0, positions);
    Tensor x = tok_(tokens);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const Block& b = blocks_[i];
      LayerCache& cache = (*caches)[i];
      const Tensor h = b.rms1(x);
      const Tensor q = Rotate(SplitHeads(b.q(h), config_.heads), cos, sin);
      const Tensor k = Rotate(SplitHeads(b.k(h), config_.kv_heads), cos, sin);
      const Tensor v = SplitHeads(b.v(h), config_.kv_heads);
      WriteInPlace(cache.keys, InvokeOp(Op::index_copy, cache.keys, 2, positions, k));
      WriteInPlace(cache.values, InvokeOp(Op::index_copy, cache.values, 2, positions, v));
      x = x + b.o(MergeHeads(Attention(q, Repeated(cache.keys), Repeated(cache.values), attention)));
      x = x + b.Wide(b.rms2(x));
    }
    return lm_(rms_(x));
  }

  std::unique_ptr<Decoder> MakeDecoder(Tracer& tracer) const override;

 private:
  struct Block {
    RmsNorm rms1;
    Linear q, k, v, o;
    RmsNorm rms2;
    FeedForward ffn;
    Experts moe;
    Tensor Wide(const Tensor& x) const { return moe.experts.empty() ? ffn(x) : moe(x); }
  };
  Tensor Apply(const Block& b, Tensor x, bool training) const {
    AttentionOptions attention;
    attention.above = above_;
    attention.dropout = config_.dropout;
    attention.training = training;
    const Tensor h = b.rms1(x);
    const Tensor q = Rotate(SplitHeads(b.q(h), config_.heads), cos_, sin_);
    const Tensor k = Rotate(SplitHeads(b.k(h), config_.kv_heads), cos_, sin_);
    const Tensor v = SplitHeads(b.v(h), config_.kv_heads);
    attention.kernel = config_.fused_attention;
    if (attention.kernel) {
      x = x + b.o(MergeHeads(Attention(q, k, v, attention)));
    } else {
      x = x + b.o(MergeHeads(Attention(q, Repeated(k), Repeated(v), attention)));
    }
    return x + b.Wide(b.rms2(x));
  }
  Tensor Repeated(const Tensor& x) const { return RepeatHeads(x, config_.heads / config_.kv_heads); }

  Embedding tok_;
  std::vector<Block> blocks_;
  RmsNorm rms_;
  Linear lm_;
  Tensor cos_, sin_, above_;
};

class LlamaDecoder : public Decoder {
 public:
  LlamaDecoder(const Llama& model, const ModelConfig& config, Tracer* tracer) : model_(model), tracer_(*tracer) {
    const Shape shape = CurrentDevice()->ArrayShape(
        config.type, {config.batch, config.kv_heads, config.seq, config.hidden / config.heads});
    const auto zeros = [&] { return tracer->FromGenerator(shape, [](Literal*) {}); };
    for (int64_t i = 0; i < config.layers; ++i) caches_.push_back({zeros(), zeros()});
  }

  Tensor Prefill(const Tensor& prompt) override {
    const int64_t n = prompt.size(1);
    const auto position = [&](int64_t first, int64_t count) {
      return tracer_.FromGenerator(S64Shape({count}), [first, count](Literal* out) {
        for (int64_t t = 0; t < count; ++t) out->values<int64_t>()[t] = first + t;
      });
    };
    position_ = position(n, 1);
    return Next(prompt, position(0, n));
  }
  Tensor Step() override {
    const Tensor logits = Next(token_, position_);
    position_ = position_ + Scalar(1);
    return logits;
  }
  const Tensor& token() const override { return token_; }

 private:
  Tensor Next(const Tensor& tokens, const Tensor& positions) {
    const NoGradGuard no_grad;
    const Tensor logits = Select(model_.CachedLogits(tokens, positions, &caches_), 1, -1);
    token_ = InvokeOp(Op::argmax, logits, -1, true);
    return logits;
  }

  const Llama& model_;
  Tracer& tracer_;
  std::vector<LayerCache> caches_;
  Tensor token_;     // [batch, 1]
  Tensor position_;  // of it, [1]
};

std::unique_ptr<Decoder> Llama::MakeDecoder(Tracer& tracer) const {
  return std::make_unique<LlamaDecoder>(*this, config_, &tracer);
}

}  // namespace

std::unique_ptr<Model> MakeLlama(const ModelConfig& c, nn::ParameterRegistry* registry) {
  return std::make_unique<Llama>(c, registry);
}

}  // namespace hlokit::lazy::models
